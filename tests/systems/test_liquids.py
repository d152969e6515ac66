"""Lennard-Jones liquids and argon, at reduced size; their published numbers are validation cases."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.particles import temperature, total_momentum
from physkit.simulate import run
from physkit.systems import K_B, argon_results, lennard_jones_melt, liquid_argon, melt

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = ("test_melt_turns_half_of_its_kinetic_energy_into_potential[float64]",)


@pytest.mark.parametrize("dtype", [pytest.param(jnp.float32, marks=pytest.mark.slow), jnp.float64])
def test_melt_turns_half_of_its_kinetic_energy_into_potential(dtype):
    sim, atoms = lennard_jones_melt(5, truncation="shifted-force", dtype=dtype)
    assert atoms.position.dtype == dtype
    np.testing.assert_allclose(temperature(atoms), 1.44, rtol=1e-5)
    done = run(sim, atoms, 400, progress=False)
    assert 0.5 < float(temperature(done.state)) < 1.0
    assert np.ptp(done["energy"]) < 2e-3 * abs(done["energy"][0])


def test_argon_has_the_state_of_rahmans_paper():
    sim, atoms = liquid_argon()
    assert atoms.num_particles == 864
    np.testing.assert_allclose(atoms.space.lengths, 34.68, atol=0.01)
    np.testing.assert_allclose(temperature(atoms) / K_B, 94.4, rtol=1e-12)
    assert float(sim.dt) == 0.01


def test_small_argon_melts_to_the_given_temperature():
    sim, atoms = liquid_argon(3)
    liquid = melt(sim, atoms, 1500, key=jax.random.key(0), progress=False)
    np.testing.assert_allclose(total_momentum(liquid), 0.0, atol=1e-9)
    done = run(sim, liquid, 1000, progress=False)
    found = argon_results(done)
    assert abs(found.temperature - 94.4) < 15
    assert 3.5 < found.peak < 3.9
    assert 0.02 < found.diffusion.value < 0.6
    assert np.ptp(done["energy"]) / abs(done["energy"][0]) < 1e-3
