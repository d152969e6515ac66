"""Walls: every boundary × where values sit × kind of value × order of the operators, against plain profiles."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, Function, StepCount
from physkit.fields import Field
from physkit.fields.operators import Central, average, derivative, laplacian
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann, NoSlip, Outflow

A, B, C, LATER = 0.5, 2.0, -3.0, 0.25  # u = A + B x + C y + t, which every operator must get right
GRID = Grid(Box([2.0, 1.5], (False, False)), (6, 5))
LOCATIONS = {
    "cell": GRID.cell,
    "face(x)": GRID.face("x"),
    "face(y)": GRID.face("y"),
    "node": GRID.node,
}
KINDS = ("number", "array", "function")
ORDERS = ("2", "4", "6")


def profile(t, x, y, slope_y):
    return A + B * x + slope_y * y + t


def walls_for(boundary, kind, x, y, t):
    """Boundaries of the profile, and its slope along y: a number fits profiles that do not vary along walls."""
    (lx, ly), slope_y = np.asarray(GRID.space.lengths), 0.0 if kind == "number" else C

    def exact(t, x, y):
        return profile(t, x, y, slope_y)

    if boundary == "Dirichlet":
        if kind == "number":
            rest = Outflow() if lx else Mirror()
            return {
                "x": (Dirichlet(exact(t, 0, 0)), Dirichlet(exact(t, lx, 0))),
                "y": rest,
            }, slope_y
        if kind == "array":
            return {
                "x": (Dirichlet(exact(t, 0, y)[0]), Dirichlet(exact(t, lx, y)[0])),
                "y": (Dirichlet(exact(t, x, 0)[:, 0]), Dirichlet(exact(t, x, ly)[:, 0])),
            }, slope_y
        return Dirichlet(exact), slope_y
    value = {
        "number": lambda s: s,
        "array": lambda s: np.full(1, s),
        "function": lambda s: lambda t, *x: s + 0 * t,
    }[kind]
    return {
        "x": (Neumann(value(-B)), Neumann(value(B))),
        "y": (Neumann(value(-slope_y)), Neumann(value(slope_y))),
    }, slope_y


def spoiled(values, at):
    """`values` with nonsense on all walls: what a boundary prescribes there must not come from the data."""
    values = np.array(values)
    for axis, staggered in enumerate(at.staggered):
        if staggered:
            values[(slice(None),) * axis + (slice(None, None, values.shape[axis] - 1),)] = 77.0
    return values


@pytest.fixture(scope="module")
def combinations():
    """All of them in one program: what each operator gives, and what it should."""
    cases = {}
    for boundary, (name, at), kind in itertools.product(
        ("Dirichlet", "Neumann"), LOCATIONS.items(), KINDS
    ):
        x, y = (np.asarray(c) for c in GRID.coordinates(at))
        walls, slope_y = walls_for(boundary, kind, x, y, LATER)
        exact = profile(LATER, x, y, slope_y)
        # Slopes say nothing about the wall's own points, which are then free.
        data = spoiled(exact, at) if boundary == "Dirichlet" and kind != "number" else exact
        if boundary == "Dirichlet" and kind == "number":
            data = np.array(exact)
            if at.staggered[0]:
                data[[0, -1]] = 77.0
        cases[boundary, name, kind] = Field(data, GRID, at, walls), exact, slope_y
    clock = Clock.at(StepCount.of(0), jnp.asarray(LATER), jnp.asarray(0.1))

    @jax.jit
    def evaluate(fields):
        out = {}
        for key, field in fields.items():
            seen = field.at_time(clock.t)
            # All that stencils of orders 2, 4 and 6 read: the field, and three ghosts on every side.
            out[key] = {
                "values": seen.data,
                "x": seen.padded(((3, 3), (0, 0))),
                "y": seen.padded(((0, 0), (3, 3))),
            }
        for order, kind in itertools.product(ORDERS, KINDS):
            curved = Function(lambda t, u, o=order: laplacian(u, Central(int(o))))
            sloped = Function(lambda t, u, o=order: derivative(u, "x", 1, Central(int(o))))
            field = fields["Dirichlet", "node", kind]
            out["node", kind, order] = [f(clock, field, None)[0].values for f in (curved, sloped)]
        return out

    return cases, evaluate({key: field for key, (field, *_) in cases.items()})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("boundary", ["Dirichlet", "Neumann"])
def test_stencils_of_every_order_see_the_walls_of_every_kind(combinations, boundary, kind):
    cases, results = combinations
    for name, at in LOCATIONS.items():
        _, exact, slope_y = cases[boundary, name, kind]
        got = results[boundary, name, kind]
        np.testing.assert_allclose(got["values"], exact, atol=1e-13)
        x, y = (np.asarray(c) for c in GRID.coordinates(at))
        hx, hy = np.asarray(GRID.spacing)
        beyond_x = np.concatenate([x[:3] - 3 * hx, x, x[-3:] + 3 * hx])
        beyond_y = np.concatenate([y[:, :3] - 3 * hy, y, y[:, -3:] + 3 * hy], axis=1)
        np.testing.assert_allclose(got["x"], profile(LATER, beyond_x, y, slope_y), atol=1e-12)
        np.testing.assert_allclose(got["y"], profile(LATER, x, beyond_y, slope_y), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_terms_see_the_values_on_walls(combinations, kind):
    _, results = combinations
    for order in ORDERS:
        curvature, slope = results["node", kind, order]
        np.testing.assert_allclose(curvature, 0.0, atol=1e-11)
        np.testing.assert_allclose(slope, B, atol=1e-11)


def test_a_field_holds_what_its_walls_say_from_the_start():
    line = Grid(Box([1.0], (False,)), (4,))
    for value in (1.0, np.float32(1.0), np.ones(1)):
        u = Field(0.0, line, line.node, Dirichlet(value))
        np.testing.assert_array_equal(u.data, [1, 0, 0, 0, 1])
        np.testing.assert_array_equal(
            Field(0.0, line, line.node, Neumann()).with_boundary(u).data, u.data
        )
    # Beside the solution of u'' = −2: its midpoint is 0.5 too low where a wall stays at 0.
    u = Field(0.0, line, line.node, {"x_low": Dirichlet(1.0), "x_high": Dirichlet(0.25)})
    own_term = pk.RK4(lambda t, u: laplacian(u) + 2.0)
    end = pk.simulate(pk.Simulation(own_term, 0.02), u, 200).state
    x = np.linspace(0, 1, 5)
    np.testing.assert_allclose(end.data, 1 - 0.75 * x + x * (1 - x), atol=1e-6)
    # So has the derivative by the wall's value: half of it arrives in the middle.
    half = jax.grad(lambda v: average(Field(0.0, line, line.node, Dirichlet(v)), "x").data[0])(1.0)
    assert half == 0.5


def test_walls_that_move_are_where_they_are_in_states_frames_and_own_terms():
    line = Grid(Box([1.0], (False,)), (4,))
    u = Field(0.0, line, line.node, Dirichlet(lambda t, x: 1.0 + t * (1 - x)))
    sim = pk.Simulation(
        pk.RK4(lambda t, u: laplacian(u)), 0.02, observers=(pk.Every(5, values=pk.FieldValues()),)
    )
    carry = pk.init(sim, u)
    np.testing.assert_array_equal(carry.state.data, [1, 0, 0, 0, 1])
    result = pk.simulate(sim, carry, 10)
    np.testing.assert_allclose(np.asarray(result.state.data)[[0, -1]], [1.2, 1.0], rtol=1e-12)
    frames = np.asarray(result.frames["values"])
    np.testing.assert_allclose(frames[:, 0], [1.0, 1.1, 1.2], rtol=1e-12)
    assert callable(result.state.boundary[0][0].value)  # still the function


def test_vectors_on_nodes_stick_to_walls_and_do_not_go_through_mirrors():
    shape = (2, 7, 6)
    mirror = Field(np.ones(shape), GRID, GRID.node, Mirror(), vector=True)
    across_x, across_y = np.asarray(mirror.data)
    assert not np.any(across_x[[0, -1]])
    assert not np.any(across_y[:, [0, -1]])
    assert np.all(across_x[1:-1] == 1)
    walls = {"x": Mirror(), "y": (NoSlip(0.0), NoSlip([3.0, 0.0]))}
    shear = Field(np.ones(shape), GRID, GRID.node, walls, vector=True)
    assert not np.any(shear.data[:, 1:-1, 0])
    np.testing.assert_array_equal(shear.data[0, 1:-1, -1], 3.0)
    np.testing.assert_array_equal(shear.data[1, :, -1], 0.0)


class Warmer(eqx.Module):
    """A module of Equinox's own, not of physkit's."""

    heat: jax.Array

    def __call__(self, t, *x):
        return self.heat * (1 + 0 * x[0])

    def twice(self, t, *x):
        return 2 * self(t, *x)


@pytest.mark.parametrize("method", ["__call__", "twice"])
def test_modules_of_equinox_keep_their_parameters(method):
    """They were constants of the program: `fit` and `grad` could not see their arrays."""
    module = Warmer(jnp.asarray(0.6))
    value = module if method == "__call__" else module.twice
    for holder in (Dirichlet(value), pk.equations.Schroedinger(value)):
        assert [float(leaf) for leaf in jax.tree.leaves(holder)][:1] == [np.float32(0.6)]
    padded = pk.Field(0.0, GRID, boundary=Dirichlet(value)).at_time(0.0).padded(1)
    wall = 0.5 * (padded[0, 1:-1] + padded[1, 1:-1])
    np.testing.assert_allclose(wall, 0.6 if method == "__call__" else 1.2, rtol=1e-6)


def test_last_state_of_exact_numbers_shows_walls_where_they_are():
    """Exact integers keep the walls of the start; the state, and what goes on from it, must not."""
    grid = Grid(Box([1.0], False), (8,))
    start = {
        "displacement": Field(0.0, grid, grid.node, Dirichlet(lambda t, x: t + 0 * x)),
        "velocity": Field(0.0, grid, grid.node, Dirichlet(1.0)),
    }
    wave = pk.equations.Wave(1.0, scheme=Central(2))
    parts = pk.Strang(pk.Euler(wave.kick), pk.Euler(wave.drift))

    def ends(adjoint):
        sim = pk.Simulation(parts, dt=0.1, adjoint=adjoint, guards=())
        half = pk.simulate(sim, start, 2)
        return half.state, half.carry.state, pk.simulate(sim, half.carry, 2).state

    exact, plain = ends(pk.adjoints.Reversible()), ends(pk.adjoints.Direct())
    for a, b, t in zip(exact, plain, (0.2, 0.2, 0.4), strict=True):
        np.testing.assert_allclose(a["displacement"].data[np.array([0, -1])], t, rtol=1e-14)
        np.testing.assert_allclose(a["displacement"].data, b["displacement"].data, atol=1e-12)
