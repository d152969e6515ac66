"""Riemann problems: the exact solution, and gas at its limits."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.fields import ShallowWaterState, finite_volume_rate
from physkit.testing import check_gradient
from physkit.testing.validation.fields._gas import TORO

from .riemann_solvers import SOLVERS, name

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_exact_solution_matches_the_tables[float64-1]",
    "test_a_riemann_problem_of_no_gas_is_an_error",
    "test_gas_and_equation_have_one_gamma",
    "test_gamma_of_a_gas_stays_through_runs_and_devices",
)


@pytest.mark.parametrize(("states", "pressure", "velocity"), TORO.values(), ids=TORO)
def test_exact_solution_matches_the_tables(states, pressure, velocity, dtype):
    left, right = ([jnp.asarray(x, dtype) for x in side] for side in states)
    fan = pk.riemann.exact_riemann(left, right, 1.4)
    assert fan.pressure.dtype == dtype
    np.testing.assert_allclose(fan.pressure, pressure, rtol=1e-5, atol=5e-6)
    np.testing.assert_allclose(fan.velocity, velocity, rtol=1e-5, atol=5e-5)
    far = max(abs(float(s)) for s in (*fan.left_speeds, *fan.right_speeds)) + 1
    for speed, state in ((-far, left), (far, right)):
        np.testing.assert_allclose(fan(speed), state, rtol=1e-6)


def test_riemann_problems_with_vacuum():
    receding = pk.riemann.exact_riemann((1.0, -5.0, 0.4), (1.0, 5.0, 0.4), 1.4)
    np.testing.assert_array_equal(jnp.stack(receding(0.0)), 0.0)
    assert np.all(np.isfinite(jnp.stack(receding(jnp.linspace(-9, 9, 40)))))
    next_to_vacuum = pk.riemann.exact_riemann((1.0, 0.0, 1.0), (0.0, 0.0, 0.0), 1.4)
    assert next_to_vacuum(2 * 1.4**0.5 / 0.4 - 1e-6)[0] < 1e-20
    assert next_to_vacuum(0.0)[0] > 0.1
    mirrored = pk.riemann.exact_riemann((0.0, 0.0, 0.0), (1.0, 0.0, 1.0), 1.4)
    np.testing.assert_array_equal(mirrored(-1.0)[0], next_to_vacuum(1.0)[0])


def test_a_riemann_problem_of_no_gas_is_an_error():
    gas = (1.0, 1.0, 0.1)
    for other, gamma, match in (
        (gas, 1.0, "must exceed 1; got 1"),
        ((-0.125, 0.0, 0.1), 1.4, r"density on the right cannot be negative; got -0\.125"),
        ((1.0, 0.0, -0.1), 1.4, "pressure on the right cannot be negative"),
        ((1.0, -1.0, 0.0), 1.4, "has no pressure.* A vacuum has no density either"),
    ):
        with pytest.raises(pk.errors.ParameterError, match=match):
            pk.riemann.exact_riemann(gas, other, gamma)
    # Noh's problem, of which the pressure is the limit: 4 times as dense, with p = 4/3.
    cold = pk.riemann.exact_riemann((1.0, 1.0, 1e-12), (1.0, -1.0, 1e-12), 5 / 3)
    np.testing.assert_allclose([cold.pressure, cold.density_left], [4 / 3, 4], rtol=1e-6)


def test_derivatives_of_the_exact_solution():
    def star(p):
        fan = pk.riemann.exact_riemann(p["left"], p["right"], p["gamma"])
        return {"p": fan.pressure, "u": fan.velocity, "fan": jnp.stack(fan(-0.5))}

    states = [tuple(map(jnp.asarray, s)) for s in ((1.0, 0.1, 1.0), (0.2, -0.1, 0.2))]
    check_gradient(star, {"left": states[0], "right": states[1], "gamma": jnp.asarray(1.4)})


@pytest.mark.parametrize(
    "solver", [*SOLVERS[:3], pytest.param(SOLVERS[3], marks=pytest.mark.slow)], ids=name
)
def test_toros_problems_stay_positive_and_bounded(solver):
    """Some steps of each from the jump: positive, and within the exact solution's bounds."""
    left, right = (jnp.asarray([states[0][k] for states in TORO.values()]) for k in (0, 1))
    fan = pk.riemann.exact_riemann(left.T, right.T, 1.4)
    speeds = jnp.abs(jnp.stack([*fan.left_speeds, *fan.right_speeds]))
    dt = 0.3 / 32 / (1 + jnp.max(speeds, axis=0))

    @jax.jit
    @jax.vmap
    def final(left, right, dt):
        sim, gas = pk.systems.shock_tube(tuple(left), tuple(right), dt=dt, cells=32, riemann=solver)
        gas = pk.simulate(sim, gas, 30).state
        return gas.density.data, gas.pressure(1.4).data

    density, pressure = final(left, right, dt)
    assert np.min(density) > 0
    assert np.min(pressure) > 0
    largest = np.max([left[:, 0], right[:, 0], fan.density_left, fan.density_right], axis=0)
    assert np.all(np.max(density, axis=1) < 1.1 * largest)


