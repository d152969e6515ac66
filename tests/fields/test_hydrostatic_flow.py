"""Hydrostatic flow: waves and balances in closed form, what is conserved, the battery."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ComponentError, ParameterError, ShapeError
from physkit.fields import HydrostaticState
from physkit.fields.equations import HydrostaticFlow
from physkit.geometry import Box, Grid, Mirror, NoSlip, Outflow
from physkit.testing import check_tendency

SMALL = Grid(Box([3.0, 2.0, 1.0], periodic=(True, False, False)), (6, 5, 4))


def disturbed(boundary=None):
    """Everything moves a little."""
    draw = np.random.default_rng(0)
    state = HydrostaticState.of(
        SMALL, lambda x, y, z: 2 * z + 0 * x, (0.0, 0.0), lambda x, y: 0.0 * x, boundary
    )
    parts = {
        name: part.replace(data=part.data + 0.1 * draw.normal(size=part.data.shape)).at_time(0.0)
        for name, part in state.parts().items()
    }
    return state.replace(parts)


def full():
    return HydrostaticFlow(
        3.0, coriolis=0.5, beta=0.2, origin=1.0, viscosity=0.02, vertical_viscosity=0.01,
        diffusivity=0.03, vertical_diffusivity=0.02, drag=0.1, wind_x=0.3,
    )  # fmt: skip


def advance(law, state, dt, steps, method=pk.RK4):
    sim = pk.Simulation(method(law), dt=dt)
    return jax.jit(lambda s: pk.simulate(sim, s, steps).state)(state)


@pytest.mark.slow
@pytest.mark.parametrize(
    "boundary",
    [None, pytest.param(NoSlip(), marks=pytest.mark.slow)],
    ids=["free slip", "no slip"],
)
def test_battery(boundary):
    check_tendency(full(), disturbed(boundary))


def test_volume_is_kept_and_a_uniform_buoyancy_stays_uniform():
    start = disturbed()
    start = start.replace({"buoyancy": start.buoyancy.replace(data=0 * start.buoyancy.data + 0.7)})
    end = advance(full(), start, 0.02, 20, pk.Euler)
    np.testing.assert_allclose(end.surface.integral(), start.surface.integral(), atol=1e-14)
    np.testing.assert_allclose(end.buoyancy.data, 0.7, rtol=1e-12)
    assert np.abs(end.surface.data - start.surface.data).max() > 1e-3


def test_the_flow_has_no_divergence_but_at_the_surface():
    start, law = disturbed(), HydrostaticFlow(3.0)
    clock = pk.core.Clock.at(pk.core.StepCount.of(0), 0.0, 0.1)
    w, rate = eqx.filter_jit(lambda u: (law.vertical_velocity(u), law.rate(clock, u)))(start)
    np.testing.assert_allclose(w.data[:, :, -1], rate["surface"].values, atol=1e-13)
    np.testing.assert_array_equal(w.data[:, :, 0], 0)


def test_coriolis_does_no_work():
    start = disturbed()
    turned, still = (HydrostaticFlow(3.0, coriolis=c, beta=c / 2) for c in (2.0, 0.0))
    clock = pk.core.Clock.at(pk.core.StepCount.of(0), 0.0, 0.1)
    rates = eqx.filter_jit(lambda u: (turned.rate(clock, u), still.rate(clock, u)))
    by_turned, by_still = rates(start)
    work = 0.0
    for name in ("velocity_x", "velocity_y"):
        part = getattr(start, name)
        change = by_turned[name].values - by_still[name].values
        work = work + np.sum(np.asarray(part.data * change))
    assert abs(work) < 1e-13


@pytest.mark.slow
def test_a_wind_in_thermal_balance_stays():
    """∂u/∂z = −∂b/∂y / f, with the surface that holds the mean: u = Λ(z − H/2)."""
    f, shear, g = 0.5, 0.1, 3.0

    def flow(grid):
        return HydrostaticState.of(
            grid,
            lambda x, y, z: 2 * z - f * shear * (y - 1) + 0 * x,
            (lambda x, y, z: shear * (z - 0.5) + 0 * x + 0 * y, 0.0),
            lambda x, y: -f * shear * 0.5 * (y - 1) / g + 0 * x,
        )

    start = flow(SMALL)
    end = advance(HydrostaticFlow(g, coriolis=f), start, 0.02, 20)
    for name, part in end.parts().items():
        np.testing.assert_allclose(part.data, getattr(start, name).data, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [pk.RK4, pk.integrators.ARS343], ids=["explicit", "implicit surface"]
)
def test_internal_waves_have_their_speed(method):
    """Mode 1 of a stratified layer: c = NH/π of hydrostatic waves, here ω = 2 (H/π) k."""
    grid = Grid(Box([4.0, 1.0, 1.0], periodic=(True, True, False)), (32, 1, 24))
    frequency, k, small = 2.0, 2 * np.pi / 4, 1e-6

    def buoyancy(x, y, z):
        return frequency**2 * z + small * jnp.sin(np.pi * z) * jnp.cos(k * x) + 0 * y

    start = HydrostaticState.of(grid, buoyancy)
    omega = frequency / np.pi * k
    quarter, steps = np.pi / 2 / omega, 160
    # A large g: the surface is nearly a lid, as in the formula.
    gravity = 200.0 if method is pk.RK4 else 1e4
    end = advance(HydrostaticFlow(gravity), start, quarter / steps, steps, method)
    left = np.asarray(end.buoyancy.data - frequency**2 * grid.coordinates()[2])
    # A standing wave has no buoyancy left after a quarter of its period, but what the grid makes of ω.
    assert np.abs(left).max() < 0.03 * small
    assert np.abs(end.velocity_x.data).max() > 0.9 * small / frequency


@pytest.mark.slow
def test_surface_waves_have_their_speed():
    grid = Grid(Box([1.0, 4.0, 1.0], periodic=(True, False, False)), (1, 64, 2))
    k, small, gravity = np.pi / 4, 1e-6, 3.0
    start = HydrostaticState.of(grid, 0.0, surface=lambda x, y: small * jnp.cos(k * y) + 0 * x)
    quarter = np.pi / 2 / (np.sqrt(gravity) * k)
    end = advance(HydrostaticFlow(gravity), start, quarter / 200, 200)
    assert np.abs(end.surface.data).max() < 1e-3 * small
    np.testing.assert_allclose(
        np.abs(end.velocity_y.data).max(), small * np.sqrt(gravity), rtol=2e-3
    )


@pytest.mark.slow
def test_implicit_and_explicit_steps_agree():
    start = disturbed()
    one, other = (
        advance(full(), start, 0.005, 20, m) for m in (pk.integrators.Heun, pk.integrators.ARS222)
    )
    for name, part in one.parts().items():
        np.testing.assert_allclose(part.data, getattr(other, name).data, atol=2e-4)


def test_bad_input():
    flat = Grid([1.0, 1.0], (4, 4))
    with pytest.raises(ShapeError, match="three axes"):
        HydrostaticState.of(flat, 0.0)
    with pytest.raises(ShapeError, match="from the ground to the top"):
        HydrostaticState.of(Grid([1.0, 1.0, 1.0], (4, 4, 4)), 0.0)
    with pytest.raises(ParameterError, match=r"walls, Mirror\(\) or NoSlip\(\)"):
        HydrostaticState.of(SMALL, 0.0, boundary={"y": Outflow()})
    with pytest.raises(ParameterError, match="drag must not be negative"):
        HydrostaticFlow(1.0, drag=-1.0)
    with pytest.raises(ComponentError, match="moves a HydrostaticState"):
        pk.simulate(
            pk.Simulation(pk.RK4(HydrostaticFlow(1.0)), dt=0.1),
            pk.Field(jnp.zeros((4, 4)), flat),
            1,
        )
    state = HydrostaticState.of(SMALL, 0.0, boundary=Mirror())
    for method, error, match in (
        (pk.RK4, pk.errors.StepSizeError, "too long for RK4 of HydrostaticFlow"),
        (
            lambda law: pk.CFLSubsteps(pk.RK4(law)),
            pk.errors.DeclarationError,
            "for methods that solve for it",
        ),
    ):
        with pytest.raises(error, match=match):
            pk.init(pk.Simulation(method(HydrostaticFlow(9.81)), dt=1.0), state)
    with pytest.raises(ShapeError, match="the surface is a scalar"):
        HydrostaticState(state.velocity_x, state.velocity_y, state.buoyancy, state.buoyancy)
