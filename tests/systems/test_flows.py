"""Ready-made incompressible flows."""

import jax
import numpy as np
import pytest

from physkit.core import ObserverError, ParameterError
from physkit.fields import Field, power_spectrum
from physkit.fields.equations import NavierStokes, velocity_from_vorticity
from physkit.geometry import Grid
from physkit.integrators import RK4
from physkit.observe import Dissipation, Enstrophy, Every, FlowEnergy
from physkit.simulate import Simulation, simulate
from physkit.systems import (
    decaying_turbulence,
    kolmogorov_flow,
    random_vorticity,
    rossby_haurwitz_wave,
    stommel_gyre,
    taylor_green_2d,
    taylor_green_3d,
    taylor_green_vorticity,
)
from physkit.testing import check_observer

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_taylor_green_in_the_plane",
    "test_dissipation_needs_an_equation",
    "test_a_narrow_basin_takes_shorter_steps",
    "test_a_wave_that_the_truncation_leaves_out_is_refused",
)


def test_taylor_green_in_the_plane():
    sim, start = taylor_green_2d(0.05, resolution=16, wavenumber=2)
    result = simulate(sim, start, 40)
    x, y = start.coordinates
    np.testing.assert_allclose(start.data, taylor_green_vorticity(x, y, 0.0, 0.05, 2), rtol=1e-15)
    expected = taylor_green_vorticity(x, y, 2.0, 0.05, 2)
    np.testing.assert_allclose(result.state.data, expected, atol=1e-14)
    t = np.arange(0, 41, 10) * 0.05
    np.testing.assert_allclose(
        result.frames["energy"], 0.25 * np.exp(-4 * 0.05 * 4 * t), rtol=1e-13
    )
    np.testing.assert_allclose(
        result.frames["enstrophy"], 2 * np.exp(-4 * 0.05 * 4 * t), rtol=1e-13
    )


def test_taylor_green_in_space_loses_energy_by_dissipation():
    sim, start = taylor_green_3d(20.0, resolution=16, dt=0.05, every=1)
    frames = simulate(sim, start, 40).frames
    energy, dissipation = np.asarray(frames["energy"]), np.asarray(frames["dissipation"])
    assert abs(energy[0] - 1 / 8) < 1e-15
    slope = -(energy[2:] - energy[:-2]) / 0.1
    np.testing.assert_allclose(dissipation[1:-1], slope, rtol=2e-3)


def test_quantities_of_velocity_and_vorticity_agree():
    w = random_vorticity(Grid([2 * np.pi, 2 * np.pi], (16, 16)), jax.random.key(1), peak=3.0)
    v = velocity_from_vorticity(w)
    quantities = []
    for state in (w, v.with_boundary(None)):
        sim, _ = taylor_green_2d(0.05)
        if state.vector:
            sim = Simulation(RK4(NavierStokes(0.05)), dt=0.01)
        record = Every(1, e=FlowEnergy(), z=Enstrophy(), d=Dissipation())
        frames = simulate(Simulation(sim.integrator, dt=0.01, observers=record), state, 1).frames
        quantities.append({name: float(x[0]) for name, x in frames.items()})
    for name in ("e", "z", "d"):
        np.testing.assert_allclose(quantities[0][name], quantities[1][name], rtol=1e-12)
    np.testing.assert_allclose(quantities[0]["e"], 0.5, rtol=1e-12)
    np.testing.assert_allclose(quantities[0]["d"], 2 * 0.05 * quantities[0]["z"], rtol=1e-12)


def test_quantities_pass_the_battery():
    sim, start = taylor_green_2d(0.05, resolution=8)
    record = Every(1, e=FlowEnergy(), z=Enstrophy(), d=Dissipation())
    check_observer(record, sim, start, observations=2)


def test_dissipation_needs_an_equation():
    _, start = taylor_green_2d(resolution=8)
    alone = Simulation(RK4(lambda t, w: w * 0.0), dt=0.1, observers=Every(1, d=Dissipation()))
    with pytest.raises(ObserverError, match="an equation with a symbol"):
        simulate(alone, start, 1)


def test_a_narrow_basin_takes_shorter_steps():
    square, narrow = (stommel_gyre(8, width=width)[0].dt for width in (1e6, 1e5))
    np.testing.assert_allclose(narrow, 0.1 * square, rtol=1e-12)


def test_a_wave_that_the_truncation_leaves_out_is_refused():
    with pytest.raises(ParameterError, match="degree 5, which truncation=4 leaves out"):
        rossby_haurwitz_wave(4, wavenumber=4)


def test_random_vorticity_has_the_prescribed_spectrum():
    grid = Grid([2 * np.pi, 2 * np.pi], (128, 128))
    w = random_vorticity(grid, jax.random.key(0), peak=6.0)
    found = power_spectrum(velocity_from_vorticity(w))
    k, power = np.asarray(found.k)[2:10], np.asarray(found.power)[2:10]
    expected = k**7 * np.exp(-3.5 * (k / 6) ** 2)
    ratio = power / expected
    assert np.std(ratio) < 0.35 * np.mean(ratio)
    assert abs(float(np.sum(found.power)) - 1.0) < 1e-12


@pytest.mark.parametrize("system", [decaying_turbulence, kolmogorov_flow])
def test_turbulence_runs(system):
    sim, start = system(2e-2, resolution=32, every=10)
    result = simulate(sim, start, 20)
    assert result.health.ok
    assert isinstance(result.state, Field)
    assert result.frames["vorticity"].shape == (3, 32, 32)
    energy, enstrophy = (np.asarray(result.frames[name]) for name in ("energy", "enstrophy"))
    np.testing.assert_allclose(energy[0], 0.5, rtol=1e-12)
    if system is decaying_turbulence:
        assert np.all(np.diff(energy) < 0)
        assert np.all(np.diff(enstrophy) < 0)