def test_gas_and_equation_have_one_gamma(monkeypatch):
    """A gas of γ = 5/3 in an equation of 1.4 had 0.6 times the pressure that was given."""
    grid = pk.Grid(1.0, 8)
    gas = pk.components.Gas.from_primitive(grid, 1.0, 0.0, 1.0, 5 / 3)
    law = pk.equations.CompressibleEuler(1.4)
    message = r"made with γ = 1.666\d*, CompressibleEuler takes γ = 1.4: .* 0.6 times"
    for integrator in (pk.SSPRK3(law), pk.CFLSubsteps(pk.SSPRK2(law), 0.4, 2)):
        with pytest.raises(pk.errors.ParameterError, match=message):
            pk.init(pk.Simulation(integrator, dt=0.01), gas)
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    named = pk.SSPRK2(pk.equations.CompressibleEuler(1.4, component="gas"))
    with pytest.raises(pk.errors.ParameterError, match=message):
        pk.run(pk.Simulation(named, dt=0.01), {"gas": gas}, 1, progress=False, devices=(2,))
    with pytest.raises(pk.errors.ParameterError, match="the call takes"):
        gas.pressure(1.4)
    np.testing.assert_allclose(gas.pressure().data, 1.0, rtol=1e-6)
    np.testing.assert_allclose(gas.sound_speed().data, math.sqrt(5 / 3), rtol=1e-6)
    plain = pk.Simulation(pk.SSPRK3(pk.equations.CompressibleEuler(5 / 3)), dt=0.01)
    axis = pk.SweepAxis(lambda m: pk.find(m, type(law)).gamma, [5 / 3, 1.5, 1.4], name="gamma")
    with pytest.raises(pk.errors.ParameterError, match=message):
        pk.sweep((plain, gas), 1, over=axis, progress=False)
    # Rounded to single precision it is the same number, and a gas of conserved variables has none.
    with jax.enable_x64(True):
        rounded = pk.components.Gas.from_primitive(grid, 1.0, 0.0, 1.0, np.float32(1.4))
        pk.init(pk.Simulation(pk.SSPRK3(law), dt=0.01), rounded)
    bare = pk.components.Gas(gas.density, gas.momentum, gas.energy)
    pk.init(pk.Simulation(pk.SSPRK3(law), dt=0.01), bare)
    with pytest.raises(pk.errors.ParameterError, match="without a γ"):
        bare.pressure()


def test_gamma_of_a_gas_stays_through_runs_and_devices():
    grid = pk.Grid(1.0, 8)
    gas = pk.components.Gas.from_primitive(grid, 1.0, 0.0, 1.0, 1.4)
    law = pk.equations.CompressibleEuler(
        1.4, pk.riemann.Rusanov(), pk.reconstructions.PiecewiseConstant()
    )
    sim = pk.Simulation(pk.Euler(law), dt=0.01)
    assert jax.jit(lambda gas: pk.simulate(sim, gas, 1).state.gamma)(gas) == 1.4
    parts = pk.core.shard(gas, (2,))
    np.testing.assert_array_equal(parts.gamma, [1.4, 1.4])
    assert pk.core.unshard(parts, (2,)).gamma == 1.4


def test_limited_fluxes_carry_as_much_as_there_is_in_their_mass():
    """Gas that flies apart, with as much of a substance everywhere."""
    grid = pk.Grid(pk.Box([1.0], False), (64,))
    apart = lambda x: jnp.where(x < 0.5, -4.0, 4.0)
    gas = pk.components.Gas.from_primitive(
        grid, 1.0, apart, 0.4, 1.4, pk.boundaries.Outflow(), scalars=(1.0,)
    )
    law = pk.equations.CompressibleEuler(
        1.4, pk.riemann.Roe(), pk.reconstructions.WENO5(), keeps_positive=True
    )
    dt = jnp.asarray(0.4 / 64 / 5.2)

    @jax.jit
    def step(gas):
        rate = finite_volume_rate(law, gas, dt)
        return gas.shift(jax.tree.map(lambda r: dt * r, rate))

    for _ in range(8):
        gas = step(gas)
    assert float(gas.density.data.min()) < 0.2  # some fluxes were limited
    np.testing.assert_allclose(gas.scalars[0].data / gas.density.data, 1.0, rtol=1e-12)


def test_whole_numbers_are_no_reason_to_cut_others():
    grid = pk.Grid(pk.Box([2.0], False), (8,))
    steps = lambda x: jnp.where(x < 1, 2, 1)
    gas = pk.components.Gas.from_primitive(
        grid, steps, jnp.ones(8, int), steps, 1.4, pk.boundaries.Outflow()
    )
    np.testing.assert_allclose(gas.energy.data[0], 2 / 0.4 + 0.5 * 2)
    water = ShallowWaterState.of(grid, steps, 0.5, pk.boundaries.Mirror())
    np.testing.assert_allclose(water.momentum.data[0], 0.5 * steps(grid.coordinates()[0]))
