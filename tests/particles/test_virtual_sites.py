"""Virtual sites: where they are, what their parents feel, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, DeclarationError, ParameterError, ShapeError, StepCount
from physkit.geometry import Box
from physkit.particles import Particles, RigidWater, constrain, kinetic_energy, maxwell_boltzmann
from physkit.particles.forces import (
    Coulomb,
    LennardJones,
    Pairwise,
    UniformAcceleration,
    UniformField,
    VirtualSites,
)

from .water import HH, OH, errors, water_pairs, water_positions

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
N = 8
MOLECULES = np.arange(3 * N).reshape(N, 3)


def tip4p(**more):
    """Charges on hydrogens and on a site between them and the oxygen, which has none."""
    inside = [(3 * i + a, 3 * i + b) for i in range(N) for a, b in ((0, 1), (0, 2), (1, 2))]
    inside += [(3 * i + a, 3 * N + i) for i in range(N) for a in range(3)]
    force = Pairwise(Coulomb(2.0), cutoff=3.0, exclude=inside)
    return VirtualSites(force, MOLECULES, [0.128, 0.128], charge=-1.04, **more)


def water(is_moving=True):
    p = Particles(
        water_positions(2), mass=np.tile([16.0, 1, 1], N), space=Box([6.2] * 3),
        charge=np.tile([0, 0.52, 0.52], N), constraints=RigidWater(MOLECULES, OH, HH),
    )  # fmt: skip
    return maxwell_boltzmann(0, constrain(p), 1.0) if is_moving else p


def as_particles(force, p):
    """The same by hand: sites as particles, and the chain rule."""
    w = np.array([1 - 2 * 0.128, 0.128, 0.128])
    x = np.asarray(p.position).reshape(N, 3, 3)
    whole = x[:, :1] + np.asarray(p.space.displacement(jnp.asarray(x), jnp.asarray(x[:, :1])))
    sites = np.einsum("k,nkd->nd", w, whole) % 6.2
    charges = np.concatenate([p.charge, np.full(N, -1.04)])
    both = Particles(np.concatenate([p.position, sites]), space=p.space, charge=charges)
    f = np.asarray(force.inner.force(CLOCK, both))
    spread = f[: 3 * N] + (w[None, :, None] * f[3 * N :, None]).reshape(-1, 3)
    return force.inner.energy(CLOCK, both, force.inner.init(both)), spread


@pytest.mark.slow
def test_charges_on_sites_of_rigid_water():
    p, force = water(), tip4p()
    energy, spread = as_particles(force, p)
    np.testing.assert_allclose(force.energy(CLOCK, p, force.init(p)), energy, rtol=1e-13)
    np.testing.assert_allclose(force.force(CLOCK, p), spread, atol=1e-12)


@pytest.mark.slow
def test_a_run_of_water_with_sites():
    p = water()
    soft = LennardJones([[0.3, 0.0], [0.0, 0.0]], [[2.4, 1.0], [1.0, 1.0]])
    q = p.replace(species=jnp.asarray(np.tile([0, 1, 1], N), jnp.int32))
    total = tip4p(species=1) + Pairwise(soft, cutoff=2.9, exclude=water_pairs(N))
    observers = pk.Every(20, e=pk.TotalEnergy(), p=pk.Pressure())
    out = pk.run(pk.Simulation(pk.VelocityVerlet(total), 0.01, observers), q, 200, progress=False)
    assert np.ptp(out.frames["e"]) < 0.02 * kinetic_energy(p)
    assert np.isfinite(out.frames["p"]).all()
    assert errors(out.carry.state, water_pairs(N), np.tile([OH, OH, HH], N))[0] < 1e-12


def one_molecule(shift=0.0):
    x = np.array([[9.5 + shift, 5, 5], [10.3 + shift, 5.6, 5], [10.3 + shift, 4.4, 5]])
    space = Box([10.0] * 3)
    position, image = space.wrap_with_image(jnp.asarray(x))
    return Particles(position, space=space, charge=[0, 0.52, 0.52], mass=[16.0, 1, 1], image=image)


def on_one_site(force, **more):
    return VirtualSites(force, [[0, 1, 2]], [0.128, 0.128], charge=-1.04, **more)


def test_energies_do_not_jump_where_a_site_crosses_the_border():
    """A neutral molecule has the same energy in a uniform field wherever it is; its site crosses by itself."""
    force = on_one_site(UniformField([1.0, 0, 0]))
    energies = [
        force.energy(CLOCK, q, force.init(q))
        for q in map(one_molecule, (-3.0, -0.2, 0.0, 0.3, 0.45, 1.0, 12.0))
    ]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-12)


def test_sites_have_no_weight():
    force = on_one_site(UniformAcceleration([0.0, 0.0, -9.8]))
    total = np.sum(force.force(CLOCK, one_molecule()), axis=0)
    np.testing.assert_allclose(total, [0, 0, -9.8 * 18], atol=1e-12)


def test_virials_of_sites_out_of_a_plane(monkeypatch):
    """A force from outside has none; that of pairs uses the list that it is given, as a trace must."""
    q = one_molecule()
    outside = on_one_site(UniformField([0.0, 0, 1]), out_of_plane=0.5)
    np.testing.assert_array_equal(outside.virial(CLOCK, q, outside.init(q)), np.zeros((3, 3)))
    force = VirtualSites(
        Pairwise(Coulomb(2.0), cutoff=3.0),
        MOLECULES,
        [0.128, 0.128],
        charge=-1.04,
        out_of_plane=0.5,
    )
    p = water(is_moving=False)
    cache = force.init(p)
    virial = lambda p, cache: force.virial(CLOCK, p, cache)
    expected = jax.jit(virial)(p, cache)
    monkeypatch.setattr(Pairwise, "init", lambda *_: pytest.fail("made anew"))
    # Traced once more.
    np.testing.assert_allclose(jax.jit(lambda *x: virial(*x))(p, cache), expected, rtol=1e-12)


BAD = [
    (lambda: VirtualSites(Coulomb(), [[0, 1]], [0.5]), DeclarationError, "must be an AbstractForce"),
    (lambda: VirtualSites(tip4p().inner, [[0, 1]], [0.5, 0.5]), ShapeError, "weights"),
    (lambda: VirtualSites(tip4p().inner, [[0, 1]], [0.5], out_of_plane=1.0), ShapeError, "plane"),
    (lambda: VirtualSites(tip4p().inner, [0, 1], [0.5]), ShapeError, "parents"),
    (
        lambda: VirtualSites(tip4p().inner, [[0, 99]], [0.5], charge=1.0).force(CLOCK, water()),
        ParameterError, "particle 99",
    ),
    (
        lambda: VirtualSites(tip4p().inner, [[0, 1]], [0.5]).force(CLOCK, water()),
        ParameterError, "charge",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "text"), BAD)
def test_bad_sites(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


def test_dipole_moments_have_the_charges_of_sites():
    """Of a molecule across the side of the box; rigid bodies of the same sites have the same."""
    q, w = np.array([0.52, 0.52, -1.04]), [0.128, 0.128]
    x = np.array([[6.3, 3.0, 3.0], [5.7, 3.7, 3.0], [5.7, 2.3, 3.0]])
    site = x[0] + w @ (x[1:] - x[0])
    exact = q @ np.array([x[1], x[2], site])
    box, mass = Box([6.0] * 3), [16.0, 1.0, 1.0]
    atoms = Particles(
        x % 6, mass=mass, charge=[0, *q[:2]], space=box, image=np.floor(x / 6).astype(int)
    )
    forces = VirtualSites(Pairwise(Coulomb(), 2.0), [[0, 1, 2]], w, charge=q[2])
    forces = forces + VirtualSites(Pairwise(LennardJones(), 2.0), [[0, 1, 2]], w, charge=q[2])
    bodies = pk.RigidBodies.from_sites(
        np.array([[*x, site]]), [*mass, 0.0], box, site_charge=[0, *q]
    )
    of_sites = pk.forces.SiteForce(Pairwise(Coulomb(), 2.0, exclude=bodies.site_pairs))
    for state, force in ((atoms, forces), (bodies, of_sites)):
        sim = pk.Simulation(pk.VelocityVerlet(force), dt=0.1)
        found = pk.evaluate(sim, state, M=pk.observe.DipoleMoment())["M"]
        np.testing.assert_allclose(found, exact, atol=1e-12)
