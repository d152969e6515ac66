"""Lazy steps of spectral integrators: observers and results see complete fields at every interval."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import SimulationDiverged


def wave():
    grid = pk.Grid([2 * np.pi], 16)
    return pk.Field.from_function(grid, lambda x: 5.0 * jnp.sin(x))


def damped_diffusion(dt, observers=()):
    return pk.Simulation(
        pk.ETDRK2(pk.equations.Diffusion(0.1), lambda t, u: -u * 0.3), dt, observers
    )


def test_observers_leave_fields_as_they_are():
    every = lambda n: [pk.Every(n, u=pk.FieldValues())]
    often = pk.simulate(damped_diffusion(0.05, every(1)), wave(), 12)
    seldom = pk.simulate(damped_diffusion(0.05, every(4)), wave(), 12)
    never = pk.simulate(damped_diffusion(0.05), wave(), 12)
    np.testing.assert_allclose(often.frames["u"][::4], seldom.frames["u"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(never.state.data, often.state.data, rtol=0, atol=1e-14)
    assert float(jnp.max(jnp.abs(never.state.data - wave().data))) > 0.1


def test_a_run_in_pieces_is_the_whole_run():
    sim = damped_diffusion(0.05)
    whole = pk.simulate(sim, wave(), 12)
    halfway = pk.simulate(sim, wave(), 5)
    rest = pk.simulate(sim, halfway.carry, 7)
    np.testing.assert_array_equal(rest.state.data, whole.state.data)


def test_diagnosis_names_the_field_that_diverged():
    sim = pk.Simulation(pk.ETDRK2(pk.equations.Diffusion(0.001), lambda t, u: u * u), dt=0.05)
    with pytest.raises(SimulationDiverged) as caught:
        pk.run(sim, wave(), 200, progress=False)
    found = pk.diagnose(caught.value)
    assert found.step is not None
    assert float(found.carry.state.max()) > 10.0
    assert any("Function" in line for line in found.findings)
