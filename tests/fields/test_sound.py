"""Sound by k-space steps: exact waves, energy, absorption, sensors, derivatives, devices, wrong input."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    DeclarationError,
    NotReversible,
    ObserverError,
    ParameterError,
    ShapeError,
    StepSizeError,
    replace_fields,
)
from physkit.fields import AcousticField
from physkit.fields.equations import (
    ConvolutionalPML,
    ExtendedSource,
    KSpaceAcoustics,
    PointSource,
    PowerLawAbsorption,
    WavePulse,
)
from physkit.geometry import Box, Grid
from physkit.integrators import RK4, StaggeredLeapfrog
from physkit.observe import Every, Sensors, WaveEnergy
from physkit.simulate import NestedCheckpoint, Reversible, Simulation, simulate
from physkit.testing import check_devices, check_tendency

GRID = Grid([1.0, 1.2], (8, 6))


def random_sound(grid, seed=0):
    rng = np.random.default_rng(seed)
    field = AcousticField.of(grid)
    parts = {
        n: p.replace(data=jnp.asarray(rng.normal(size=p.data.shape)))
        for n, p in field.parts().items()
    }
    return field.replace(parts)


def uneven(seed=1):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(x) for x in rng.uniform(1.0, 2.0, (2, *GRID.shape))]


@pytest.mark.parametrize("fraction", [0.4, 0.99])
def test_steps_are_exact_in_a_homogeneous_fluid(fraction):
    # Every wave of random noise from rest: p(k, t) = p(k, 0) cos ckt, at any dt below the limit.
    acoustics, start = KSpaceAcoustics(1.5, 2.0), random_sound(GRID)
    rest = start.replace({n: p.replace(data=0 * p.data) for n, p in start.velocity.items()})
    dt = fraction * acoustics.longest_step(GRID)
    end = simulate(Simulation(StaggeredLeapfrog(acoustics), dt=dt), rest, 23).state
    k = np.sqrt(sum(np.asarray(x) ** 2 for x in GRID.wavenumbers()))
    waves = np.fft.rfft2(rest.pressure.data) * np.cos(1.5 * k * 23 * dt)
    np.testing.assert_allclose(end.pressure.data, np.fft.irfft2(waves, GRID.shape), atol=1e-12)


def test_energy_is_constant_in_any_fluid_and_sensors_read_the_sum_of_waves():
    speed, density = uneven()
    acoustics = KSpaceAcoustics(speed, density)
    at = jnp.array([[0.0625, 0.1], [0.31, 0.77]])
    observe = Every(1, energy=WaveEnergy(), p=Sensors(at, "pressure"))
    sim = Simulation(
        StaggeredLeapfrog(acoustics), dt=0.3 * acoustics.longest_step(GRID), observers=observe
    )
    result = simulate(sim, random_sound(GRID), 40)
    np.testing.assert_allclose(result.frames["energy"], result.frames["energy"][0], rtol=1e-12)
    # A wave between the points, and the value on one of them.
    smooth = AcousticField.of(
        GRID, {"pressure": lambda x, y: jnp.sin(2 * jnp.pi * (2 * x + y / 1.2) + 0.3)}
    )
    read = simulate(sim, smooth, 1).frames["p"][0]
    np.testing.assert_allclose(
        read, jnp.sin(2 * jnp.pi * (2 * at[:, 0] + at[:, 1] / 1.2) + 0.3), atol=1e-12
    )


def test_absorption_slows_and_damps_as_its_power_law_says():
    grid, k = Grid([1.0], (64,)), 2 * math.pi * 6
    for exponent, coefficient in ((1.5, 1e-4), (0.6, 1e-2)):
        law = PowerLawAbsorption(coefficient, exponent)
        acoustics = KSpaceAcoustics(absorption=law)
        start = acoustics.add_memory(AcousticField.of(grid, {"pressure": lambda x: jnp.cos(k * x)}))
        watch = Every(
            1,
            p=lambda now: (
                2 * jnp.mean(now.state.pressure.data * jnp.cos(k * grid.coordinates()[0]))
            ),
        )
        dt = 0.1 * acoustics.longest_step(grid)
        p = np.asarray(
            simulate(
                Simulation(StaggeredLeapfrog(acoustics), dt=dt, observers=watch), start, 300
            ).frames["p"]
        )
        # p'' = a p' − b p: two numbers from all triples.
        (a, b), *_ = np.linalg.lstsq(np.stack([p[3:-1], p[2:-2]], 1), p[4:], rcond=None)
        z = np.log(np.roots([1, -a, -b])[0]) / dt
        omega = abs(z.imag)
        np.testing.assert_allclose(-z.real * k / omega, coefficient * omega**exponent, rtol=0.01)
        slower = 1 + coefficient * math.tan(0.5 * math.pi * exponent) * omega ** (exponent - 1)
        np.testing.assert_allclose(k / omega, slower, rtol=3e-4)


def lossy(adjoint=None):
    speed, density = uneven()
    acoustics = KSpaceAcoustics(
        speed,
        density,
        absorption=PowerLawAbsorption(1e-3, 1.4),
        sources=(
            PointSource([0.44, 0.5], WavePulse(6.0, 0.2, 0.6)),
            ExtendedSource(density, jnp.sin),
        ),
        layer=ConvolutionalPML(3, sides=("x_low", "y_high"), order=2.0, shift=0.1),
    )
    dt = 0.3 * acoustics.longest_step(GRID)
    watch = Every(2, p=Sensors([[0.5, 0.3]], "pressure"), u=Sensors([[0.5, 0.3]], "velocity_y"))
    options = {} if adjoint is None else {"adjoint": adjoint}
    sim = Simulation(StaggeredLeapfrog(acoustics), dt=dt, observers=watch, **options)
    return sim, acoustics.add_memory(random_sound(GRID))


@pytest.mark.slow
def test_devices_agree():
    check_devices(*lossy(), 6, devices=[(2, 1)])


@pytest.mark.slow
def test_float32_and_derivatives_by_the_fluid():
    sim, state = lossy()
    end = jax.jit(lambda s: simulate(sim, s, 6).state)(state)
    low = jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x, state)
    near = simulate(sim, low, 6).state
    assert near.pressure.data.dtype == jnp.float32
    np.testing.assert_allclose(near.pressure.data, end.pressure.data, atol=2e-4)

    @jax.jit
    def loss(shift):
        model = replace_fields(
            sim.integrator.equations, {"speed": sim.integrator.equations.speed + shift}
        )
        moved = replace_fields(sim, {"integrator": StaggeredLeapfrog(model)})
        return jnp.sum(simulate(moved, state, 6).frames["p"] ** 2)

    rng = np.random.default_rng(3)
    along = jnp.asarray(rng.normal(size=GRID.shape))
    slope = jnp.sum(jax.jit(jax.grad(loss))(jnp.zeros(GRID.shape)) * along)
    difference = (loss(1e-5 * along) - loss(-1e-5 * along)) / 2e-5
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


@pytest.mark.slow
def test_lossless_steps_go_back_bit_by_bit():
    start = AcousticField.of(GRID)
    speed, density = uneven()

    def power(strength, adjoint):
        source = PointSource([0.44, 0.5], WavePulse(6.0, 0.2, 0.6, strength))
        acoustics = KSpaceAcoustics(speed, density, sources=source)
        sim = Simulation(StaggeredLeapfrog(acoustics), dt=0.02, adjoint=adjoint)
        return (simulate(sim, start, 40).state.pressure ** 2).integral()

    exact = Reversible(smallest_range=1e4)
    slopes = [
        jax.jit(jax.grad(lambda s, a=a: power(s, a)))(1.0) for a in (exact, NestedCheckpoint())
    ]
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-9)
    np.testing.assert_allclose(slopes[0], 2 * power(1.0, exact), rtol=1e-6)
    with pytest.raises(NotReversible, match="absorbs"):
        simulate(*lossy(Reversible()), 2)


@pytest.mark.slow
def test_battery_of_the_rates():
    speed, density = uneven()
    acoustics = KSpaceAcoustics(
        speed, density, sources=PointSource([0.44, 0.5], WavePulse(6.0, 0.2, 0.6))
    )
    check_tendency(acoustics, random_sound(GRID))
    small = Simulation(RK4(acoustics), dt=0.001)
    assert np.isfinite(np.asarray(simulate(small, random_sound(GRID), 2).state.pressure.data)).all()


def test_wrong_input_is_explained():
    field, step = AcousticField.of(GRID), StaggeredLeapfrog

    def begin(acoustics, dt=0.01, **options):
        return simulate(Simulation(step(acoustics), dt=dt, **options), field, 1)

    with pytest.raises(StepSizeError, match=r"limit of stability, 0\.1"):
        begin(KSpaceAcoustics(), 0.2)
    damping = PowerLawAbsorption(0.01, 1.5)
    lossless = KSpaceAcoustics().longest_step(GRID)
    assert 0.2 * lossless < KSpaceAcoustics(absorption=damping).longest_step(GRID) < 0.95 * lossless
    with pytest.raises(ParameterError, match=r"a source at \[1\.5, 0\.5\] is outside of the box"):
        begin(KSpaceAcoustics(sources=PointSource([1.5, 0.5], jnp.sin)))
    with pytest.raises(ShapeError, match="position of a source"):
        begin(KSpaceAcoustics(sources=PointSource([0.5], jnp.sin)))
    with pytest.raises(ShapeError, match="one number for each cell"):
        begin(KSpaceAcoustics(sources=ExtendedSource(jnp.ones(8), jnp.sin)))
    with pytest.raises(ParameterError, match="a sensor at"):
        begin(KSpaceAcoustics(), observers=Every(1, p=Sensors([[0.5, 2.0]], "pressure")))
    energy = Every(1, energy=WaveEnergy())
    by_runge_kutta = Simulation(RK4(KSpaceAcoustics()), dt=0.01, observers=energy)
    with pytest.raises(ObserverError, match="RK4 has it at the time of the pressure"):
        simulate(by_runge_kutta, random_sound(GRID), 1)
    with pytest.raises(ObserverError, match="the field has velocity_x"):
        begin(KSpaceAcoustics(), observers=Every(1, p=Sensors([[0.5, 0.5]], "velocity_z")))
    with pytest.raises(ShapeError, match="speed of shape"):
        begin(KSpaceAcoustics(jnp.ones((6, 8))))
    with pytest.raises(ShapeError, match="add_memory"):
        begin(KSpaceAcoustics(layer=ConvolutionalPML(3)))
    with pytest.raises(ParameterError, match="speed must be positive"):
        KSpaceAcoustics(-1.0)
    with pytest.raises(ParameterError, match="not 1"):
        PowerLawAbsorption(0.1, 1.0)
    with pytest.raises(DeclarationError, match="PointSource"):
        KSpaceAcoustics(sources=jnp.sin)
    with pytest.raises(ParameterError, match="walls along x"):
        AcousticField.of(Grid(Box([1.0], False), (8,)))
    with pytest.raises(ParameterError, match="no part"):
        AcousticField.of(GRID, {"p": 1.0})
    absorbing = KSpaceAcoustics(absorption=damping)
    with pytest.raises(DeclarationError, match="StaggeredLeapfrog"):
        simulate(Simulation(RK4(absorbing), dt=0.01), absorbing.add_memory(field), 1)
