"""Ready-made plasmas and drops, small; their published numbers are in tests/validation."""

import numpy as np

from physkit.particles import total_momentum
from physkit.simulate import simulate
from physkit.systems import (
    particle_laden_taylor_green,
    plasma_wave,
    two_stream,
)

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_a_quiet_start_holds_the_wave_alone[float32]",
    "test_few_particles_are_as_warm",
)


def test_a_quiet_start_holds_the_wave_alone(dtype):
    simulation, electrons = plasma_wave(0.5, amplitude=0.02, count=2000, cells=16, dtype=dtype)
    result = simulate(simulation, electrons, 1)
    assert result.state.position.dtype == dtype
    # Cell averages of the kernel smooth the wave by sinc³; the mesh has charge −1 on average.
    smooth = np.sinc(1 / 16) ** 3
    np.testing.assert_allclose(np.abs(result.frames["wave"][0]), 0.02 * smooth, rtol=1e-2)
    np.testing.assert_allclose(
        np.average(electrons.velocity[:, 0] ** 2, weights=electrons.mass), 1.0, rtol=1e-3
    )


def test_few_particles_are_as_warm():
    _, electrons = plasma_wave(0.5, count=100, cells=32)
    variance = np.average(electrons.velocity[:, 0] ** 2, weights=electrons.mass)
    np.testing.assert_allclose(variance, 1.0, rtol=3e-3)


def test_two_streams_keep_their_energy():
    simulation, beams = two_stream(400, cells=16)
    frames = simulate(simulation, beams, 100).frames
    energy = np.asarray(frames["energy"])
    assert np.ptp(energy) < 1e-3 * energy[0]
    assert frames["field"][-1] > 1e3 * frames["field"][0]


def test_drops_gather_and_keep_momentum():
    simulation, start = particle_laden_taylor_green(0.5, count=400, cells=12)
    end = simulate(simulation, start, 40).state
    total = lambda s: total_momentum(s["drops"]) + s["flow"].integral()
    np.testing.assert_allclose(total(end), total(start), atol=1e-12)
    # Out of the vortices: |sin x sin y| is small where they meet.
    height = lambda s: np.mean(np.abs(np.prod(np.sin(s["drops"].position), axis=1)))
    assert height(end) < 0.8 * height(start)
