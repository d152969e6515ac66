"""The Sun and the giant planets."""

import jax.numpy as jnp
import numpy as np

from physkit.simulate import simulate
from physkit.systems import PLANETS, SUN_TO_PLANET, giant_planets, solar_tracks, weigh_planets
from physkit.systems.gravity._giant_planets import as_measured, inertial

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_tracks_are_complete",
    "test_published_masses_follow_the_measured_tracks",
)


def test_tracks_are_complete():
    tracks = solar_tracks()
    assert tracks.measured.shape == (640, 5, 3)
    assert tracks.velocity.shape == (5, 3)
    np.testing.assert_array_equal(np.diff(tracks.date), 40.0)
    distance = np.linalg.norm(tracks.measured[:, 1:], axis=-1).mean(axis=0)
    np.testing.assert_allclose(distance, [5.2, 9.55, 19.2, 30.1], rtol=0.02)


def test_inertial_and_measured_frames_are_inverse():
    measured = solar_tracks().measured
    np.testing.assert_allclose(as_measured(jnp.asarray(inertial(measured))), measured, atol=1e-14)


def test_published_masses_follow_the_measured_tracks():
    """Ten years from the measured start; its velocities allow no smaller errors."""
    tracks = solar_tracks()
    sim, state = giant_planets()
    frames = simulate(sim, state, 4 * 91).frames["position"]
    error = np.linalg.norm(np.asarray(as_measured(frames)) - tracks.measured[:92], axis=-1)
    assert np.all(error.max(axis=0) < [5e-4, 0.04, 0.2, 0.1, 0.1])


def test_masses_from_another_first_guess():
    """The answer is that of the data, not of the guess; the guess of the demo is a validation case."""
    found = weigh_planets(solar_tracks(), (1.5e-3, 2e-4, 4e-5, 6e-5), progress=False)
    assert len(PLANETS) == len(found.ratio) == len(SUN_TO_PLANET)
    np.testing.assert_allclose(found.ratio, SUN_TO_PLANET, rtol=1e-3)
    np.testing.assert_allclose(found.ratio[:2], [1047.3549, 3497.9191], rtol=1e-5)
    assert np.all(found.error > 0)
    assert np.all(np.abs(found.ratio - found.reference) < 4 * found.error)
    assert np.max(np.abs(found.after[:, 0] - solar_tracks().measured[:, 0])) * 149_597_870.7 < 1000
