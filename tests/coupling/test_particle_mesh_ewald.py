"""Particle-mesh Ewald sums against direct ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import NotReversible
from physkit.coupling import ParticleMeshEwald
from physkit.coupling._mesh_tolerance import spline_of_wave
from physkit.particles.forces import Ewald
from physkit.testing import check_devices, check_force, check_reversible
from tests.evaluate_force import evaluate
from tests.particles.ewald_by_hand import exact_values

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_the_error_is_below_the_tolerance[5-1e-3]",
    "test_splines_add_up_to_one",
    "test_wrong_input_is_named",
)

TILTED = pk.Triclinic([[6.0, 0.0, 0.0], [1.2, 6.0, 0.0], [-1.2, 0.8, 6.0]])


def charges(space, n=60):
    rng = np.random.default_rng(0)
    x, q = rng.uniform(0, 6, (n, 3)), rng.normal(size=n)
    return pk.Particles(x, charge=q - np.mean(q), space=space)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5], ids=["1e-3", "1e-5"])
@pytest.mark.parametrize("order", [4, 5, 6])
def test_the_error_is_below_the_tolerance(order, tolerance):
    state = charges(TILTED)
    exact, energy, virial = exact_values(state)
    unit = float(np.mean(np.asarray(state.charge) ** 2) * (60 / 6**3) ** (2 / 3))
    force, found, found_virial = evaluate(ParticleMeshEwald(2.8, tolerance, order=order), state)
    error = np.sqrt(np.mean(np.sum((force - exact) ** 2, axis=1))) / unit
    assert tolerance / 50 < error < tolerance
    assert abs(found / energy - 1) < 10 * tolerance
    np.testing.assert_allclose(found_virial, virial, atol=10 * tolerance * np.max(np.abs(virial)))
    assert np.max(np.abs(np.sum(force, axis=0))) < 5 * tolerance * unit * np.sqrt(60)


@pytest.mark.compiled_quickly
def test_battery():
    """Momentum is conserved to the error of forces: the check of the virial is made here."""
    state = charges(TILTED, 20)
    force = ParticleMeshEwald(
        2.4, 1e-2, exclude=[[0, 1], [2, 1]], background=True, mesh=8, coulomb_constant=1.3
    )
    check_force(force, state)


@pytest.mark.compiled_quickly
def test_over_devices():
    state = charges(pk.Box([6.0] * 3), 40).replace(mass=jnp.full(40, 50.0))
    for electric in (ParticleMeshEwald(1.4, 1e-2, mesh=8), Ewald(1.4, 1e-2, waves=3)):
        sim = pk.Simulation(pk.VelocityVerlet(electric), dt=0.001)
        check_devices(sim, state, 2, ((2,),), gradient=False)


@pytest.mark.compiled_quickly
@pytest.mark.slow
def test_derivatives_over_devices():
    """By positions, charges, box and all else."""
    state = charges(pk.Box([6.0] * 3), 40).replace(mass=jnp.full(40, 50.0))
    sim = pk.Simulation(pk.VelocityVerlet(ParticleMeshEwald(1.4, 1e-2, mesh=8)), dt=0.001)
    check_devices(sim, state, 1, ((2,),))


def test_reversible_with_exact_sums():
    state = charges(pk.Box([6.0] * 3), 40).replace(mass=jnp.full(40, 50.0))
    force = ParticleMeshEwald(1.8, 1e-3, exact=True, skin=0.2, mesh=16)
    check_reversible(pk.VelocityVerlet(force), state, 0.002, steps=16)
    with pytest.raises(NotReversible, match="exact=True"):
        ParticleMeshEwald(1.8, 1e-3, skin=0.2).require_reversible(state)


def test_splines_add_up_to_one():
    """And interpolate waves as the influence function says."""
    f = jnp.linspace(0.0, 1.0, 5)
    for kernel in (pk.kernels.QuarticSpline(), pk.kernels.QuinticSpline()):
        weights = np.stack(kernel.weights(f))
        np.testing.assert_allclose(np.sum(weights, axis=0), 1, rtol=1e-14)
        np.testing.assert_allclose(weights, weights[::-1, ::-1], atol=1e-15)
        # At a point of the mesh: f = 0 at even orders, ½ at odd ones.
        p = kernel.order
        at_point = weights[:, 0 if p % 2 == 0 else 2]
        places = np.arange(p) - (p - 2) / 2 if p % 2 == 0 else np.arange(p) - (p - 1) / 2
        expected = np.sum(at_point * np.cos(0.7 * places))
        assert spline_of_wave(np.array([0.7]), p)[0] == pytest.approx(expected, rel=1e-14)


def test_wrong_input_is_named():
    errors, state = pk.errors, charges(pk.Box([6.0] * 3))
    with pytest.raises(errors.ParameterError, match="order"):
        ParticleMeshEwald(2.0, order=3)
    for mesh in (3, 16.0, (16, 16)):
        with pytest.raises(errors.ParameterError, match="mesh counts points"):
            ParticleMeshEwald(2.0, mesh=mesh)
    with pytest.raises(errors.ParameterError, match="for_start"):
        jax.jit(lambda state: ParticleMeshEwald(2.0).init(state))(state)
    charged = state.replace(charge=jnp.ones(60))
    with pytest.raises(errors.ParameterError, match="background=True"):
        pk.run(pk.Simulation(pk.VelocityVerlet(ParticleMeshEwald(2.0)), dt=0.01), charged, 1)
