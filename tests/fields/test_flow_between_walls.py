"""Incompressible flow between walls: no divergence, what is conserved, every kind of side, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    Clock,
    ComponentError,
    DeclarationError,
    ParameterError,
    StepCount,
    StepSizeError,
)
from physkit.fields import Field, FlowState
from physkit.fields.equations import (
    Ball,
    BodyForce,
    Buoyancy,
    IncompressibleFlow,
    ScalarTransport,
    Smagorinsky,
    Sponge,
    Wave,
)
from physkit.fields.equations.solid._solids import AbstractSolid, GivenGrip
from physkit.fields.finite_volume import MUSCL, WENO5
from physkit.fields.operators import Central, laplacian
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann, NoSlip, Outflow, Robin
from physkit.integrators import ARS222, ARS343, RK4, SSPRK3, CrankNicolson
from physkit.observe import Every, NusseltNumber, SolidForce
from physkit.simulate import Simulation, simulate
from physkit.systems import convection_cell, lid_driven_cavity
from physkit.testing import check_gradient, check_tendency
from physkit.testing.validation.fields._walls import poiseuille, taylor_green

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_no_divergence_whatever_the_sides[channel]",
    "test_battery_of_terms[force]",
    "test_poiseuille_is_exact",
    "test_a_surface_lies_between_points",
    "test_bad_sides_are_refused_before_the_first_step",
)


CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


def box(periodic=(False, False), cells=(6, 4)):
    lengths = [1.0, 0.8, 0.7][: len(cells)]
    return Grid(Box(lengths, periodic=periodic), cells)


def random_flow(grid, boundary, seed=0, size=0.3):
    rng = np.random.default_rng(seed)
    values = [
        size * rng.standard_normal(grid.local_shape_at(grid.face(k))) for k in range(grid.dimension)
    ]
    return FlowState.of(grid, values, boundary)


def largest_divergence(flow):
    return float(jnp.max(jnp.abs(flow.divergence().data)))


def channel(grid):
    """A parabola that swells and ebbs comes in on the left and leaves on the right, above a moving wall."""

    def inflow(t, x, y):
        return 4 * y * (0.8 - y) * (1 + 0.5 * jnp.sin(5 * t)), 0 * y

    sides = {"x": (Dirichlet(inflow), Outflow()), "y": (NoSlip([0.3, 0.0]), Mirror())}
    return random_flow(grid, sides)


def end_of(flow, *terms, method=ARS222, steps=3, dt=0.02):
    sim = Simulation(method(*terms), dt=dt)
    return jax.jit(lambda flow: simulate(sim, flow, steps).state)(flow)


@pytest.mark.parametrize("name", ["channel", "strip", "space", "ring"])
def test_no_divergence_whatever_the_sides(name):
    along = {"y": (NoSlip(), Mirror())}
    explicit = IncompressibleFlow(0.1, implicit=False, reconstruction=WENO5())
    limited = IncompressibleFlow(0.1, reconstruction=MUSCL())
    flow, equation, method = {
        "channel": lambda: (channel(box()), IncompressibleFlow(0.1), ARS222),
        "strip": lambda: (random_flow(box((True, False)), along), explicit, ARS343),
        "space": lambda: (
            random_flow(box((False, True, False), (4, 3, 3)), NoSlip()),
            limited,
            ARS222,
        ),
        "ring": lambda: (random_flow(box((True, True)), None), IncompressibleFlow(0.1), SSPRK3),
    }[name]()
    end = end_of(flow, equation, BodyForce(jnp.ones(flow.grid.dimension)), method=method)
    if method is SSPRK3:
        # Explicit methods keep the divergence that there is.
        np.testing.assert_allclose(end.divergence().data, flow.divergence().data, atol=1e-12)
    else:
        assert largest_divergence(end) < 1e-12
    assert all(bool(jnp.all(jnp.isfinite(u.data))) for u in end.velocity)


def terms_and_states():
    flow = random_flow(box(cells=(4, 3)), {"x": (Dirichlet([0.3, 0.0]), Outflow()), "y": NoSlip()})
    closed = random_flow(box(cells=(4, 3)), {"x": NoSlip(), "y": (NoSlip(), NoSlip([1.0, 0.0]))})
    heat = Field(
        np.random.default_rng(1).standard_normal((4, 3)),
        closed.grid,
        None,
        {"x": Dirichlet(1.0), "y": (Neumann(0.1), Robin(1.0, 0.2))},
    )
    both = {"flow": closed, "heat": heat}
    return {
        "flow": (IncompressibleFlow(0.1), flow),
        "force": (BodyForce((0.1, 0.2)), flow),
        "scalar": (ScalarTransport(0.2, component="heat"), both),
        "buoyancy": (Buoyancy((0.1, 0.7), scalar="heat", reference=0.5), both),
        "closure": (Smagorinsky(0.3), closed),
        "sponge": (Sponge(2.0, 0.3, ("x_high", "y_low"), 0.4), heat),
    }


@pytest.mark.parametrize("name", ["flow", "force", "scalar", "buoyancy", "closure", "sponge"])
def test_battery_of_terms(name):
    term, state = terms_and_states()[name]
    check_tendency(term, state)


def test_gradient_of_a_step():
    """Through viscous solves and projections, by viscosity, walls, box and flow."""
    flow = random_flow(box(cells=(4, 3)), {"x": NoSlip(), "y": (NoSlip(), NoSlip([1.0, 0.0]))})

    def final(at):
        sim = Simulation(ARS222(IncompressibleFlow(at["nu"]), BodyForce(at["g"])), dt=0.05)
        return [u.data for u in simulate(sim, at["flow"], 2).state.velocity]

    at = {"flow": flow, "nu": jnp.asarray(0.1), "g": jnp.array([0.3, 0.1])}
    check_gradient(final, at, directions=1)


def test_energy_is_kept_by_central_differences():
    """Without viscosity the rate of u gains no energy where walls do no work."""
    flow = random_flow(box(), Mirror())
    flow = end_of(flow, IncompressibleFlow(0.0), steps=1)

    @jax.jit
    def power(flow):
        rate = IncompressibleFlow(0.0)._momentum_rates(flow, with_viscosity=False)
        return sum(jnp.sum(u.data * r) for u, r in zip(flow.velocity, rate, strict=True)), rate

    work, rate = power(flow)
    assert max(float(jnp.max(jnp.abs(r))) for r in rate) > 0.1
    assert abs(float(work)) < 1e-13


def test_poiseuille_is_exact():
    found = poiseuille()
    assert found["deviation"] < 1e-12
    assert found["divergence"] < 1e-12


@pytest.mark.slow
def test_order_in_space_and_time():
    found = taylor_green()
    assert abs(found["order"] - 2) < 0.1
    assert found["divergence"] < 1e-12


@pytest.mark.slow
def test_order_in_time_between_walls():
    """The pressure that is known beforehand leaves an error of second order at walls that move."""
    grid = box(cells=(8, 8))
    sides = {"x": NoSlip(), "y": (NoSlip(), NoSlip(lambda t, x, y: (jnp.sin(t) ** 2, 0 * t)))}

    def end(steps, method):
        flow = FlowState.of(grid, boundary=sides)
        return end_of(
            flow, IncompressibleFlow(0.05), method=method, steps=steps, dt=1 / steps
        ).velocity_x.data

    for method in (ARS222, ARS343):
        truth = end(256, method)
        errors = [float(jnp.max(jnp.abs(end(n, method) - truth))) for n in (16, 32)]
        assert 1.7 < np.log2(errors[0] / errors[1]) < 2.6, errors


def test_a_scalar_is_kept_and_heat_balances():
    """What is carried is neither made nor lost; in a steady cell as much enters as leaves."""
    sim, state = convection_cell(6, rayleigh=1e3)
    insulated = state["heat"].with_boundary(Neumann(0.0))
    frames = Every(
        10,
        hot=NusseltNumber("x_low", "heat", difference=1.0),
        cold=NusseltNumber("x_high", "heat", difference=1.0),
    )
    sim = Simulation(sim.integrator, dt=sim.dt, observers=frames)
    run = jax.jit(lambda s: (lambda r: (r.state, r.frames))(simulate(sim, s, 100)))
    end, found = run(state)
    assert abs(found["hot"][-1] - found["cold"][-1]) < 0.02 * found["hot"][-1]
    assert found["hot"][0] == pytest.approx(1.0, abs=1e-12)
    assert found["hot"][-1] > 1.03
    kept, _ = run({**state, "heat": insulated})
    np.testing.assert_allclose(kept["heat"].integral(), insulated.integral(), rtol=1e-12)
    assert largest_divergence(end["flow"]) < 1e-12


def test_the_cavity_turns_with_its_lid():
    sim, flow = lid_driven_cavity(8)
    end = jax.jit(lambda s: simulate(sim, s, 40).state)(flow)
    u = np.asarray(end.velocity_x.data)[4]
    assert u[-1] > 0.2
    assert u[2] < -0.05


def test_eddy_viscosity_of_a_shear():
    """u = y²: S = y, ν_t = (CΔ)² 2y, and the stress 2ν_t S = 4 (CΔ)² y² has the slope 8 (CΔ)² y."""
    grid = Grid(Box([1.0, 1.0], periodic=(True, False)), (4, 8))
    flow = FlowState.of(grid, (lambda x, y: y**2 + 0 * x, 0.0), Mirror())
    term = Smagorinsky(0.2)
    rate = jax.jit(lambda s: term.rate(CLOCK, s)["velocity_x"].values)(flow)
    y = np.asarray(flow.velocity_x.coordinates[1])[0]
    size = float(grid.cell_volume) ** 0.5
    np.testing.assert_allclose(rate[0, 2:-2], 8 * (0.2 * size) ** 2 * y[2:-2], rtol=0.02)


def test_bad_sides_are_refused_before_the_first_step():
    grid = box()
    with pytest.raises(ParameterError, match="moves along itself only"):
        FlowState.of(grid, boundary=NoSlip([1.0, 0.0]))
    with pytest.raises(ParameterError, match="a flow takes NoSlip"):
        FlowState.of(grid, boundary=Neumann(0.0))
    into = {"x": (Dirichlet([1.0, 0.0]), Dirichlet([0.5, 0.0])), "y": NoSlip()}
    with pytest.raises(ParameterError, match="more fluid enters through the sides than leaves"):
        simulate(
            Simulation(ARS222(IncompressibleFlow(0.1)), dt=0.1),
            FlowState.of(grid, boundary=into),
            1,
        )
    fast = FlowState.of(box((True, True)), [10.0, 0.0])
    slow = FlowState.of(grid, boundary=NoSlip())
    for flow, dt, match in ((fast, 1.0, "to cross a cell"), (slow, 0.5, "explicit viscosity")):
        with pytest.raises(StepSizeError, match=match):
            simulate(Simulation(ARS222(IncompressibleFlow(0.1, implicit=False)), dt=dt), flow, 1)
    with pytest.raises(ParameterError, match="changes in time"):
        end_of(channel(grid), IncompressibleFlow(0.1), method=SSPRK3)
    with pytest.raises(DeclarationError, match="take ARS222 or ARS343"):
        end_of(channel(grid), IncompressibleFlow(0.1), method=CrankNicolson)
    with pytest.raises(ComponentError, match="acts on a FlowState"):
        simulate(
            Simulation(ARS222(Smagorinsky()), dt=0.1), Field(0.0, box((True, True)), vector=True), 1
        )


def test_functions_of_time_that_do_not_balance_are_not_a_number():
    sides = {"x": (Dirichlet(lambda t, x, y: (t + 0 * y, 0 * y)), NoSlip()), "y": NoSlip()}
    flow = FlowState.of(box(), boundary=sides)
    end = end_of(flow, IncompressibleFlow(0.1), steps=1)
    assert bool(jnp.all(jnp.isnan(end.velocity_x.data)))


def test_gradients_by_a_moving_body():
    """By where it is, how large, how it moves and spins; through a step, and of the force on it."""
    grid = box(cells=(8, 6))
    flow = random_flow(grid, NoSlip(), size=0.1)

    def final(body):
        equation = IncompressibleFlow(0.02, implicit=False, solids=(body,))
        observers = Every(2, force=SolidForce())
        sim = Simulation(ARS222(equation), dt=0.05, observers=observers)
        result = simulate(sim, flow, 2)
        return [u.data for u in result.state.velocity], result.frames["force"]

    check_gradient(final, Ball([0.47, 0.41], 0.21, speed=[0.1, -0.2], spin=0.7), directions=1)


def test_a_surface_lies_between_points():
    """Viscosity leaves a flow that is linear off a moving plane in any place and tilt as it is, to rounding."""

    class Slope(AbstractSolid):
        """A half-space, 0.6 x + 0.8 y < 0.503, that slides."""

        def distance(self, t, x):
            return 0.6 * x[0] + 0.8 * x[1] - 0.503

        def velocity(self, t, x):
            return [0.8 + 0 * x[0], -0.6]

    flow, slope = FlowState.of(box(), boundary=NoSlip()), Slope()
    viscosity, start = 3e-3, []
    for k, u in enumerate(flow.velocity):
        off = jnp.maximum(slope.distance(0.0, u.coordinates), 0)
        start.append(u.replace(data=slope.velocity(0.0, u.coordinates)[k] + (3 - k) * off))
    hold = jax.jit(lambda u: GivenGrip(slope, jnp.zeros(()), u, viscosity).hold(u))
    grip = GivenGrip(slope, jnp.zeros(()), start, viscosity)
    rates = jax.jit(lambda u: [viscosity * laplacian(x, Central(2)).data for x in u])(start)
    for k, (before, after) in enumerate(zip(start, hold(start), strict=True)):
        rate = rates[k]
        found = np.asarray(after.data + grip.holds[k].kept * rate)[1:-1, 1:-1]
        given = np.asarray(before.data)[1:-1, 1:-1]
        np.testing.assert_allclose(found, given, atol=1e-14)
        outside = slope.distance(0.0, before.coordinates)[1:-1, 1:-1] > 0
        np.testing.assert_allclose(given[~outside], [0.8, -0.6][k], atol=1e-14)
        # Without the surface's place points beside it are off.
        assert np.max(np.abs(rate[1:-1, 1:-1])[outside]) > 1e-3


def test_a_body_takes_the_flow_along():
    """A disk that spins in a box at rest turns the fluid; one in a stream is pushed downstream."""
    grid = box(cells=(12, 10))
    spinning = IncompressibleFlow(0.05, implicit=False, solids=(Ball([0.5, 0.4], 0.2, spin=2.0),))
    resting = IncompressibleFlow(0.05, implicit=False, solids=(Ball([0.5, 0.4], 0.2),))
    end = end_of(FlowState.of(grid, boundary=NoSlip()), spinning, steps=20)
    v = np.asarray(end.velocity_y.data)
    assert v[9, 5] > 0.05
    assert v[2, 5] < -0.05
    assert largest_divergence(end) < 1e-12
    sides = {"x": (Dirichlet([1.0, 0.0]), Outflow()), "y": Mirror()}
    sim = Simulation(ARS222(resting), dt=0.02, observers=Every(20, force=SolidForce()))
    force = jax.jit(lambda s: simulate(sim, s, 20).frames["force"])(
        FlowState.of(grid, [1.0, 0.0], sides)
    )
    assert force[-1, 0] > 0.1
    assert abs(force[-1, 1]) < 1e-3 * force[-1, 0]
    with pytest.raises(ParameterError, match="does not see solids"):
        IncompressibleFlow(0.05, solids=(Ball([0.5, 0.4], 0.2),))


def test_a_sponge_lets_no_wave_back():
    """Waves run into layers twice as thick at both ends of a line: less than 1e-3 comes back."""
    grid = Grid(Box([10.0], periodic=False), (200,))
    (x,) = grid.coordinates()
    pulse = jnp.exp(-2 * (x - 5) ** 2) * jnp.cos(6 * (x - 5))
    state = {
        "displacement": Field(pulse, grid, None, Dirichlet(0.0)),
        "velocity": Field(0 * pulse, grid, None, Dirichlet(0.0)),
    }
    layers = [
        Sponge(6.0, 2.0, ("x_low", "x_high"), component=name)
        for name in ("displacement", "velocity")
    ]
    sim = Simulation(RK4(Wave(1.0, scheme=Central(2)), *layers), dt=0.04)
    end = jax.jit(lambda s: simulate(sim, s, 250).state)(state)["displacement"].data
    assert float(jnp.sum(end**2)) < 1e-3 * float(jnp.sum(pulse**2))
