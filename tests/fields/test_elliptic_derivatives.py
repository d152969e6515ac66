"""Derivatives of elliptic solves: both modes, twice, in batches and scans, in memory that does not grow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.fields import Field
from physkit.fields.elliptic import project, solve_elliptic, solve_helmholtz, solve_poisson
from physkit.fields.operators import Spectral
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann

WRAPS = Grid(Box([1.3, 0.9]), (8, 6))
WALLS = Grid(Box([1.3, 0.9], (True, False)), (8, 6))
F = jnp.asarray(np.random.default_rng(0).normal(size=(8, 6)))
A = 1 + 0.5 * jnp.asarray(np.random.default_rng(1).random((8, 6)))


def _source(f):
    return Field(f, WALLS, None, {"y": Mirror()})


def _flow(f, a):
    u = Field(f, WRAPS, WRAPS.face(0))
    v = Field(a, WRAPS, WRAPS.face(1))
    free, _ = project((u, v))
    return jnp.stack([x.data for x in free])


# Solvers as functions of a source and of coefficients.
SOLVERS = {
    "spectral": lambda f, a: solve_poisson(Field(f * a, WRAPS), scheme=Spectral()).data,
    "sines": lambda f, a: (
        solve_poisson(_source(f), {"y": (Dirichlet(a[0, 0]), Neumann(a[1, 1]))}).data
    ),
    "screened": lambda f, a: solve_helmholtz(_source(f), a[2, 3], {"y": Dirichlet(a[0, 0])}).data,
    "projection": _flow,
    "multigrid": lambda f, a: (
        solve_elliptic(_source(f), a, a * a, {"y": Dirichlet(0.3)}, rtol=1e-13).data
    ),
    "multigrid, closed": lambda f, a: solve_elliptic(Field(f, WRAPS), a, rtol=1e-13).data,
}
FAST = ("sines",)  # the others compile for longer


def inner_product(a, b):
    return sum(jnp.sum(x * y) for x, y in zip(a, b, strict=True))


def random_tangents(seed):
    rng = np.random.default_rng(seed)
    return tuple(jnp.asarray(0.3 * rng.normal(size=(8, 6))) for _ in range(2))


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in SOLVERS]
)
def test_forward_reverse_and_second_derivatives_agree(name):
    f, at, v, w = SOLVERS[name], (F, A), random_tangents(2), random_tangents(3)

    @jax.jit
    def first(v):
        out, forward = jax.jvp(f, at, v)
        cotangent = jnp.cos(jnp.arange(out.size, dtype=out.dtype)).reshape(out.shape)
        reverse = jax.vjp(f, *at)[1](cotangent)
        return (
            jnp.sum(cotangent * forward),
            inner_product(reverse, v),
            jnp.sum(jnp.abs(cotangent * forward)),
        )

    forward, reverse, size = first(v)
    assert abs(forward - reverse) < 1e-12 * size
    g = lambda *a: jnp.sum(jnp.sin(3 * f(*a)))
    slope = jax.grad(g, (0, 1))

    @jax.jit
    def products(v):
        over_reverse = jax.jvp(slope, at, v)[1]
        over_forward = jax.grad(lambda *a: jax.jvp(g, a, v)[1], (0, 1))(*at)
        twice = jax.grad(lambda *a: inner_product(slope(*a), v), (0, 1))(*at)
        return [inner_product(p, w) for p in (over_reverse, over_forward, twice)]

    values = np.asarray(products(v))
    np.testing.assert_allclose(values[1:], values[0], rtol=1e-10)
    slope_at = jax.jit(lambda h: inner_product(slope(*(a + h * b for a, b in zip(at, v))), w))
    h = 1e-4
    difference, double_difference = slope_at(h) - slope_at(-h), slope_at(2 * h) - slope_at(-2 * h)
    np.testing.assert_allclose(
        (8 * difference - double_difference) / (12 * h), values[0], rtol=1e-7
    )


@pytest.mark.parametrize("name", ["spectral", pytest.param("multigrid", marks=pytest.mark.slow)])
def test_batches_and_checkpointed_scans(name):
    f = SOLVERS[name]

    def run(a, checkpointed):
        body = lambda u, _: (u + 0.1 * f(u, a), None)
        body = jax.checkpoint(body) if checkpointed else body
        return jnp.sum(jax.lax.scan(body, F, None, length=3)[0] ** 2)

    batch = jnp.stack([A, 1.1 * A])
    one = jax.jit(jax.grad(lambda a: run(a, False)))
    many = jax.jit(jax.vmap(jax.grad(lambda a: run(a, True))))(batch)
    np.testing.assert_allclose(many, jnp.stack([one(a) for a in batch]), rtol=1e-9, atol=1e-12)


def memory(function, *args):
    compiled = jax.jit(function).lower(*args).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.slow
def test_memory_of_a_gradient_does_not_grow_with_the_iterations():
    def loss(a, max_steps):
        solve = lambda u: solve_elliptic(
            _source(u), a, 0.0, {"y": Dirichlet(0.3)}, max_steps=max_steps
        )
        return jnp.sum(solve(F).data ** 2)

    few, many = (memory(jax.grad(lambda a, n=n: loss(a, n)), A) for n in (20, 2000))
    assert many == few


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spectral", "multigrid"])
def test_memory_of_a_gradient_through_a_hundred_solves_is_that_of_their_states(name):
    """Checkpointed, each further solve keeps its start, and nothing of how it was found."""
    f = SOLVERS[name]

    def loss(a, solves):
        body = jax.checkpoint(lambda u, _: (u + 0.1 * f(u, a), None))
        return jnp.sum(jax.lax.scan(body, F, None, length=solves)[0] ** 2)

    ten, hundred = (memory(jax.grad(lambda a, n=n: loss(a, n)), A) for n in (10, 100))
    assert hundred - ten < 1.2 * 90 * F.size * 8
