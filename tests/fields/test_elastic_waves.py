"""Elastic waves: energy, free surfaces, differences of order 4, derivatives, devices, wrong input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import NotReversible, ParameterError, ShapeError, StepSizeError, replace_fields
from physkit.fields import ElasticField, Field
from physkit.fields.equations import (
    ConvolutionalPML,
    ElasticWaves,
    MomentSource,
    PointForce,
    WavePulse,
)
from physkit.fields.operators import difference
from physkit.geometry import Box, Dirichlet, FreeSurface, Grid, Neumann
from physkit.integrators import RK4, StaggeredLeapfrog
from physkit.observe import Every, Sensors, WaveEnergy
from physkit.simulate import NestedCheckpoint, Reversible, Simulation, simulate
from physkit.testing import check_devices, check_tendency

GRID = Grid(Box([1.0, 1.2], (True, False)), (8, 6))
GROUND = {"y_low": Dirichlet(0.0), "y_high": FreeSurface()}


def random_field(grid, boundary=None, seed=0):
    rng = np.random.default_rng(seed)
    field = ElasticField.of(grid, None, boundary)
    parts = {
        n: p.replace(data=jnp.asarray(rng.normal(size=p.data.shape))).at_time(0.0)
        for n, p in field.parts().items()
    }
    return field.replace(parts)


def uneven(grid, seed=1):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(x) for x in rng.uniform(1.0, 2.0, (3, *grid.shape))]


@pytest.mark.parametrize(
    ("grid", "boundary"),
    [
        (GRID, GROUND),
        pytest.param(
            Grid(Box([1.0, 1.2, 0.8], (True, False, True)), (4, 5, 4)),
            GROUND,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_energy_is_constant_in_any_solid_with_a_free_surface(grid, boundary):
    waves = ElasticWaves(*uneven(grid), order=2)
    sim = Simulation(
        StaggeredLeapfrog(waves),
        dt=0.9 * waves.longest_step(grid),
        observers=Every(1, energy=WaveEnergy()),
    )
    energy = np.asarray(simulate(sim, random_field(grid, boundary), 40).frames["energy"])
    np.testing.assert_allclose(energy, energy[0], rtol=1e-12)


def test_differences_of_order_four():
    errors = []
    for n in (16, 32):
        ring, line = Grid([1.0], (n,)), Grid(Box([1.0], False), (n,))
        wave = lambda x: jnp.sin(2 * jnp.pi * x)
        slope = lambda x: 2 * jnp.pi * jnp.cos(2 * jnp.pi * x)
        worst = []
        for field in (
            Field.from_function(ring, wave),
            Field.from_function(ring, wave, ring.face("x")),
            Field.from_function(line, wave, None, Dirichlet(0.0)),  # odd about both walls
        ):
            found = difference(field, "x", order=4)
            worst.append(
                np.max(np.abs(found.data - slope(found.grid.coordinates(found.location)[0])))
            )
        errors.append(worst)
    order = np.log2(np.array(errors[0]) / errors[1])
    assert (order > 3.9).all()
    assert (order < 4.1).all()
    # From points on walls to cells: exact for straight lines up to the walls.
    straight = Field.from_function(line, lambda x: 3 * x, line.face("x"), Neumann(3.0))
    np.testing.assert_allclose(difference(straight, "x", order=4).data, 3.0, rtol=1e-12)
    with pytest.raises(ParameterError, match="order 2 or 4"):
        difference(straight, "x", order=3)


@pytest.mark.slow
def test_waves_come_back_from_the_ground_as_they_should():
    # Straight up: a free surface moves twice as far and returns waves as they were, a wall upside down.
    grid = Grid(Box([0.1, 2.0], (True, False)), (4, 80))
    waves = ElasticWaves.from_speeds(2.0, 1.0, 1.5)
    hump = lambda x, y, c: jnp.exp(-(((y - 1.0) / 0.15) ** 2)) + 0 * x
    rho, p, s = 1.5, 2.0, 1.0
    start = ElasticField.of(
        grid,
        {
            "velocity_y": lambda x, y: hump(x, y, p),
            "stress_yy": lambda x, y: -rho * p * hump(x, y, p),
            "stress_xx": lambda x, y: -rho * (p**2 - 2 * s**2) / p * hump(x, y, p),
            "velocity_x": lambda x, y: hump(x, y, s),
            "stress_xy": lambda x, y: -rho * s * hump(x, y, s),
        },
        GROUND,
    )
    middle = jnp.array([[0.05, 1.0], [0.05, 2.0]])
    dt = 0.005
    observe = Every(1, p=Sensors(middle, "velocity_y"), s=Sensors(middle, "velocity_x"))
    sim = Simulation(StaggeredLeapfrog(waves), dt=dt, observers=observe)
    frames = simulate(sim, start, 800).frames
    for name, speed in (("p", p), ("s", s)):
        seen = np.asarray(frames[name])
        steps = round(1 / speed / dt)
        np.testing.assert_allclose(seen[:, 1].max(), 2.0, atol=0.02)
        assert abs(seen[: 3 * steps, 1].argmax() - steps) <= 2
        # Back in the middle after 2/c as it was, after 4/c upside down.
        np.testing.assert_allclose(seen[2 * steps, 0], 1.0, atol=0.02)
        np.testing.assert_allclose(seen[4 * steps, 0], -1.0, atol=0.03)


def layered(order, adjoint=None):
    grid = Grid(Box([1.0, 1.2], (True, False)), (8, 8))
    waves = ElasticWaves(
        *uneven(grid),
        sources=(
            PointForce([0.33, 0.5], [1.0, 0.5], WavePulse(6.0, 0.2, 0.6)),
            MomentSource([0.6, 0.5], [[1.0, 0.3], [0.3, -1.0]], jnp.sin),
        ),
        layer=ConvolutionalPML(3, sides=("y_low",), stretching=2.0, shift=0.1),
        order=order,
    )
    watch = Every(
        2, v=Sensors([[0.2, 0.5], [0.5, 1.2]], "velocity_y"), s=Sensors([[0.2, 0.6]], "stress_xy")
    )
    options = {} if adjoint is None else {"adjoint": adjoint}
    sim = Simulation(
        StaggeredLeapfrog(waves), dt=0.9 * waves.longest_step(grid), observers=watch, **options
    )
    return sim, waves.add_memory(random_field(grid, GROUND))


@pytest.mark.compiled_quickly
@pytest.mark.slow
@pytest.mark.parametrize("order", [2, 4])
def test_devices_agree(order):
    check_devices(*layered(order), 6, devices=[(2, 2)])


@pytest.mark.slow
def test_float32_and_derivatives_by_the_solid():
    sim, state = layered(4)
    end = jax.jit(lambda s: simulate(sim, s, 6).state)(state)
    low = jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x, state)
    near = simulate(sim, low, 6).state
    assert near.stress_xy.data.dtype == jnp.float32
    np.testing.assert_allclose(near.stress_xy.data, end.stress_xy.data, atol=2e-4)
    waves = sim.integrator.equations

    @jax.jit
    def loss(shift):
        moved = {
            n: getattr(waves, n) + shift[i]
            for i, n in enumerate(("lame_lambda", "lame_mu", "density"))
        }
        model = replace_fields(waves, moved)
        moved_sim = replace_fields(sim, {"integrator": StaggeredLeapfrog(model)})
        return jnp.sum(simulate(moved_sim, state, 6).frames["v"] ** 2)

    along = jnp.asarray(np.random.default_rng(3).normal(size=(3, 8, 8)))
    slope = jnp.sum(jax.jit(jax.grad(loss))(jnp.zeros((3, 8, 8))) * along)
    difference = (loss(1e-5 * along) - loss(-1e-5 * along)) / 2e-5
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


@pytest.mark.slow
def test_lossless_steps_go_back_bit_by_bit():
    start = ElasticField.of(GRID, None, GROUND)

    def power(strength, adjoint):
        source = PointForce([0.33, 0.5], [1.0, 0.5], WavePulse(6.0, 0.2, 0.6, strength))
        waves = ElasticWaves(*uneven(GRID), sources=source)
        sim = Simulation(StaggeredLeapfrog(waves), dt=0.03, adjoint=adjoint)
        return (simulate(sim, start, 30).state.velocity_y ** 2).integral()

    exact = Reversible(smallest_range=1e4)
    slopes = [
        jax.jit(jax.grad(lambda s, a=a: power(s, a)))(1.0) for a in (exact, NestedCheckpoint())
    ]
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-9)
    with pytest.raises(NotReversible, match="absorbs"):
        simulate(*layered(2, Reversible()), 2)


@pytest.mark.slow
def test_battery_of_the_rates():
    waves = ElasticWaves(
        *uneven(GRID), sources=PointForce([0.33, 0.55], [1.0, 0.5], WavePulse(6.0, 0.2, 0.6))
    )
    check_tendency(waves, random_field(GRID, GROUND))
    small = Simulation(RK4(waves), dt=0.001)
    end = simulate(small, random_field(GRID, GROUND), 2).state
    assert np.isfinite(np.asarray(end.velocity_x.data)).all()


@pytest.mark.slow
def test_the_free_surface_of_order_four_is_stable():
    grid = Grid(Box([1.0, 1.2], (True, False)), (16, 20))
    waves = ElasticWaves(*uneven(grid))
    dt = 0.95 * waves.longest_step(grid)
    sim = Simulation(StaggeredLeapfrog(waves), dt=dt, observers=Every(1000, energy=WaveEnergy()))
    energy = np.asarray(simulate(sim, random_field(grid, GROUND), 20_000).frames["energy"])
    assert (energy < 1.5 * energy[0]).all()
    assert (energy > 0.5 * energy[0]).all()


def test_wrong_input_is_explained():
    field = ElasticField.of(GRID, None, GROUND)

    def begin(waves, dt=0.01):
        return simulate(Simulation(StaggeredLeapfrog(waves), dt=dt), field, 1)

    with pytest.raises(StepSizeError, match="limit of stability"):
        begin(ElasticWaves(), 0.2)
    with pytest.raises(ParameterError, match="λ \\+ 2μ must be positive"):
        ElasticWaves(-3.0, 1.0)
    with pytest.raises(ParameterError, match="2λ \\+ 2μ must be positive"):
        begin(ElasticWaves(-1.19, 1.0))
    with pytest.raises(ParameterError, match=r"a force at \[0\.5, 1\.5\] is outside"):
        begin(ElasticWaves(sources=PointForce([0.5, 1.5], [1.0, 0.0], jnp.sin)))
    with pytest.raises(ShapeError, match="a moment on this grid"):
        begin(ElasticWaves(sources=MomentSource([0.5, 0.5], jnp.eye(3), jnp.sin)))
    with pytest.raises(ShapeError, match="lame_mu of shape"):
        begin(ElasticWaves(1.0, jnp.ones((6, 8))))
    with pytest.raises(ShapeError, match="add_memory"):
        begin(ElasticWaves(layer=ConvolutionalPML(3)))
    with pytest.raises(ParameterError, match="order 2 or 4"):
        ElasticWaves(order=3)
    with pytest.raises(ParameterError, match="FreeSurface"):
        ElasticField.of(GRID, None, Neumann(0.0))
    with pytest.raises(ParameterError, match="in the plane or in space"):
        ElasticField.of(Grid([1.0], (8,)))
    with pytest.raises(ParameterError, match="no part"):
        ElasticField.of(GRID, {"stress_zz": 1.0}, GROUND)


@pytest.mark.parametrize("height", [0.5, 0.95, 1.0])
@pytest.mark.parametrize("axis", [0, 1])
def test_all_of_a_force_acts_on_and_near_a_free_surface(height, axis):
    grid = Grid(Box([1.0, 1.0], (True, False)), (8, 8))
    push = PointForce([0.5, height], np.eye(2)[axis], lambda t: 1.0 + 0 * t)
    sim = Simulation(StaggeredLeapfrog(ElasticWaves(1.0, 1.0, 1.0, sources=push, order=2)), dt=0.02)
    moved = simulate(sim, ElasticField.of(grid, None, {"y": FreeSurface()}), 20).state
    momentum = (moved.velocity_x, moved.velocity_y)[axis].integral()
    np.testing.assert_allclose(momentum, 19.5 * 0.02, rtol=1e-9)
