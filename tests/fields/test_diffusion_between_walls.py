"""Implicit steps of diffusion: every kind of side, every place in the cell, and what they are solved by."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import DeclarationError, ParameterError
from physkit.fields import Field
from physkit.fields._wall_values import zero_on_walls
from physkit.fields.elliptic import solve_diffusion, solve_poisson
from physkit.fields.equations import Advection, CahnHilliard, Diffusion, VariableDiffusion
from physkit.fields.operators import Central, laplacian
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann, Outflow, Robin
from physkit.integrators import ARS222, ARS343, ETDRK2, BackwardEuler, CrankNicolson
from physkit.simulate import Simulation, init, simulate
from physkit.testing import check_gradient, check_integrator, check_tendency
from physkit.testing.validation.fields._walls import couette_start, slopes

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_steps_solve_their_equation[face(x)]",
    "test_gradients_of_a_step",
    "test_what_is_kept_is_kept_in_single_precision[diffusion]",
    "test_orders_in_time",
    "test_terms_that_cannot_be_solved_for_together",
    "test_negative_exchange_is_refused",
    "test_a_complex_field_at_rest_between_real_walls_rests[BackwardEuler]",
)

SIDES = (
    {"x": (Dirichlet(0.7), Neumann(0.3)), "y": (Outflow(), Dirichlet(-0.4))},
    {"y": (Mirror(), Dirichlet(1.0))},
)


def plane(periodic=(False, False), cells=(8, 6)):
    return Grid(Box([1.0, 2.0], periodic=periodic), cells)


def locations(grid):
    return {"cell": grid.cell, "face(x)": grid.face("x"), "node": grid.node}


def random_field(grid, location, sides, seed=0):
    values = np.random.default_rng(seed).standard_normal(grid.local_shape_at(location))
    return Field(values, grid, location, sides)


@jax.jit
def residual(field, amount):
    u = solve_diffusion(field, amount)
    left = u.data - amount * laplacian(u, Central(2)).data - field.data
    return jnp.max(jnp.abs(zero_on_walls(field, left)))


@pytest.mark.parametrize("name", ["cell", "face(x)", "node"])
def test_steps_solve_their_equation(name):
    for sides in SIDES:
        grid = plane(("x" not in sides, False))
        field = random_field(grid, locations(grid)[name], sides)
        assert residual(field, 0.37) < 1e-12


@pytest.mark.parametrize("law", ["diffusion", "mixture", "varying"])
def test_what_is_kept_is_kept_in_single_precision(law):
    """Between walls through which nothing passes ∫u dV does not drift: rounding is of changes."""
    values = np.where(np.arange(24) < 7, 0.9, 0.1) + np.zeros((24, 1))
    grid = Grid(Box([1.0, 1.0], periodic=False), (24, 24))
    start = Field(jnp.asarray(values, jnp.float32), grid, None, Neumann(0.0))
    term = {
        "diffusion": Diffusion(0.1, scheme=Central(2)),
        "mixture": CahnHilliard(gradient_energy=1e-3, scheme=Central(2)),
        "varying": VariableDiffusion(0.05 + 0.1 * grid.coordinates()[0] + jnp.zeros((24, 24))),
    }[law]
    sim = Simulation(ARS222(term), dt=1e-3)
    end = jax.jit(lambda u: simulate(sim, u, 100).state)(start)
    assert end.data.dtype == jnp.float32
    mean = lambda u: np.mean(np.asarray(u.data, np.float64))
    assert abs(mean(end) / mean(start) - 1) < 3e-6  # 5e-5 where u itself is solved for


def test_exchange_at_walls_is_solved_for():
    grid = plane()
    sides = {"x": (Robin(2.0, 1.0), Neumann(0.3)), "y": (Robin(0.5, -1.0), Dirichlet(-0.4))}
    assert residual(random_field(grid, grid.cell, sides), 0.37) < 1e-11
    with pytest.raises(ParameterError, match="Robin sides have no transform"):
        solve_poisson(random_field(grid, grid.cell, sides), sides)


def test_complex_walls_give_each_part_its_own_value():
    grid = plane()
    ends = Robin(2.0, 1.0 - 2j), Neumann(0.3j)
    sides = {
        "x": ends,
        "y": (Dirichlet(1.0), Dirichlet(lambda t, x, y: jax.lax.complex(x, 2 + 0 * x))),
    }
    values = np.asarray(random_field(grid, grid.cell, sides).data) * (1 - 3j)
    field = Field(values, grid, None, sides)
    assert residual(field.at_time(0.0), 0.37) < 1e-11
    wall = {"x": Dirichlet(1.0), "y": Mirror()}
    for at in (grid.cell, grid.face("x")):
        one = solve_diffusion(Field(1 + 0j, grid, at, wall), 0.2)
        np.testing.assert_allclose(one.data, 1, atol=1e-13)
    with pytest.raises(ParameterError, match="couples real and imaginary parts"):
        solve_diffusion(field.with_boundary(Robin(1 + 1j, 0.0)), 0.2)


@pytest.mark.parametrize("method", [BackwardEuler, ARS222])
def test_a_complex_field_at_rest_between_real_walls_rests(method):
    one = Field(np.ones(16) + 0j, Grid(Box([1.0], False), (16,)), None, Dirichlet(1.0))
    sim = Simulation(method(Diffusion(1.0, scheme=Central())), dt=0.1)
    end = simulate(sim, one, 5).state
    np.testing.assert_allclose(end.data, 1, atol=1e-13)


def test_gradients_of_a_step():
    """By the field, the amount, box, values, slopes and exchange."""
    grid = plane(cells=(4, 3))
    sides = {"x": (Robin(2.0, 1.0), Neumann(0.3)), "y": Dirichlet(-0.4)}
    varying = jnp.linspace(0.1, 0.3, 12).reshape(4, 3)

    def final(at):
        return solve_diffusion(at["field"], at["amount"], varies=True).data

    at = {"field": random_field(grid, grid.cell, sides), "amount": varying}
    check_gradient(final, at, directions=1)


def test_orders_in_time():
    """On 12 cells whose solution in time is known from small steps: orders 1, 2, 2 and 3."""
    grid = Grid(Box([1.0], periodic=False), (12,))
    wall = {"x": (Dirichlet(lambda t, x: jnp.sin(3 * t)), Neumann(0.5))}
    (x,) = grid.coordinates()
    u = Field(x * (1 - x) * (1 + x), grid, None, wall)
    terms = Diffusion(0.1, scheme=Central(2)), Advection(0.4, scheme=Central(2))

    # One program of each method: its steps are a parameter, their number is that of the calls.
    go_on = eqx.filter_jit(lambda sim, carry: simulate(sim, carry, 20).carry)

    def ends(method, *counts):
        for steps in counts:
            sim = Simulation(method(*terms), dt=1.0 / steps)
            carry = init(sim, u)
            for _ in range(steps // 20):
                carry = go_on(sim, carry)
            yield carry.state.data

    (truth,) = ends(ARS343, 400)
    for method, order in ((BackwardEuler, 1), (CrankNicolson, 2), (ARS222, 2), (ARS343, 3)):
        one, two = ends(method, 20, 40)
        slope = np.log2(np.linalg.norm(one - truth) / np.linalg.norm(two - truth))
        assert abs(slope - order) < 0.25, (method.__name__, slope)


def test_crank_nicolson_by_modes_is_the_trapezoidal_rule():
    grid = Grid([2 * np.pi], (8,))
    u = Field(jnp.sin(grid.coordinates()[0]), grid)
    sim = Simulation(CrankNicolson(Diffusion(0.3)), dt=0.1)
    end = jax.jit(lambda u: simulate(sim, u, 1).state.data)(u)
    np.testing.assert_allclose(end, (1 - 0.015) / (1 + 0.015) * u.data, rtol=1e-14, atol=1e-15)


@pytest.mark.slow
def test_battery_of_varying_diffusion():
    grid = plane(cells=(4, 3))
    sides = {"x": (Dirichlet(1.0), Robin(2.0, 0.5)), "y": Neumann(0.2)}
    nu = jnp.linspace(0.1, 0.3, 12).reshape(4, 3)
    check_tendency(VariableDiffusion(nu), random_field(grid, grid.cell, sides))


@pytest.mark.compiled_quickly
@pytest.mark.slow
def test_battery_of_methods():
    grid = plane(cells=(4, 3))
    sides = {"x": (Dirichlet(1.0), Neumann(0.5)), "y": Mirror()}
    field = random_field(grid, grid.cell, sides)
    for method, order in ((ARS222, 2), (ARS343, 3), (CrankNicolson, 2), (BackwardEuler, 1)):
        integrator = method(Diffusion(0.1, scheme=Central(2)))
        check_integrator(integrator, field, dt=0.05, steps=8, order=order)


def test_components_each_have_their_diffusivity():
    grid = Grid(Box([1.0], periodic=False), (5,))
    values = jnp.stack([jnp.arange(5.0), jnp.arange(5.0) ** 2])
    both = Field(values, grid, None, Dirichlet(jnp.array([1.0, 2.0])))
    u = solve_diffusion(both, jnp.array([0.1, 0.2])).data
    for k in range(2):
        one = Field(values[k], grid, None, Dirichlet(k + 1.0))
        np.testing.assert_allclose(u[k], solve_diffusion(one, 0.1 * (k + 1)).data, rtol=1e-13)


def test_terms_that_cannot_be_solved_for_together():
    grid = Grid(Box([1.0], periodic=False), (5,))
    u = Field(1.0, grid, None, Dirichlet(0.0))
    nu = Diffusion(0.1, scheme=Central(2))
    with pytest.raises(DeclarationError, match="Diffusion and VariableDiffusion are both stiff"):
        simulate(Simulation(ARS222(nu, VariableDiffusion(1.0)), dt=0.1), u, 1)
    # What multiplies modes only is still an error between walls, which names the way out.
    for method in (ARS222, ETDRK2):
        with pytest.raises(ParameterError, match=r"solve for Diffusion\(…, scheme=Central\(2\)\)"):
            simulate(Simulation(method(Diffusion(0.1)), dt=0.1), u, 1)


def test_negative_exchange_is_refused():
    with pytest.raises(ParameterError, match="at least 0"):
        Robin(-1.0, 2.0)


@pytest.mark.slow
def test_published_slopes():
    found = slopes()
    assert all(abs(found[f"{name} order"] - 2) < 0.15 for name in ("couette", "stokes", "robin"))


def test_closed_form_of_the_couette_flow_meets_its_limits():
    y = np.linspace(0, 1, 5)
    np.testing.assert_allclose(couette_start(y, 1e3), y, atol=1e-12)
