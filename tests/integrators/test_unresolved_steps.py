"""A dt far too long for what is advanced explicitly is named while the numbers are still finite."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Fault, ParameterError, SimulationDiverged, StepSizeError
from physkit.fields import Field
from physkit.fields.equations import Advection, Diffusion, FisherKPP, KortewegDeVries
from physkit.geometry import Box, Grid
from physkit.integrators import ARS222, ETDRK2, ETDRK4, RK4, Composition, Strang, Subcycle
from physkit.simulate import Simulation, diagnose, run, simulate
from physkit.simulate.loop._carry import check_terms
from physkit.testing import check_devices

DT = 0.01  # of the soliton


def soliton(dtype=float) -> Field:
    grid = Grid(Box(jnp.array([40.0], dtype)), (64,))
    (x,) = grid.coordinates(grid.cell)
    return Field((2 / jnp.cosh(x - 15) ** 2).astype(dtype), grid)


def front() -> Field:
    grid = Grid(Box(jnp.array([6.0])), (32,))
    (x,) = grid.coordinates(grid.cell)
    return Field(jnp.exp(-4 * (x - 3) ** 2), grid)


def kdv(method=ETDRK2):
    return method(KortewegDeVries(6.0, 1.0))


def decay(t, u):
    return -0.01 * u


CASES = {
    "ETDRK2": (kdv(), DT, 30, soliton),
    "ARS222": (ARS222(FisherKPP(1.0), Diffusion(0.1)), 0.1, 100, front),
    "ETDRK4": (ETDRK4(FisherKPP(1.0), Diffusion(0.1)), 0.1, 100, front),
    "Strang": (Strang(RK4(decay), kdv()), DT, 30, soliton),
    "Subcycle": (Subcycle(kdv(), 2), DT, 60, soliton),
    "Composition": (Composition(kdv()), DT, 30, soliton),
}
compute = eqx.filter_jit(
    lambda integrator, dt, state, steps: simulate(
        Simulation(integrator, dt, guards=()), state, steps
    )
)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("ETDRK2", 4),
        ("ARS222", 4),
        pytest.param("ETDRK4", 4, marks=pytest.mark.slow),
        pytest.param("Strang", 4, marks=pytest.mark.slow),
        pytest.param("Subcycle", 2, marks=pytest.mark.slow),
        ("Composition", 1),
    ],
)
def test_a_run_that_blows_up_is_named_before_it_is_infinite(name, steps):
    integrator, dt, factor, state = CASES[name]
    assert compute(integrator, jnp.asarray(dt), state(), steps).health.ok
    result = compute(integrator, jnp.asarray(factor * dt), state(), steps)
    assert result.health.faults() == Fault.UNRESOLVED
    assert np.isnan(result.state.data).all()
    with pytest.raises(SimulationDiverged, match="dt is too large for what is advanced explicitly"):
        result.health.check()


def test_run_says_so():
    # In single precision, where squares of the first steps overflow.
    with pytest.raises(SimulationDiverged, match="reduce dt"):
        run(Simulation(kdv(), 30 * DT), soliton(jnp.float32), 3, progress=False)


@pytest.mark.slow
def test_diagnose_finds_the_step():
    with pytest.raises(SimulationDiverged) as caught:
        run(Simulation(kdv(), 30 * DT), soliton(), 3, progress=False)
    found = diagnose(caught.value)
    assert found.step in (0, 1, 2)
    assert "UNRESOLVED" in str(found)


def test_long_steps_to_a_balance_are_right():
    """What the linear part damps may be as fast as it likes: forced from rest, and at rest in a balance."""
    u = front()
    integrator = ETDRK2(Diffusion(1.0), lambda t, v: v.replace(data=u.data - 0.1 * v.data))
    first = compute(integrator, jnp.asarray(5.0), u * 0.0, 1)
    assert first.health.ok
    assert compute(integrator, jnp.asarray(5.0), first.state, 40).health.ok


def test_terms_are_not_differentiated_for_it():
    """A function with a reverse rule of its own has no forward one."""

    @jax.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
    u = front()

    @jax.jit
    @jax.grad
    def slope(k):
        integrator = ETDRK2(Diffusion(0.1), lambda t, u: u.replace(data=-k * square(u.data)))
        return jnp.sum(simulate(Simulation(integrator, 0.01), u, 1).state.data)

    # dt·Σ∂N/∂k, to first order.
    assert np.isclose(slope(1.0), -0.01 * np.sum(u.data**2), rtol=0.05)


@pytest.mark.slow
def test_over_devices():
    check_devices(Simulation(ETDRK2(Diffusion(0.1), FisherKPP(1.0)), 0.1), front(), 4)


@pytest.mark.parametrize("method", [pk.Euler, pk.SSPRK3, RK4])
@pytest.mark.parametrize("scheme", [pk.schemes.Spectral(), pk.schemes.Central(4)])
@pytest.mark.parametrize("make", [Diffusion, Advection])
def test_an_explicit_step_far_beyond_the_limit_is_refused(method, scheme, make):
    """Before the first step, by a message whose dt is that at which the shortest wave begins to grow."""
    state = front()
    term = make(0.7, scheme=scheme)
    with pytest.raises(StepSizeError, match=f"of {make.__name__}") as caught:
        simulate(Simulation(method(term), dt=10.0), state, 1)
    limit = float(re.search(r"dt ≤ ([^,\s]+)", str(caught.value))[1])
    h = float(state.grid.spacing[0])
    known = {"Euler": (2.0, 0.0), "SSPRK3": (2.51, 1.73), "RK4": (2.785, 2.83)}[method.__name__]
    largest = {"Spectral": (np.pi**2, np.pi), "Central": (16 / 3, 1.372)}[type(scheme).__name__]
    k = make is Advection
    expected = known[k] / largest[k] * h ** (2 - k) / 0.7
    # A little growth is let through: Euler's of a wave begins at once.
    assert limit == pytest.approx(expected, rel=0.02, abs=0.06 * h * k)
    Simulation(method(term), dt=0.9 * limit).integrator.check_step(state, jnp.array(0.9 * limit))


def test_a_value_given_where_the_flow_goes_out_is_refused():
    grid = Grid(Box([1.0], periodic=False), (16,))
    state = Field(0.0, grid, boundary={"x": pk.boundaries.Dirichlet(0.0)})
    carried = Advection(-1.0, scheme=pk.schemes.Central())
    with pytest.raises(ParameterError, match=r"x_low.*Outflow\(\), or add Diffusion"):
        simulate(Simulation(RK4(carried), dt=0.01), state, 1)
    spread = Diffusion(0.1, scheme=pk.schemes.Central())
    for damped in (RK4(carried, spread), Strang(RK4(carried), RK4(spread))):
        check_terms(Simulation(damped, dt=0.001), state)
