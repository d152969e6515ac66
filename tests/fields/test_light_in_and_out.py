"""Modes sent into a guide, and fields taken to great distance."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ObserverError, ParameterError, ShapeError
from physkit.fields import ElectromagneticField
from physkit.fields.equations import (
    Ball,
    ConvolutionalPML,
    Dielectric,
    Maxwell,
    ModeSource,
    PointDipole,
    WavePulse,
    waveguide_mode,
)
from physkit.geometry import Box, Grid
from physkit.integrators import Yee
from physkit.observe import FarField, FluxSpectrum, mode_amplitudes
from physkit.simulate import Simulation, simulate

OMEGA = 2 * math.pi


def spectrum_of(waveform, dt, steps, late=0.0):
    """∫ w e^{iωt} dt, as the running transforms sum it; `late` in steps."""
    t = (np.arange(steps) + late) * dt
    return np.sum(np.asarray(waveform(jnp.asarray(t))) * np.exp(1j * OMEGA * t)) * dt


@pytest.mark.parametrize(
    ("mode", "component", "dimension"),
    [
        pytest.param("TM", "Ez", 2, marks=pytest.mark.slow),
        ("TE", "Ey", 2),
        pytest.param(None, "Ez", 3, marks=pytest.mark.slow),
    ],
)
def test_the_far_field_of_a_dipole(mode, component, dimension):
    """F = iωμ g I [ê − r̂(r̂·ê)] e^{−ik r̂·x₀}, off by the grid's dispersion: 3 % at 16 cells a wavelength."""
    h, cells = 1 / 16, 40
    grid = Grid(Box([cells * h] * dimension, periodic=False), (cells,) * dimension)
    # The points of E_y are between nodes.
    place = np.array([18, 22.5 if component == "Ey" else 22, 20][:dimension]) * h
    pulse = WavePulse(OMEGA, 0.25, 1.3, 1.0, -math.pi / 2)
    maxwell = Maxwell(sources=PointDipole(place, component, pulse), layer=ConvolutionalPML(6))
    dt, steps = 0.9 * maxwell.longest_step(grid), 120
    angle = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    across = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if dimension == 3:
        across = np.concatenate([0.8 * across, np.full((8, 1), 0.6)], axis=1)
    corner = 10 * h
    box = FarField(1, [corner] * dimension, [cells * h - corner] * dimension, [OMEGA], across)
    start = maxwell.add_memory(ElectromagneticField.of(grid, mode=mode))
    simulation = Simulation(Yee(maxwell), dt=dt, observers=box)
    far = jax.jit(lambda s: simulate(simulation, s, steps).summary["far"])(start)
    current = spectrum_of(pulse, dt, steps, 0.5)
    along = np.eye(3)["xyz".index(component[1])]
    unit = np.pad(across, ((0, 0), (0, 3 - dimension)))
    transverse = along[None] - unit * (unit @ along)[:, None]
    g = 1 / (4 * np.pi)
    if dimension == 2:
        g = 0.25j * np.sqrt(2 / (np.pi * OMEGA)) * np.exp(-0.25j * np.pi)
    exact = 1j * OMEGA * g * current * transverse * np.exp(-1j * OMEGA * across @ place)[:, None]
    error = np.max(np.abs(np.asarray(far["amplitude"][0]) - exact)) / np.max(np.abs(exact))
    assert error < 0.035
    power = 0.5 * np.sum(np.abs(far["amplitude"][0]) ** 2, axis=-1)
    np.testing.assert_allclose(far["intensity"][0], power, rtol=1e-10)


