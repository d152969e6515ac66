"""Maxwell's equations on Yee's grid: dispersion, conservation, media, sources, layers, derivatives, devices."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    ParameterError,
)
from physkit.fields import ElectromagneticField
from physkit.fields.equations import (
    Ball,
    ConvolutionalPML,
    CurrentSheet,
    Dielectric,
    Drude,
    Lorentz,
    Maxwell,
    PlaneWave,
    PointDipole,
    WavePulse,
)
from physkit.fields.equations.electromagnetism._shapes import coverage
from physkit.fields.operators import staggered_divergence
from physkit.geometry import Box, Grid, PerfectConductor, PerfectMagneticConductor
from physkit.integrators import RK4, Yee
from physkit.observe import ElectromagneticEnergy, Every
from physkit.simulate import Simulation, simulate
from physkit.systems import (
    dielectric_slab,
    electromagnetic_cavity,
    slab_coefficients,
    yee_frequency,
)

from .light import BOX, advance, random_field


@pytest.mark.slow
def test_a_cavity_rings_at_the_frequency_of_the_grid_and_keeps_its_energy():
    simulation, start = electromagnetic_cavity(cells=(10, 8, 6))
    frames = simulate(simulation, start, 200).frames
    energy = np.asarray(frames["energy"])
    np.testing.assert_allclose(energy, energy[0], rtol=1e-12)
    t = np.arange(201) * float(simulation.dt)
    k, h = [math.pi, 2 * math.pi / 0.8], [0.1, 0.1]
    omega = float(yee_frequency(k, h, simulation.dt))
    field = np.asarray(frames["field"])
    np.testing.assert_allclose(field, field[0] * np.cos(omega * t), atol=1e-11)
    # The grid is slow: its frequency is below that of the cavity, and second order in h.
    exact = math.hypot(*k)
    errors = [exact - float(yee_frequency(k, np.array(h) / n, simulation.dt / n)) for n in (1, 2)]
    assert 1.9 < math.log2(errors[0] / errors[1]) < 2.1


@pytest.mark.parametrize(
    "sides", [PerfectConductor(), pytest.param(PerfectMagneticConductor(), marks=pytest.mark.slow)]
)
def test_energy_is_constant_and_magnetic_field_has_no_sources(sides):
    # A random field has divergences: they stay as they are.
    field = random_field(BOX, sides)
    # A body's share of every cell compiles for seconds: the fast suite has numbers of cells.
    glass = Dielectric(np.random.default_rng(1).uniform(1, 3, BOX.shape))
    if isinstance(sides, PerfectMagneticConductor):
        glass = Dielectric(2.0, shape=Ball([0.41, 0.57, 0.43], 0.3))
    maxwell = Maxwell((glass, Lorentz(0.5, 3.0), Drude(2.0)))
    end = advance(maxwell, field, 60, observers=Every(1, energy=ElectromagneticEnergy()))
    energy = np.asarray(end.frames["energy"])
    np.testing.assert_allclose(energy, energy[0], rtol=1e-12)
    before, after = (staggered_divergence((s.Hx, s.Hy, s.Hz)).data for s in (field, end.state))
    np.testing.assert_allclose(after, before, atol=1e-11)


def test_a_bloch_wave_has_the_frequency_of_its_wavevector():
    grid = Grid(Box([1.0, 0.5]), (8, 4))
    k = np.array([1.3, -0.7])
    maxwell = Maxwell(wavevector=k)
    field = ElectromagneticField.of(grid, {"Ez": 1.0}, dtype=complex)
    end = advance(maxwell, field, 40, observers=Every(1, field=lambda now: now.state.Ez.data[2, 1]))
    e = np.asarray(end.frames["field"])
    dt = 0.9 * maxwell.longest_step(grid)
    omega = float(yee_frequency(k, np.asarray(grid.spacing), dt))
    # Two waves run against each other: e₊ + e₋ = 2 cos(ω dt) e.
    np.testing.assert_allclose(e[2:] + e[:-2], 2 * math.cos(omega * dt) * e[1:-1], atol=1e-12)
    with pytest.raises(ParameterError, match="complex"):
        advance(maxwell, ElectromagneticField.of(grid), 1)


@pytest.mark.parametrize("is_dispersive", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_slab_reflects_as_airy_says(is_dispersive):
    # Slabs that differ in numbers alone share a program.
    run = eqx.filter_jit(simulate)

    def spectra(permittivity, **options):
        simulation, state = dielectric_slab(
            permittivity, frequencies=frequencies, cells=80, **options
        )
        end = run(simulation, state, math.ceil(17 / float(simulation.dt)))
        return [np.asarray(end.summary[n]["flux"]) for n in ("reflected", "transmitted")]

    # A quarter and a half of the wavelength in glass, at 80 and 40 cells.
    frequencies = 2 * np.pi * np.array([0.5, 1.0])
    leak, pulse = spectra(1.0)
    assert (np.abs(leak) < 1e-8 * pulse).all()  # total and scattered field, and the layer behind
    if not is_dispersive:
        back, through = spectra(4.0)
        np.testing.assert_allclose(-back / pulse, [0.36, 0.0], atol=0.0036)
        np.testing.assert_allclose((through - back) / pulse, 1.0, atol=1e-4)
        return
    media = (Drude(3.0, 0.5), Lorentz(1.0, 5.0, 0.7))
    back, through = spectra(2.0, media=media)
    epsilon = 2 - 9 / (frequencies**2 + 0.5j * frequencies)
    epsilon = epsilon + 25 / (25 - frequencies**2 - 0.7j * frequencies)
    r, t = slab_coefficients(frequencies, epsilon, 0.25)
    np.testing.assert_allclose(-back / pulse, np.abs(r) ** 2, atol=3e-3)
    np.testing.assert_allclose(through / pulse, np.abs(t) ** 2, atol=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_an_absorbing_slab_at_its_resonance_is_of_second_order(offset):
    """Where |n| reaches 3.6; with a rear that lies on a node, or in the middle of a cell."""
    frequencies = 2 * np.pi * np.array([0.85, 0.95, 1.0, 1.05, 1.15])
    epsilon = 1 + (2 * np.pi) ** 2 / ((2 * np.pi) ** 2 - frequencies**2 - 0.5j * frequencies)

    def deviation(cells):
        def spectra(media):
            simulation, state = dielectric_slab(
                1.0, thickness, cells=cells, frequencies=frequencies, media=media
            )
            end = simulate(simulation, state, math.ceil(60 / float(simulation.dt)))
            return [np.asarray(end.summary[n]["flux"]) for n in ("reflected", "transmitted")]

        thickness = 0.25 + offset / cells
        (back, _), (_, pulse) = spectra((Lorentz(1.0, 2 * np.pi, 0.5),)), spectra(())
        return -back / pulse - np.abs(slab_coefficients(frequencies, epsilon, thickness)[0]) ** 2

    coarse, fine = deviation(40), deviation(80)
    np.testing.assert_allclose(fine, 0, atol=0.005)
    np.testing.assert_allclose(coarse / fine, 4, atol=0.5)


def test_a_body_covers_its_center():
    grid = Grid(Box([1.0], False), (16,))
    for radius in (0.1, 0.3):  # both larger than the cell about the center, a node
        middle = coverage(Ball([0.5], radius), grid, grid.cell, 1).fraction
        node = coverage(Ball([0.5 + 0.5 / 16], radius), grid, grid.cell, 1).fraction
        assert float(middle[8]) == float(node[8]) == 1.0


@pytest.mark.parametrize("center", [(0.5, 0.5), (0.0, 0.0), (0.95, 0.5)])
def test_a_body_that_crosses_sides_that_repeat_comes_in_on_the_others(center):
    grid = Grid([1.0, 1.0], (40, 40))
    field = ElectromagneticField.of(grid, {"Ez": lambda x, y: 1.0 + 0 * x * y}, mode="TM")
    rod = Maxwell(Dielectric(9.0, shape=Ball(center, 0.2)))
    sim = Simulation(Yee(rod), dt=0.01, observers=Every(1, energy=ElectromagneticEnergy()))
    energy = simulate(sim, field, 1).frames["energy"][0]
    np.testing.assert_allclose(energy, 0.5 * (1 + 8 * math.pi * 0.2**2), rtol=2e-3)


def test_energy_with_both_halves_at_one_time_is_that_of_now():
    grid = Grid([1.0], (20,))
    wave = ElectromagneticField.of(grid, {"Ez": lambda x: jnp.cos(2 * jnp.pi * x)}, mode="TM")
    sim = Simulation(RK4(Maxwell()), dt=0.045, observers=Every(1, energy=ElectromagneticEnergy()))
    np.testing.assert_allclose(simulate(sim, wave, 40).frames["energy"], 0.25, rtol=1e-3)


def test_conductivity_absorbs_as_its_skin_depth_says():
    grid = Grid(Box([4.0], False), (160,))
    sheet = CurrentSheet("x", 0.5, "Ez", lambda t: jnp.sin(6.0 * t) * jnp.minimum(t / 3, 1.0))
    maxwell = Maxwell(Dielectric(2.0, 1.5), sheet)
    probe = Every(1, field=lambda now: now.state.Ez.data[jnp.array([40, 60])])
    end = advance(maxwell, ElectromagneticField.of(grid), 400, observers=probe)
    a, b = np.max(np.abs(np.asarray(end.frames["field"])[-80:]), axis=0)
    kappa = np.sqrt(2 + 1.5j / 6.0).imag * 6.0
    np.testing.assert_allclose(a / b, math.exp(kappa * 0.5), rtol=0.01)


def test_a_conductor_stops_a_field_within_a_step():
    """E in a uniform conductor falls as e^{−σt/ε}, damped currents as e^{−γt}, however long the steps are."""
    grid = Grid(Box([2.0, 2.0]), (4, 4))

    def step(maxwell, start, steps):
        return simulate(Simulation(Yee(maxwell), dt=0.2), start, steps).state

    for sigma in (0.3, 1e3):
        start = ElectromagneticField.of(grid, {"Ez": lambda x, y: 1 + 0 * x})
        field = step(Maxwell(Dielectric(2.0, sigma)), start, 3)
        np.testing.assert_allclose(field.Ez.data, math.exp(-0.3 * sigma), rtol=1e-12, atol=1e-12)
    maxwell = Maxwell(Drude(1e-9, 1e3))
    start = maxwell.add_memory(ElectromagneticField.of(grid))
    start = start.replace({"Jz": start.Jz.replace(data=jnp.ones_like(start.Jz.data))})
    assert float(jnp.max(jnp.abs(step(maxwell, start, 1).Jz.data))) < 1e-12


def test_substeps_and_explicit_methods_follow_media():
    grid = Grid([1.0], (32,))
    wave = {"Ez": lambda x: jnp.sin(2 * jnp.pi * x)}
    for medium in (Drude(300.0), Dielectric(0.01)):
        maxwell = Maxwell(medium)
        start = maxwell.add_memory(ElectromagneticField.of(grid, wave, mode="TM"))
        steps = Simulation(pk.CFLSubsteps(Yee(maxwell), max_substeps=64), dt=0.05)
        end = simulate(steps, start, 3)
        assert end.health.ok
        assert float(jnp.max(jnp.abs(end.state.Ez.data))) < 1.1
    lossy = ElectromagneticField.of(grid, wave, mode="TM")
    with pytest.raises(pk.errors.StepSizeError, match="too long for RK4 of Maxwell"):
        simulate(Simulation(RK4(Maxwell(Dielectric(1.0, 1e3))), dt=0.01), lossy, 1)


def test_a_current_along_a_magnetic_conductor_sends_all_of_it_into_the_box():
    """The wave to the other side comes back from the wall at once: −η K, and not half of it."""
    grid = Grid(Box([2.0], False), (80,))
    pulse = lambda t: jnp.exp(-(((t - 0.5) / 0.15) ** 2))
    for place in (0.0, 0.01):  # on the wall, and within the first cell
        maxwell = Maxwell(sources=CurrentSheet("x", place, "Ez", pulse))
        start = ElectromagneticField.of(
            grid, boundary={"x": (PerfectMagneticConductor(), PerfectConductor())}
        )
        end = advance(
            maxwell, start, 60, observers=Every(1, peak=lambda now: jnp.min(now.state.Ez.data))
        )
        np.testing.assert_allclose(np.min(end.frames["peak"]), -1.0, rtol=0.01)


@pytest.mark.slow
def test_a_plane_wave_stays_in_its_region_and_a_layer_takes_it():
    grid = Grid(Box([1.2, 1.0], False), (48, 40))
    pulse = WavePulse(20.0, 0.2, 0.9)
    wave = PlaneWave([0.8, 0.6], [0, 0, 1.0], pulse, margin=8, frequency=20.0)
    outside = lambda now: jnp.stack(
        [
            jnp.max(jnp.abs(jnp.where((x > 0.19) & (x < 1.01) & (y > 0.19) & (y < 0.81), 0, e)))
            for x, y in [now.state.grid.coordinates(now.state.grid.node)]
            for e in [now.state.Ez.data]
        ]
    )
    observe = Every(1, out=outside, peak=lambda now: jnp.max(jnp.abs(now.state.Ez.data)))
    end = advance(
        Maxwell(sources=wave, layer=ConvolutionalPML(6)),
        ElectromagneticField.of(grid),
        240,
        observers=observe,
    )
    assert np.max(end.frames["peak"]) > 0.95
    assert np.max(end.frames["out"]) < 0.02
    assert end.frames["peak"][-1] < 1e-3


@pytest.mark.slow
def test_a_dipole_radiates_what_larmor_says():
    # In the plane a line of current I cos ωt radiates μωI²/8 a length.
    omega, grid = 8.0, Grid(Box([2.0, 2.0], False), (80, 80))
    dipole = PointDipole([1.0, 1.0], "Ez", pk.electromagnetism.ContinuousWave(omega, rise=2.0))
    maxwell = Maxwell(sources=dipole, layer=ConvolutionalPML())
    dt = 0.9 * maxwell.longest_step(grid)
    period = round(2 * math.pi / omega / dt)
    omega = 2 * math.pi / (period * dt)
    maxwell = Maxwell(
        sources=PointDipole([1.0, 1.0], "Ez", pk.electromagnetism.ContinuousWave(omega, rise=2.0)),
        layer=ConvolutionalPML(),
    )
    # Power as the current's work on the field at its place.
    work = Every(1, field=lambda now: now.state.Ez.data[40, 40])
    end = simulate(
        Simulation(Yee(maxwell), dt=dt, observers=work),
        maxwell.add_memory(ElectromagneticField.of(grid)),
        8 * period,
    )
    e = np.asarray(end.frames["field"])[-period - 1 :]
    t = (np.arange(8 * period - period, 8 * period) + 0.5) * dt
    power = -np.mean(0.5 * (e[1:] + e[:-1]) * np.cos(omega * t))
    np.testing.assert_allclose(power, omega / 8, rtol=0.01)
