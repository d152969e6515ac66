"""CFLSubsteps: as many sub-steps as the fastest wave asks for, and not one more."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.testing import check_integrator

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_the_number_of_substeps[0.2-1]",
    "test_the_number_of_substeps[4.0-8]",
    "test_inside_a_splitting",
)


class Decay(pk.AbstractTendency):
    """u̇ = −k u, whose "signals" are as fast as u is large."""

    k: jax.Array = pk.param(1.0)

    def rate(self, clock, state):
        return -self.k * state

    def max_signal_rate(self, clock, state):
        return jnp.max(jnp.abs(state))


def take_one_step(u, number=0.5, max_substeps=8, dt=1.0, k=0.3):
    sim = pk.Simulation(pk.CFLSubsteps(pk.Euler(Decay(k)), number, max_substeps), dt=dt)
    return pk.simulate(sim, jnp.asarray([u]), 1)


@pytest.mark.parametrize(("u", "count"), [(0.2, 1), (0.5, 1), (0.6, 2), (1.9, 4), (4.0, 8)])
def test_the_number_of_substeps(u, count):
    after = take_one_step(u)
    assert after.health.ok
    np.testing.assert_allclose(after.state[0], u * (1 - 0.3 / count) ** count, rtol=1e-14)


@pytest.mark.slow
def test_battery():
    """Two sub-steps of a flow of gas, with derivatives by γ and by the start."""
    grid = pk.Grid([1.0], (6,))
    x = grid.coordinates()[0]
    wave = lambda phase: 1 + 0.2 * jnp.sin(2 * jnp.pi * x + phase)
    gas = pk.components.Gas.from_primitive(grid, wave(0.3), 0.3 * wave(1.0), wave(0.5), 1.4)
    flow = pk.CFLSubsteps(pk.SSPRK2(pk.equations.CompressibleEuler(1.4)), 0.4, 4)
    check_integrator(flow, gas, 0.05, order=None, ignore=["cfl"])


def test_too_many_substeps_set_a_fault_and_nan():
    after = take_one_step(4.1)
    assert pk.errors.Fault.COURANT in after.health.faults()
    assert np.isnan(after.state[0])
    sim = pk.Simulation(pk.CFLSubsteps(pk.Euler(Decay()), 0.5, 2), dt=1.0)
    with pytest.raises(pk.errors.StepSizeError, match="max_substeps"):
        pk.run(sim, jnp.asarray([3.0]), 1, progress=False)


def test_batches_and_derivatives():
    starts = jnp.asarray([0.2, 0.6, 1.9, 4.0])
    batched = jax.vmap(lambda u: take_one_step(u).state[0])(starts)
    np.testing.assert_allclose(
        batched, [take_one_step(float(u)).state[0] for u in starts], rtol=1e-14
    )
    final = lambda k: take_one_step(1.9, k=k).state[0]
    expected = -1.9 * (1 - 0.3 / 4) ** 3
    np.testing.assert_allclose(jax.grad(final)(0.3), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jvp(final, (0.3,), (1.0,))[1], expected, rtol=1e-12)


def test_single_precision():
    sim = pk.Simulation(pk.CFLSubsteps(pk.Euler(Decay(0.3)), 0.5, 8), dt=1.0)
    assert pk.simulate(sim, jnp.asarray([1.9], jnp.float32), 2).state.dtype == jnp.float32


def test_inside_a_splitting():
    flow = pk.CFLSubsteps(pk.RK4(Decay(0.3)), 0.5, 8)
    sim = pk.Simulation(pk.Strang(pk.RK4(Decay(0.1)), flow), dt=0.5)
    end = pk.simulate(sim, jnp.asarray([1.0]), 4).state
    np.testing.assert_allclose(end[0], np.exp(-0.8), rtol=1e-5)


def test_bad_input_is_an_error():
    with pytest.raises(pk.errors.ParameterError, match="max_substeps must be a whole number"):
        pk.CFLSubsteps(pk.Euler(Decay()), 0.5, 0)
    with pytest.raises(pk.errors.ParameterError, match="must be positive"):
        pk.CFLSubsteps(pk.Euler(Decay()), -0.5)
    with pytest.raises(pk.errors.ParameterError, match="max_signal_rate"):
        pk.init(pk.Simulation(pk.CFLSubsteps(pk.RK4(lambda t, y: -y)), dt=0.1), jnp.ones(2))
