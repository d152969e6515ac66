"""A dt far too long for what is advanced explicitly is named while the numbers are still finite."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Fault, SimulationDiverged
from physkit.fields import Field
from physkit.fields.equations import Diffusion, FisherKPP, KortewegDeVries
from physkit.geometry import Box, Grid
from physkit.integrators import ARS222, ETDRK2, ETDRK4, RK4, Composition, Strang, Subcycle
from physkit.simulate import Simulation, diagnose, run, simulate
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