@pytest.mark.parametrize(
    ("mode", "axis", "backward"),
    [("TM", "x", False), pytest.param("TE", "y", True, marks=pytest.mark.slow)],
)
def test_a_mode_goes_one_way(mode, axis, backward):
    h = 0.05
    along, across = "xy".index(axis), 1 - "xy".index(axis)
    shape = [0, 0]
    shape[along], shape[across] = 64, 56
    grid = Grid(Box([h * n for n in shape], periodic=False), tuple(shape))

    def core(*x):
        return jnp.abs(x[across] - 28 * h) - 0.2

    guide = Dielectric(5.0, shape=core)
    dt = 0.95 * Maxwell(guide).longest_step(grid)
    lit, dark, at = (20, 44, 36) if backward else (44, 20, 28)
    found = waveguide_mode(guide, grid, axis, at * h, OMEGA, mode=mode, dt=dt)
    assert OMEGA < float(found.wavenumber) < math.sqrt(5) * OMEGA
    pulse = WavePulse(OMEGA, 1.0, 5.0)
    maxwell = Maxwell(guide, ModeSource(found, pulse, backward), ConvolutionalPML(8))
    planes = [
        FluxSpectrum(1, axis, lit * h, [OMEGA], name="lit"),
        FluxSpectrum(1, axis, dark * h, [OMEGA], name="dark"),
    ]
    start = maxwell.add_memory(ElectromagneticField.of(grid, mode=mode))
    simulation = Simulation(Yee(maxwell), dt=dt, observers=planes)
    out = jax.jit(lambda s: simulate(simulation, s, 480).summary)(start)
    power = abs(spectrum_of(pulse, dt, 480)) ** 2
    sent = (-1 if backward else 1) * float(out["lit"]["flux"][0]) / power
    # H in the plane is the mean of both sides.
    assert sent == pytest.approx(math.cos(0.5 * h * float(found.wavenumber)), abs=0.002)
    assert abs(float(out["dark"]["flux"][0])) / power < 1e-4
    up, down = (complex(a[0]) for a in mode_amplitudes(out["lit"], found))
    sent, back = (down, up) if backward else (up, down)
    # What the pulse has beside the mode's frequency, and the wave's phase from the source to the plane.
    assert abs(sent) ** 2 / power == pytest.approx(1, abs=0.002)
    phase = float(found.wavenumber) * h * abs(lit - at)
    expected = spectrum_of(pulse, dt, 480) * np.exp(1j * phase)
    assert abs(sent - expected) < 0.01 * abs(expected)
    assert abs(back) < 0.01 * abs(sent)
    with pytest.raises(ObserverError, match="across the guide"):
        mode_amplitudes({"Hz": out["lit"][found.names[0]]}, found)


@pytest.mark.slow
def test_modes_of_a_slab():
    """tan(κd/2) = γ/κ: E_z of a symmetric slab, by second order."""
    d, inside = 0.6, 4.0
    errors = []
    for n in (40, 80):
        grid = Grid(Box([4.0, 4.0], (True, False)), (64, 2 * n))
        slab = Dielectric(inside, shape=lambda x, y: jnp.abs(y - 2.0) - 0.5 * d + 0 * x)
        # ω without the step: the wavenumber's own sine is known.
        beta = float(waveguide_mode(slab, grid, "x", 2.0, OMEGA).wavenumber)
        beta = math.sin(beta / 32) * 32
        kappa, gamma = math.sqrt(inside * OMEGA**2 - beta**2), math.sqrt(beta**2 - OMEGA**2)
        errors.append(abs(kappa * math.tan(0.5 * kappa * d) - gamma))
    assert errors[0] < 0.5
    assert 3 < errors[0] / errors[1] < 5.5


def test_wrong_input_is_explained():
    grid = Grid(Box([2.0, 2.0], False), (16, 16))
    rod = Dielectric(4.0, shape=Ball([1.0, 1.0], 0.3))
    with pytest.raises(ParameterError, match="guided modes"):
        waveguide_mode(rod, grid, "x", 1.0, OMEGA, 7)
    with pytest.raises(ShapeError, match="in the plane"):
        waveguide_mode(rod, Grid([1.0] * 3, (4, 4, 4)), "x", 0.5, OMEGA)
    with pytest.raises(ParameterError, match='"TM"'):
        waveguide_mode(rod, grid, "x", 1.0, OMEGA, mode="up")
    found = waveguide_mode(rod, grid, "x", 1.0, OMEGA)
    finer = ElectromagneticField.of(Grid(Box([2.0, 2.0], False), (16, 20)))
    sent = Yee(Maxwell(rod, ModeSource(found, jnp.sin)))
    with pytest.raises(ShapeError, match="of this grid"):
        simulate(Simulation(sent, dt=0.01), finer, 1)
    outside = FarField(1, [0.5, 0.5], [2.5, 1.5], [1.0], [[1.0, 0.0]])
    with pytest.raises(ObserverError, match="inside of the grid"):
        simulate(
            Simulation(Yee(Maxwell()), dt=0.01, observers=outside), ElectromagneticField.of(grid), 1
        )
    rare = FluxSpectrum(40, "x", 1.0, [1.0, 8.0])
    with pytest.raises(ObserverError, match="fewer than two a period of the frequency 8"):
        simulate(
            Simulation(Yee(Maxwell()), dt=0.01, observers=rare), ElectromagneticField.of(grid), 40
        )
