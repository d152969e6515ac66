"""The guard against a drift of the energy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError
from physkit.geometry import Free
from physkit.observe import EnergyDrift, KineticEnergy, TotalEnergy

from .trajectories import Springs, observe_path, random_walk, snapshot


@pytest.mark.slow
def test_energy_drift_holds_where_the_error_is_within_the_tolerance():
    path = random_walk(4, 3, 40, Free(), step=0.02)
    energy = np.array([TotalEnergy()(snapshot(frame_at(path, t), Springs())) for t in range(40)])
    kinetic = float(KineticEnergy()(snapshot(frame_at(path, 0), Springs())))
    error = np.abs(energy - energy[0]) / max(abs(energy[0]), kinetic)
    # The median, so that the guard holds in some frames and breaks in others.
    tolerance = float(np.median(error))
    _, frames = observe_path(EnergyDrift(1, tolerance), path)
    np.testing.assert_array_equal(frames["energy_drift"], error <= tolerance)
    assert not np.all(frames["energy_drift"])


def test_energy_drift_of_a_given_quantity():
    path = random_walk(4, 3, 5, Free())
    _, frames = observe_path(EnergyDrift(1, 1e-9, lambda now: jnp.float64(3.0)), path)
    assert np.all(frames["energy_drift"])


def test_invalid_tolerances_are_refused():
    with pytest.raises(ParameterError, match="positive"):
        EnergyDrift(1, 0.0)


def frame_at(path, t):
    return jax.tree.map(lambda x: x[t], path)
