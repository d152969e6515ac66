"""The force of a particle mesh between single particles, against Ewald's sum."""

import itertools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, PhyskitWarning, StepCount

CELLS = 16
BOX = pk.Box([1.0, 1.0, 1.0])
CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
erfc = np.vectorize(math.erfc)


def pair_force(r, alpha=6.0):
    """The force on a charge at `r` from one of opposite sign at 0, in a periodic cube of edge 1 (ε = 1)."""
    images = np.array(list(itertools.product(range(-2, 3), repeat=3))) + r
    s = np.linalg.norm(images, axis=1)
    near = erfc(alpha * s) / s**2 + 2 * alpha / np.sqrt(np.pi) * np.exp(-((alpha * s) ** 2)) / s
    k = 2 * np.pi * np.array([n for n in itertools.product(range(-8, 9), repeat=3) if any(n)])
    k2 = np.sum(k**2, axis=1)
    far = 4 * np.pi / k2 * np.exp(-k2 / (4 * alpha**2)) * np.sin(k @ r)
    return -((near / s) @ images + far @ k) / (4 * np.pi)


def force_error(mesh):
    """Root mean square over pairs four cells apart and more, relative to that of the force."""
    rng, found, exact = np.random.default_rng(0), [], []
    force = jax.jit(lambda x: mesh.force(CLOCK, pk.Particles(x, charge=CHARGES, space=BOX)))
    while len(found) < 8:
        x = rng.random((2, 3))
        r = x[0] - x[1] - np.round(x[0] - x[1])
        if np.linalg.norm(r) * CELLS > 4:
            found.append(force(jnp.asarray(x))[0])
            exact.append(pair_force(r))
    found, exact = np.array(found), np.array(exact)
    return np.sqrt(np.sum((found - exact) ** 2) / np.sum(exact**2))


CHARGES = jnp.asarray([1.0, -1.0])


def mesh(**settings):
    return pk.ParticleMesh(pk.Grid(BOX, (CELLS,) * 3), kernel=pk.kernels.TSC(), **settings)


def test_ewald_does_not_depend_on_how_it_is_split():
    r = np.array([0.31, -0.12, 0.23])
    np.testing.assert_allclose(pair_force(r, 6.0), pair_force(r, 5.0), rtol=1e-6)


def test_forces_between_single_particles():
    """As the docstring says."""
    assert force_error(mesh()) < 0.005
    assert force_error(mesh(deconvolved=True)) > 0.1
    assert force_error(mesh(conserves="energy")) > 1


def test_settings_for_many_particles_warn():
    def init(n, **settings):
        places = jax.random.uniform(jax.random.key(0), (n, 3))
        mesh(**settings).init(pk.Particles(places, charge=1.0, space=BOX))

    with pytest.warns(PhyskitWarning, match="deconvolved=True.* with 4095 on 4096 cells .*TSC"):
        init(CELLS**3 - 1, deconvolved=True)
    with pytest.warns(PhyskitWarning, match='conserves="energy"'):
        init(2, conserves="energy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        init(CELLS**3, deconvolved=True)
        init(2)


def test_boxes_are_compared_in_any_units():
    """Nanometers in meters differ by less than any absolute tolerance."""
    small = pk.Particles([[1e-9]], charge=1.0, space=pk.Box([3e-9]))
    with pytest.raises(pk.errors.ParameterError, match="use one for both"):
        pk.ParticleMesh(pk.Grid(pk.Box([4e-9]), (8,))).init(small)


@pytest.mark.parametrize("kernel", ["CIC", pytest.param("TSC", marks=pytest.mark.slow)])
def test_interlacing_makes_errors_smaller(kernel):
    """Of a pair's force, over places on the mesh; and so how much it depends on the place."""
    r = np.array([0.19, 0.07, -0.12])
    middle = np.random.default_rng(1).random((8, 1, 3))
    places = jnp.asarray((middle + np.stack([r, -r]) / 2) % 1)

    def force(interlaced):
        of = pk.ParticleMesh(
            pk.Grid(BOX, (CELLS,) * 3), kernel=getattr(pk.kernels, kernel)(), interlaced=interlaced
        )
        pair = jax.jit(lambda x: of.force(CLOCK, pk.Particles(x, charge=CHARGES, space=BOX))[0])
        return np.array([pair(x) for x in places])

    plain, interlaced, exact = force(False), force(True), pair_force(r)
    assert np.linalg.norm(np.std(interlaced, axis=0)) < 0.5 * np.linalg.norm(np.std(plain, axis=0))
    assert np.linalg.norm(interlaced - exact) < np.linalg.norm(plain - exact)
