"""Elliptic solvers against their own stencils, analytic solutions and finite differences."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ConvergenceError, ParameterError, ShapeError
from physkit.fields import Field
from physkit.fields.elliptic import (
    Helmholtz,
    Poisson,
    project,
    solve_elliptic,
    solve_helmholtz,
    solve_poisson,
)
from physkit.fields.elliptic._multigrid import Level, Multigrid
from physkit.fields.elliptic._variable_coefficients import solve_with_statistics
from physkit.fields.operators import (
    Central,
    Spectral,
    laplacian,
    staggered_divergence,
    staggered_gradient,
)
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann, Outflow

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_poisson_inverts_the_stencil[P]",
    "test_second_order_against_closed_forms[1-DD]",
    "test_varying_coefficients_converge_at_second_order",
    "test_walls_of_complex_fields_give_each_part_its_own_value",
)

SHAPES = {1: (9,), 2: (8, 7), 3: (4, 5, 6)}
SIDES = {"D": Dirichlet(0.7), "N": Neumann(-0.3)}
COMBINATIONS = [
    *itertools.product(["P", "DD", "NN", "DN", "ND"], repeat=1),
    *itertools.product(["P", "DD", "NN", "DN"], repeat=2),
    ("P", "DN", "NN"),
    ("ND", "P", "DD"),
    ("NN", "NN", "NN"),
]


def grid_and_walls(kinds, shape):
    grid = Grid(Box([1.0, 2.0, 1.5][: len(kinds)], tuple(k == "P" for k in kinds)), shape)
    walls = {"xyz"[i]: tuple(SIDES[c] for c in k) for i, k in enumerate(kinds) if k != "P"}
    return grid, walls


def balanced_source(grid, walls, kinds, values):
    source = Field(values, grid, boundary=walls)
    if all(k in ("P", "NN") for k in kinds):
        zero = Field(jnp.zeros(grid.shape), grid, boundary=walls)
        source = source - source.mean() + laplacian(zero, Central(2)).mean()
    return source


@pytest.mark.parametrize("kinds", COMBINATIONS, ids="-".join)
def test_poisson_inverts_the_stencil(kinds):
    shape = SHAPES[len(kinds)]
    grid, walls = grid_and_walls(kinds, shape)
    source = balanced_source(grid, walls, kinds, np.random.default_rng(0).normal(size=shape))
    phi = jax.jit(lambda s: solve_poisson(s, walls or None))(source)
    np.testing.assert_allclose(laplacian(phi, Central(2)).data, source.data, atol=1e-10)
    if all(k in ("P", "NN") for k in kinds):
        np.testing.assert_allclose(phi.mean(), 0, atol=1e-13)
    kappa = 1.7
    u = Helmholtz(kappa, walls or None)(source)
    back = laplacian(u, Central(2)) - u * kappa**2
    np.testing.assert_allclose(back.data, source.data, atol=1e-10)


@pytest.mark.parametrize("kinds", ["DD", "NN", "DN", "ND", "P"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_second_order_against_closed_forms(kinds, d):
    """φ = Π waves that fit the walls, shifted so that slopes and values do not vanish there."""
    k = {"DD": 3.0, "NN": 3.0, "DN": 3.0, "ND": 3.0, "P": 2 * np.pi}[kinds]
    wave = lambda x: jnp.sin(k * x + 0.4)
    slope = lambda x: k * jnp.cos(k * x + 0.4)

    def error(n):
        periodic = (kinds == "P",) * d
        grid = Grid(Box([1.0] * d, periodic), (n,) * d)

        def exact(*x):
            out = wave(x[0])
            for other in x[1:]:
                out = out * wave(other)
            return out

        def side(axis, letter, sign):
            def given(t, *x):
                parts = [wave(y) for y in x]
                if letter == "N":
                    parts[axis] = sign * slope(x[axis])
                out = parts[0]
                for p in parts[1:]:
                    out = out * p
                return out

            return Dirichlet(given) if letter == "D" else Neumann(given)

        walls = None
        if kinds != "P":
            walls = {a: (side(a, kinds[0], -1), side(a, kinds[1], 1)) for a in range(d)}
        exact_field = Field.from_function(grid, exact, None, walls)
        phi = solve_poisson(exact_field * (-d * k**2), walls)
        difference = phi - exact_field
        return (
            float((difference - difference.mean()).norm())
            if kinds in ("NN", "P")
            else float(difference.norm())
        )

    sizes = (8, 16) if d == 3 else (16, 32)
    order = np.log2(error(sizes[0]) / error(sizes[1]))
    assert 1.8 < order < 2.3


def test_spectral_poisson_is_exact_for_waves():
    grid = Grid([2 * np.pi, 4 * np.pi], (8, 12))
    exact_field = Field.from_function(grid, lambda x, y: jnp.sin(2 * x) * jnp.cos(y / 2))
    phi = Poisson(scheme=Spectral())(exact_field * -4.25)
    np.testing.assert_allclose(phi.data, exact_field.data, atol=1e-13)
    fourth = solve_poisson(exact_field, scheme=Central(4))
    np.testing.assert_allclose(laplacian(fourth, Central(4)).data, exact_field.data, atol=1e-12)


def test_periodic_means_complex_and_vector_sources():
    grid = Grid([1.0, 1.0], (8, 6))
    values = np.random.default_rng(1).normal(size=(8, 6))
    phi = solve_poisson(Field(values + 3.0, grid))
    np.testing.assert_allclose(phi.data, solve_poisson(Field(values, grid)).data, atol=1e-14)
    both = solve_poisson(Field(values + 1j * values, grid))
    np.testing.assert_allclose(both.data.imag, phi.data, atol=1e-14)
    box = Grid(Box([1.0, 1.0], False), (8, 6))
    flow = Field(np.stack([values, values]), box, boundary=Mirror(), vector=True)
    u = solve_helmholtz(flow, 2.0, Mirror())
    np.testing.assert_allclose((laplacian(u, Central(2)) - u * 4.0).data, flow.data, atol=1e-11)


def test_walls_of_complex_fields_give_each_part_its_own_value():
    grid = Grid(Box([1.0], False), (16,))
    nothing, x = Field(np.zeros(16) + 0j, grid, boundary=Mirror()), grid.coordinates()[0]
    np.testing.assert_allclose(solve_poisson(nothing, Dirichlet(1.0)).data, 1, atol=1e-13)
    walls = {"x": (Dirichlet(1 + 2j), Dirichlet(lambda t, x: jax.lax.complex(3.0, -t)))}
    line = solve_poisson(nothing, walls, t=2.0)
    np.testing.assert_allclose(line.data, 1 + 2j + (2 - 4j) * np.asarray(x), atol=1e-13)
    slope = solve_poisson(nothing, {"x": (Dirichlet(0.0), Neumann(1j))})
    np.testing.assert_allclose(slope.data, 1j * np.asarray(x), atol=1e-13)
    u = solve_helmholtz(nothing, 2.0, Dirichlet(1j))
    residual = laplacian(u.with_boundary(Dirichlet(1j)), Central(2)).data - 4 * u.data
    np.testing.assert_allclose(residual, 0, atol=1e-11)


# --- varying coefficients -----------------------------------------------------------------------


def varying_coefficient(grid, boundary=None):
    function = lambda *x: 1 + 0.8 * sum(jnp.sin(3 * k + i) for i, k in enumerate(x)) / len(x)
    return Field.from_function(grid, function, None, boundary)


@pytest.mark.parametrize(
    "kinds", [("DN",), ("P", "DD"), ("NN", "NN"), ("P", "P"), ("ND", "P", "DD")], ids="-".join
)
def test_conjugate_gradients_agree_with_transforms_where_both_apply(kinds):
    shape = {1: (12,), 2: (8, 12), 3: (4, 4, 6)}[len(kinds)]
    grid, walls = grid_and_walls(kinds, shape)
    source = balanced_source(grid, walls, kinds, np.random.default_rng(0).normal(size=shape))
    source = source - source.mean() if kinds == ("P", "P") else source
    phi = solve_elliptic(source * 2.0, 2.0, 0.0, walls or None)
    np.testing.assert_allclose(
        phi.data, solve_poisson(source, walls or None).data, rtol=0, atol=1e-10
    )
    residual = laplacian(phi, Central(2)) - source
    assert float(jnp.max(jnp.abs(residual.data))) < 1e-9


def test_iterations_do_not_grow_with_the_grid():
    def steps(n):
        grid = Grid(Box([1.0, 1.0], (True, False)), (n, n))
        source = Field.from_function(grid, lambda x, y: jnp.exp(x) * y, None, Dirichlet(0.0))
        solution = solve_with_statistics(
            source, varying_coefficient(grid, Outflow()), 0.0, {"y": (Dirichlet(1.0), Neumann(0.3))}
        )
        assert bool(solution.converged)
        return int(solution.steps)

    few, many = steps(16), steps(128)
    assert many <= few + 3
    assert many < 16


def test_the_multigrid_cycle_is_symmetric_and_positive():
    grid = Grid(Box([1.0, 1.0], (True, False)), (8, 12))
    rng = np.random.default_rng(0)
    across_x = rng.uniform(0.5, 2, (9, 12))
    across_x[-1] = across_x[0]
    faces = (jnp.asarray(across_x), jnp.asarray(rng.uniform(0.5, 2, (8, 13))))
    level = Level.of(grid, (None, ("odd", "even")), faces, jnp.zeros((8, 12)))
    identity = jnp.eye(96).reshape(96, 8, 12)
    for operator in (level.apply, Multigrid.of(level)):
        matrix = np.asarray(jax.jit(jax.vmap(operator))(identity)).reshape(96, 96)
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
        assert np.linalg.eigvalsh(matrix).min() > 0
    np.testing.assert_allclose(
        level.diagonal().reshape(-1),
        np.diag(np.asarray(jax.vmap(level.apply)(identity)).reshape(96, 96)),
    )


def test_varying_coefficients_converge_at_second_order():
    def error(n):
        walls = {"x": (Dirichlet(1.0), Neumann(lambda t, x: jnp.exp(x)))}
        grid = Grid(Box([1.0], False), (n,))
        exact_field = Field.from_function(grid, lambda x: jnp.exp(x), None, walls)
        a = Field.from_function(grid, lambda x: 1 + x**2, None, Outflow()).with_values
        a = a(Field.from_function(grid, lambda x: 1 + x**2, None, Outflow()).data)
        f = Field.from_function(grid, lambda x: (1 + x**2 + 2 * x - 3.0) * jnp.exp(x), None, walls)
        return float((solve_elliptic(f, a, 3.0, walls) - exact_field).norm())

    assert 1.8 < np.log2(error(16) / error(32)) < 2.3


GRID = Grid(Box([1.0, 1.3], (True, False)), (4, 6))


def mean_square_solution(p):
    grid = Grid(Box(p["box"], (True, False)), (4, 6))
    walls = {"y": (Dirichlet(p["value"]), Neumann(p["slope"]))}
    source = Field(p["f"], grid, boundary=walls)
    phi = solve_elliptic(source, p["a"], p["c"], walls)
    return jnp.sum(phi.data**2)


def parameters():
    rng = np.random.default_rng(0)
    draw = lambda: jnp.asarray(rng.uniform(0.5, 2, (4, 6)))
    number = lambda x: jnp.asarray(x)
    return {
        "box": jnp.asarray([1.0, 1.3]),
        "a": draw(),
        "c": draw(),
        "f": draw(),
        "value": number(0.7),
        "slope": number(-0.4),
    }


def test_derivatives_by_everything_equal_finite_differences():
    p = parameters()
    value = jax.jit(mean_square_solution)
    gradient = jax.jit(jax.grad(mean_square_solution))(p)
    rng = np.random.default_rng(1)
    tangents = jax.jit(lambda v: jax.jvp(mean_square_solution, (p,), (v,))[1])
    for name in p:
        v = {k: jnp.zeros_like(x) for k, x in p.items()}
        v[name] = jnp.asarray(rng.normal(size=p[name].shape))
        displaced = lambda h, v=v: jax.tree.map(lambda y, d, h=h: y + h * d, p, v)
        differences = (value(displaced(1e-5)) - value(displaced(-1e-5))) / 2e-5
        slope = jnp.vdot(gradient[name], v[name])
        np.testing.assert_allclose(slope, differences, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(tangents(v), slope, rtol=1e-8, err_msg=name)


def test_batches_and_single_precision():
    p = parameters()
    sources = jnp.stack([p["f"], 2 * p["f"], p["f"] ** 2])
    one = jax.jit(lambda f: mean_square_solution({**p, "f": f}))
    batch = jax.jit(jax.vmap(one))(sources)
    np.testing.assert_allclose(batch, [one(f) for f in sources], rtol=1e-9)
    single = jax.tree.map(lambda x: x.astype(jnp.float32), p)
    assert mean_square_solution(single).dtype == jnp.float32
    np.testing.assert_allclose(mean_square_solution(single), mean_square_solution(p), rtol=1e-4)
    direct = lambda f: solve_poisson(Field(f, GRID, boundary=Dirichlet(0.0)), Dirichlet(0.0)).data
    assert direct(single["f"]).dtype == jnp.float32
    np.testing.assert_allclose(direct(single["f"]), direct(p["f"]), atol=1e-6)


def test_derivatives_of_the_transforms_solution():
    def energy(p):
        walls = {"y": (Dirichlet(p["value"]), Neumann(p["slope"]))}
        grid = Grid(Box(p["box"], (True, False)), (4, 6))
        return solve_helmholtz(Field(p["f"], grid, boundary=walls), p["c"], walls).norm() ** 2

    p = {**parameters(), "c": jnp.asarray(1.2)}
    del p["a"]
    gradient = jax.grad(energy)(p)
    v = jax.tree.map(lambda x: jnp.ones_like(x) * 0.3, p)
    displaced = lambda h: jax.tree.map(lambda x, d: x + h * d, p, v)
    differences = (energy(displaced(1e-5)) - energy(displaced(-1e-5))) / 2e-5
    slope = sum(jnp.vdot(g, d) for g, d in zip(jax.tree.leaves(gradient), jax.tree.leaves(v)))
    np.testing.assert_allclose(slope, differences, rtol=1e-7)


# --- projection ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["periodic", "channel", "open"])
def test_projected_flows_have_no_divergence(kind):
    axes = {"periodic": (True, True), "channel": (True, False), "open": (False, False)}[kind]
    grid = Grid(Box([1.0, 2.0], axes), (6, 8))
    walls = {
        "periodic": None,
        "channel": {"y": Dirichlet(0.0)},
        "open": {"x": (Dirichlet(1.0), Outflow()), "y": Dirichlet(0.0)},
    }[kind]
    rng = np.random.default_rng(0)
    flow = tuple(
        Field(
            rng.normal(size=grid.local_shape_at(grid.face(k))), grid, grid.face(k), walls
        ).at_time(0.0)
        for k in range(2)
    )
    free, potential = project(flow)
    np.testing.assert_allclose(staggered_divergence(free).data, 0, atol=1e-13 * 100)
    again, _ = project(dict(zip("uv", free, strict=True)))
    np.testing.assert_allclose(again["u"].data, free[0].data, atol=1e-13)
    if kind == "channel":  # orthogonal: the energy taken out is that of the gradient
        taken = staggered_gradient(potential)
        product = sum(jnp.vdot(a.data, b.data) for a, b in zip(free, taken, strict=True))
        np.testing.assert_allclose(product, 0, atol=1e-11)
        assert (free[1].data[:, [0, -1]] == 0).all()


# --- bad input ----------------------------------------------------------------------------------


def test_bad_input_is_an_error():
    box = Grid(Box([1.0, 1.0], (True, False)), (8, 6))
    source = Field(jnp.ones((8, 6)), box, boundary=Neumann(0.0))
    with pytest.raises(ParameterError, match="no boundary at y_low"):
        solve_poisson(source)
    with pytest.raises(ParameterError, match="walls along y"):
        solve_poisson(source, Dirichlet(0.0), scheme=Spectral())
    with pytest.raises(ParameterError, match=r"incompatible data: .* 1 must equal .* 0"):
        solve_poisson(source, Neumann(0.0))
    with pytest.raises(ParameterError, match="incompatible"):
        solve_elliptic(source, 1.0, 0.0, Neumann(0.0))
    jax.jit(lambda s: solve_poisson(s, Neumann(0.0)).data)(source)  # takes the mean out
    with pytest.raises(ParameterError, match="must be positive; got -1"):
        solve_elliptic(source, -1.0, 0.0, Dirichlet(0.0))
    with pytest.raises(ParameterError, match="at least zero"):
        solve_elliptic(source, 1.0, -1.0, Dirichlet(0.0))
    with pytest.raises(ShapeError, match="shape"):
        solve_elliptic(source, jnp.ones(3), 0.0, Dirichlet(0.0))
    with pytest.raises(ConvergenceError, match="within 1 steps"):
        solve_elliptic(
            source, varying_coefficient(box, Outflow()), 0.0, Dirichlet(0.0), max_steps=1
        )
    inside = jax.jit(lambda s: solve_elliptic(s, 1.0, 0.0, Dirichlet(0.0), max_steps=1).data)
    assert np.isnan(inside(source)).all()
    with pytest.raises(ParameterError, match="cell centers"):
        solve_poisson(Field(jnp.ones((8, 7)), box, box.face("y"), Dirichlet(0.0)), Dirichlet(0.0))
    with pytest.raises(ShapeError, match="faces across"):
        project((source, source))
