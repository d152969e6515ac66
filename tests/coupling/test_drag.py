"""Particles and fluids: momentum, relaxation, paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, DeclarationError, ShapeError, StepCount
from physkit.coupling import CIC, PCS, TSC, Drag, PassiveTracers
from physkit.fields import Field
from physkit.fields.equations import NavierStokes, vorticity
from physkit.geometry import Box, Grid, NoSlip
from physkit.integrators import ETDRK2, RK4, Strang
from physkit.particles import Particles, total_momentum
from physkit.simulate import Simulation, simulate
from physkit.testing import check_tendency

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_drag_battery_on_a_line",
    "test_momentum_is_conserved_between_walls",
)

GRID = Grid([2 * np.pi, 2 * np.pi], (12, 10))
CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


def vortices(grid=GRID):
    return Field.from_function(
        grid, lambda x, y: (jnp.sin(x) * jnp.cos(y), -jnp.cos(x) * jnp.sin(y))
    )


def state(n=7, grid=GRID, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2)) * np.asarray(grid.space.lengths)
    drops = Particles(x, rng.normal(size=(n, 2)), 0.5 + rng.random(n), grid.space)
    return {"drops": drops, "gas": vortices(grid)}


def drag(**options):
    return Drag(0.7, "drops", "gas", density=1.3, **options)


def momentum(s, density=1.3):
    return total_momentum(s["drops"]) + density * s["gas"].integral()


@pytest.mark.parametrize("friction", [0.7, np.linspace(0.3, 1.0, 7)], ids=["one", "each"])
def test_drag_battery(friction):
    term = Drag(friction, "drops", "gas", density=1.3, moving=True)
    check_tendency(term, state(), drives=["drops", "gas"])


def test_drag_battery_on_a_line():
    """The same in one dimension, where points near a drop are few: programs are small."""
    grid, rng = Grid([2 * np.pi], (12,)), np.random.default_rng(0)
    x, v = 2 * np.pi * rng.random((5, 1)), rng.normal(size=(5, 1))
    drops = Particles(x, v, 0.5 + rng.random(5), grid.space)
    gas = Field.from_function(grid, lambda x: (jnp.sin(x),))
    term = Drag(0.7, "drops", "gas", density=1.3, moving=True)
    check_tendency(term, {"drops": drops, "gas": gas}, drives=["drops", "gas"])


def test_tracer_battery():
    check_tendency(PassiveTracers("gas", "drops", PCS()), state(), drives=["drops"])


@pytest.mark.parametrize("kernel", [CIC(), PCS()])
def test_momentum_is_exchanged_exactly(kernel):
    flow = Strang(
        RK4(drag(kernel=kernel, moving=True)), ETDRK2(NavierStokes(0.05, component="gas"))
    )
    start = state(50)
    end = simulate(Simulation(flow, 0.05), start, 100).state
    assert float(jnp.max(jnp.abs(end["drops"].velocity - start["drops"].velocity))) > 0.1
    size = float(jnp.sum(jnp.abs(start["drops"].velocity)))
    np.testing.assert_allclose(momentum(end), momentum(start), atol=1e-14 * size)


@pytest.mark.filterwarnings(
    "ignore:nothing moves"
)  # drag alone; where the drops are does not matter
def test_relaxation_to_the_common_velocity():
    """A uniform stream and drops on every point: rate γ(1 + Nm/M)."""
    n = 12 * 10
    x = jnp.stack([a.reshape(-1) for a in jnp.broadcast_arrays(*GRID.coordinates())], axis=1)
    drops = Particles(x, jnp.ones((n, 2)), 0.4, GRID.space)
    start = {"drops": drops, "gas": Field(0.0, GRID, vector=True)}
    end = simulate(Simulation(RK4(drag()), 0.01), start, 100).state
    mass, gas = n * 0.4, 1.3 * float(GRID.space.volume)
    common = mass / (mass + gas)
    remaining = (1 - common) * np.exp(-0.7 * (1 + mass / gas))
    np.testing.assert_allclose(end["drops"].velocity, common + remaining, rtol=1e-9)
    np.testing.assert_allclose(end["gas"].data, common - remaining * mass / gas, rtol=1e-9)


def test_momentum_is_conserved_between_walls():
    """Cell-centered velocities between walls: momentum given is momentum taken."""
    grid = Grid(Box([2.0, 1.0], (True, False)), (6, 5))
    values = np.random.default_rng(1).normal(size=(2, 6, 5))
    drops = state(9)["drops"].replace(space=grid.space)
    inside = drops.position * (grid.space.lengths / GRID.space.lengths)[None]
    s = {
        "drops": drops.replace(position=inside),
        "gas": Field(values, grid, None, NoSlip(), vector=True),
    }
    rate = jax.jit(lambda s: drag(kernel=TSC()).rate(CLOCK, s))(s)
    gained = jnp.sum(s["drops"].mass[:, None] * rate["drops"].velocity, axis=0)
    lost = 1.3 * grid.sum(rate["gas"].values) * grid.cell_volume
    np.testing.assert_allclose(gained, -lost, rtol=1e-12)


def test_tracers_follow_streamlines():
    """In a steady vortex sin x sin y is constant along paths; by velocity and by vorticity alike."""
    grid = Grid([2 * np.pi, 2 * np.pi], (48, 48))
    start = Particles(np.array([[1.0, 0.7], [2.2, 1.9], [4.0, 0.6]]), space=grid.space)
    height = lambda p: np.sin(p.position[:, 0]) * np.sin(p.position[:, 1])
    ends = []
    for flow in (vortices(grid), vorticity(vortices(grid))):
        s = {"tracers": start, "flow": flow}
        ends.append(
            simulate(Simulation(RK4(PassiveTracers(kernel=PCS())), 0.05), s, 100).state["tracers"]
        )
        np.testing.assert_allclose(height(ends[-1]), height(start), atol=2e-3)
        assert np.all(np.abs(ends[-1].position - start.position) > 1e-2)
    np.testing.assert_allclose(ends[0].position, ends[1].position, atol=1e-9)


def test_frozen_drops_stay_and_take_no_momentum():
    s = state()
    s["drops"] = s["drops"].replace(frozen=jnp.arange(7) < 7)
    rate = drag().rate(CLOCK, s)
    assert not np.any(rate["drops"].velocity)
    assert not np.any(rate["gas"].values)


def test_bad_input():
    s = state()
    with pytest.raises(ShapeError, match="vector field"):
        drag().rate(CLOCK, {**s, "gas": Field(1.0, Grid([1.0], (4,)))})
    with pytest.raises(DeclarationError, match="particles and a field"):
        drag().rate(CLOCK, {**s, "gas": s["drops"]})
