"""Shallow water: the battery, what is conserved, rest over any ground, and bad input."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, Fault, ParameterError, ShapeError, StepCount, cast_floats
from physkit.fields import CGridShallowWaterState, Field, ShallowWaterState
from physkit.fields.equations import ShallowWater, ShallowWaterFV
from physkit.fields.finite_volume import AWENO5, HLL, WENO5, PiecewiseConstant
from physkit.geometry import Box, Dirichlet, Grid, Mirror, NoSlip, Outflow
from physkit.integrators import RK4, SSPRK2, CFLSubsteps
from physkit.simulate import Simulation, simulate
from physkit.testing import check_tendency

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_battery[torus]",
    "test_enstrophy_scheme_keeps_potential_enstrophy",
    "test_battery_of_finite_volumes[line]",
    "test_dry_cells_in_single_precision",
    "test_bad_input_of_finite_volumes_is_an_error",
)

TORUS = Grid([3.0, 2.0], (8, 6))
BASIN = Grid(Box([3.0, 2.0], False), (6, 5))
CHANNEL = Grid(Box([3.0, 2.0], (True, False)), (6, 5))
CLOCK = Clock.at(StepCount.of(0), 0.0, 0.01, None)


def random_flow(grid, boundary=None, seed=0):
    rng = np.random.default_rng(seed)
    draw = lambda at: jnp.asarray(rng.normal(size=grid.local_shape_at(at)))
    velocity = (0.3 * draw(grid.face("x")), 0.3 * draw(grid.face("y")))
    return CGridShallowWaterState.of(grid, 1.0 + 0.1 * draw(grid.cell), velocity, boundary)


def hills(grid, seed=3):
    return 0.2 * jnp.asarray(np.random.default_rng(seed).normal(size=grid.shape))


TERMS = [
    (lambda: ShallowWater(9.0, coriolis=0.7, beta=0.3), lambda: random_flow(TORUS)),
    (
        lambda: ShallowWater(
            9.0,
            coriolis=0.7,
            beta=0.3,
            bed=hills(BASIN),
            drag=0.1,
            wind_x=jnp.linspace(0.0, 1, 5),
            wind_y=0.2,
            viscosity=0.05,
            origin=1.0,
        ),
        lambda: random_flow(BASIN, {"x": Mirror(), "y": (NoSlip(), Mirror())}),
    ),
    (
        lambda: ShallowWater(9.0, coriolis=0.7, beta=0.3, conserves="enstrophy", component="sea"),
        lambda: {"sea": random_flow(CHANNEL)},
    ),
]


@pytest.mark.parametrize(("term", "state"), TERMS, ids=["torus", "basin", "channel"])
def test_battery(term, state):
    ignore = ("bed", "drag") if term().bed.ndim == 0 else ()
    check_tendency(term(), state(), ignore=["bed"] if ignore else [])


@pytest.mark.parametrize("grid", [TORUS, BASIN, CHANNEL], ids=["torus", "basin", "channel"])
def test_energy_and_mass_rates_vanish(grid):
    """d/dt by the chain rule along the tendency."""
    water = random_flow(grid)
    flow = ShallowWater(9.0, coriolis=0.7, beta=0.3, bed=hills(grid))
    rate = flow.rate(CLOCK, water)
    shifted = lambda s: water.shift(jax.tree.map(lambda x: s * x, rate))
    slope = lambda f: jax.jvp(f, (0.0,), (1.0,))[1]
    np.testing.assert_allclose(slope(lambda s: flow.energy(shifted(s))), 0, atol=1e-12)
    np.testing.assert_allclose(slope(lambda s: shifted(s).depth.integral()), 0, atol=1e-13)


def test_enstrophy_scheme_keeps_potential_enstrophy():
    water = random_flow(TORUS)

    def rate_of_enstrophy(flow):
        rate = flow.rate(CLOCK, water)

        def enstrophy(s):
            shifted = water.shift(jax.tree.map(lambda x: s * x, rate))
            q = flow.potential_vorticity(shifted).data
            corner = shifted.depth.data
            for axis in (0, 1):
                corner = 0.5 * (corner + jnp.roll(corner, 1, axis))
            return jnp.sum(corner * q**2)

        return abs(float(jax.jvp(enstrophy, (0.0,), (1.0,))[1]))

    # β is zero: the planetary part of q would jump across the seam of the torus.
    assert rate_of_enstrophy(ShallowWater(9.0, coriolis=0.7, conserves="enstrophy")) < 1e-11
    assert rate_of_enstrophy(ShallowWater(9.0, coriolis=0.7)) > 1e-6


@pytest.mark.parametrize("grid", [TORUS, BASIN], ids=["torus", "basin"])
def test_water_at_rest_stays_and_mass_is_kept(grid):
    ground = hills(grid)
    # Where y repeats f = f₀ + βy would jump.
    beta = 0.0 if grid.periodic[1] else 0.2
    sim = Simulation(RK4(ShallowWater(9.0, coriolis=0.7, beta=beta, bed=ground)), dt=0.01)
    lake = CGridShallowWaterState.of(grid, 1.0 - ground)
    end = simulate(sim, lake, 50).state
    for u in (end.velocity_x, end.velocity_y):
        assert float(jnp.max(jnp.abs(u.data))) < 1e-13
    water = random_flow(grid)
    end = simulate(sim, water, 50).state
    np.testing.assert_allclose(end.depth.integral(), water.depth.integral(), rtol=1e-14)
    if grid is BASIN:
        assert (end.velocity_x.data[jnp.array([0, -1])] == 0).all()
        assert (end.velocity_y.data[:, jnp.array([0, -1])] == 0).all()


def test_turned_basins_have_turned_flows():
    """Turning the basin by 90 degrees turns the flow: no axis is special."""
    water = random_flow(BASIN)
    flow = ShallowWater(9.0, coriolis=0.7, bed=hills(BASIN), viscosity=0.1)
    other = Grid(Box([2.0, 3.0], False), (5, 6))
    turned_water = CGridShallowWaterState.of(
        other,
        jnp.flip(water.depth.data.T, 0),
        (-jnp.flip(water.velocity_y.data.T, 0), jnp.flip(water.velocity_x.data.T, 0)),
    )
    rate = flow.rate(CLOCK, water)
    again = eqx.tree_at(lambda f: f.bed, flow, jnp.flip(flow.bed.T, 0)).rate(CLOCK, turned_water)
    turn = lambda x: jnp.flip(x.T, 0)
    np.testing.assert_allclose(again["depth"].values, turn(rate["depth"].values), atol=1e-12)
    inner = lambda x: x[1:-1]
    np.testing.assert_allclose(
        inner(again["velocity_x"].values), inner(-turn(rate["velocity_y"].values)), atol=1e-12
    )


def test_bad_input_is_an_error():
    with pytest.raises(ParameterError, match="walls, Mirror"):
        CGridShallowWaterState.of(BASIN, 1.0, boundary=Dirichlet(0.0))
    with pytest.raises(ParameterError, match="must be positive; got -1"):
        CGridShallowWaterState.of(BASIN, -1.0)
    with pytest.raises(ShapeError, match="plane grid"):
        CGridShallowWaterState.of(Grid([1.0], (4,)), 1.0)
    depth = Field(1.0, TORUS)
    with pytest.raises(ShapeError, match="velocity_x is a scalar at face"):
        CGridShallowWaterState(depth, depth, depth)
    with pytest.raises(ParameterError, match="conserves"):
        ShallowWater(conserves="mass")
    with pytest.raises(ShapeError, match="bed of shape"):
        ShallowWater(bed=jnp.ones((2, 2))).rate(CLOCK, random_flow(TORUS))
    with pytest.raises(ShapeError, match="CGridShallowWaterState"):
        ShallowWater().rate(CLOCK, depth)
    dry = random_flow(TORUS).shift(
        {"depth": random_flow(TORUS).depth.map(lambda h: -2 * h).increment()}
    )
    assert Fault.POSITIVITY in Fault(int(dry.faults()))


# --- by finite volumes --------------------------------------------------------------------------


def waves(grid, boundary=None):
    """Smooth, with no two cells alike: limiters and upwinding have kinks."""
    bump = lambda *x: sum(jnp.sin((1.7 + k) * y + 0.4) for k, y in enumerate(x))
    velocity = (lambda *x: 0.3 * bump(*x), lambda *x: 0.2 * bump(*x) + 0.1)
    if grid.dimension == 1:  # neighbors' wave speeds well apart: HLL takes the faster
        velocity = (lambda x: 0.5 * x,)
    return ShallowWaterState.of(grid, lambda *x: 1 + 0.2 * bump(*x), velocity, boundary)


LINE = Grid(Box([3.0], False), (9,))
FINITE_VOLUME_TERMS = [
    (
        lambda: ShallowWaterFV(
            9.0,
            bed=0.3 * waves(TORUS).depth.data,
            coriolis=0.7,
            beta=0.3,
            drag=0.1,
            wind=[0.2, 0.3],
        ),
        lambda: waves(TORUS),
    ),
    (
        lambda: ShallowWaterFV(
            9.0, riemann=HLL(), reconstruction=PiecewiseConstant(), component="sea"
        ),
        lambda: {"sea": waves(LINE, {"x": (Mirror(), Outflow())})},
    ),
]


@pytest.mark.parametrize(("term", "state"), FINITE_VOLUME_TERMS, ids=["plane", "line"])
def test_battery_of_finite_volumes(term, state):
    plane = term().component is None
    ignore = ["dry", "origin"] if plane else ["dry", "origin", "coriolis", "beta", "bed"]
    check_tendency(term(), state(), ignore=ignore)


@pytest.mark.parametrize("grid", [LINE, BASIN], ids=["line", "basin"])
def test_a_lake_with_islands_stays_at_rest(grid):
    ground = 1.5 * hills(grid) + jnp.asarray(np.random.default_rng(1).uniform(size=grid.shape))
    lake = ShallowWaterState.of(grid, jnp.maximum(0.6 - ground, 0.0), boundary=Mirror())
    assert float(lake.depth.data.min()) == 0
    end = simulate(Simulation(SSPRK2(ShallowWaterFV(9.0, bed=ground)), dt=0.01), lake, 50).state
    assert float(jnp.max(jnp.abs(end.momentum.data))) < 1e-14
    np.testing.assert_allclose(end.depth.data, lake.depth.data, atol=1e-14)


def test_a_dam_break_onto_dry_ground_follows_ritter():
    """h = (2c − x/t)²/9g behind the front, which runs at 2c."""
    grid = Grid(Box([2.0], False), (200,))
    dam = ShallowWaterState.of(grid, lambda x: jnp.where(x < 1, 1.0, 0.0), boundary=Mirror())
    sim = Simulation(CFLSubsteps(SSPRK2(ShallowWaterFV(1.0)), 0.45, 4), dt=0.005)
    end = simulate(sim, dam, 60).state
    x, t = grid.coordinates()[0] - 1, 0.3
    exact = jnp.where(x < -t, 1.0, jnp.where(x > 2 * t, 0.0, (2 - x / t) ** 2 / 9))
    assert float(jnp.mean(jnp.abs(end.depth.data - exact))) < 2e-3
    assert float(end.depth.data.min()) >= 0
    np.testing.assert_allclose(end.depth.integral(), dam.depth.integral(), rtol=1e-13)


@pytest.mark.parametrize(("deepest", "dry"), [(1e-4, None), (1.0, 1e-12)])
def test_dry_cells_in_single_precision(deepest, dry):
    """Fourth powers of such depths are 0."""
    law = cast_floats(ShallowWaterFV(dry=dry), jnp.float32)
    depth = jnp.array([deepest, 0.5 * deepest, 0.0], jnp.float32)

    def velocity(depth, momentum):
        return law.primitive((depth, momentum))[1]

    np.testing.assert_allclose(velocity(depth, 0.3 * depth), [0.3, 0.3, 0.0], rtol=1e-6)
    slopes = jax.grad(lambda *x: jnp.sum(velocity(*x)), (0, 1))(depth, 0.3 * depth)
    np.testing.assert_allclose(slopes[0][:2], -0.3 / depth[:2], rtol=1e-5)
    assert np.isfinite(slopes).all()


def test_bad_input_of_finite_volumes_is_an_error():
    with pytest.raises(ParameterError, match="cannot be negative; got -1"):
        ShallowWaterState.of(LINE, -1.0, boundary=Mirror())
    with pytest.raises(ParameterError, match=r"Mirror.. or Outflow"):
        ShallowWaterState.of(LINE, 1.0, boundary=Dirichlet(0.0))
    with pytest.raises(ShapeError, match="2 components; got 3"):
        ShallowWaterState.of(TORUS, 1.0, (0.0, 0.0, 0.0))
    with pytest.raises(ShapeError, match=r"ShallowWaterState\.of"):
        ShallowWaterFV().rate(CLOCK, random_flow(TORUS))
    for scheme in (WENO5(), AWENO5()):
        with pytest.raises(ShapeError, match="keep depths positive; take MUSCL"):
            ShallowWaterFV(reconstruction=scheme)
    with pytest.raises(ShapeError, match="bed of shape"):
        ShallowWaterFV(bed=jnp.ones(3)).rate(CLOCK, waves(TORUS))


def test_water_on_a_line_does_not_turn():
    grid = Grid(Box([1.0], False), (8,))
    sim = Simulation(SSPRK2(ShallowWaterFV(coriolis=1.0)), dt=0.01)
    with pytest.raises(ShapeError, match="on a line leave them out"):
        simulate(sim, ShallowWaterState.of(grid, 1.0, 0.1, Mirror()), 1)
