"""Derivative rules of deposits and interpolation: both modes, twice, in batches and scans; memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.coupling import CIC, PCS, TSC, Nearest, deposit, interpolate
from physkit.geometry import Box, Grid, Mirror

GRID = Grid(Box([1.3, 0.9], (True, False)), (5, 6))
X = jnp.asarray(np.random.default_rng(0).random((7, 2))) * GRID.space.lengths[None]
Q = jnp.asarray(np.random.default_rng(1).normal(size=7))
U = jnp.asarray(np.random.default_rng(2).normal(size=(5, 6)))
KERNELS = {"CIC": CIC(), "TSC": TSC(), "PCS": PCS()}


def interpolation_case(kernel):
    field = deposit(1.0, X, GRID).with_boundary({"y": Mirror()})
    return lambda x, u: interpolate(field.replace(data=u), x, kernel), (X, U)


def deposit_case(kernel, exact=False):
    return lambda x, q: deposit(q, x, GRID, kernel, exact=exact).data, (X, Q)


CASES = {
    **{f"interpolate {name}": lambda k=k: interpolation_case(k) for name, k in KERNELS.items()},
    **{f"deposit {name}": lambda k=k: deposit_case(k) for name, k in KERNELS.items()},
    "exact deposit TSC": lambda: deposit_case(TSC(), exact=True),
}
FAST = ("deposit TSC",)


def inner_product(a, b):
    return sum(jnp.sum(x * y) for x, y in zip(a, b, strict=True))


def random_like(tree, seed):
    rng = np.random.default_rng(seed)
    return tuple(jnp.asarray(rng.normal(size=x.shape)) for x in tree)


@pytest.mark.parametrize(
    "case", [c if c in FAST else pytest.param(c, marks=pytest.mark.slow) for c in CASES]
)
def test_modes_and_second_derivatives_agree(case):
    f, at = CASES[case]()
    v, w = random_like(at, 3), random_like(at, 4)

    @jax.jit
    def first(v):
        out, forward = jax.jvp(f, at, v)
        cotangent = jnp.cos(jnp.arange(out.size, dtype=out.dtype)).reshape(out.shape)
        return jnp.sum(cotangent * forward), jax.vjp(f, *at)[1](cotangent)

    forward, reverse = first(v)
    np.testing.assert_allclose(forward, inner_product(reverse, v), rtol=1e-12)

    def g(*a):
        # In a loop that changes them, where JAX before 0.12 forgets rules in second derivatives.
        def turn(carry, _):
            halves, total = carry
            doubled = [2 * x for x in halves]
            return (doubled, total + jnp.sum(jnp.sin(0.05 * f(*doubled)) ** 2)), None

        return jax.lax.scan(turn, ([x / 2 for x in a], 0.0), length=1)[0][1]

    slope = jax.grad(g, (0, 1))

    @jax.jit
    def products(v):
        over_reverse = jax.jvp(slope, at, v)[1]
        over_forward = jax.grad(lambda *a: jax.jvp(g, a, v)[1], (0, 1))(*at)
        twice = jax.grad(lambda *a: sum(jnp.sum(x * y) for x, y in zip(slope(*a), v)), (0, 1))(*at)
        return over_reverse, over_forward, twice

    found = [inner_product(p, w) for p in products(v)]
    np.testing.assert_allclose(found[1:], found[0], rtol=1e-10)
    along = jax.jit(lambda h: inner_product(slope(*(a + h * b for a, b in zip(at, v))), w))
    if "CIC" not in case:  # whose slope jumps between cells
        h = 1e-5
        np.testing.assert_allclose((along(h) - along(-h)) / (2 * h), found[0], rtol=1e-6)


@pytest.mark.slow
def test_batches_and_checkpointed_scans():
    """The loop of a particle mesh: deposit, interpolate, move."""
    f, (x0, u0) = interpolation_case(TSC())

    def step(x, u):
        rho = deposit(1.0, x, GRID, TSC()).data
        return x + 0.01 * f(x, u + 0.1 * rho)[:, None]

    def run(x, u, checkpointed):
        body = lambda x, _: (step(x, u), None)
        body = jax.checkpoint(body) if checkpointed else body
        return jnp.sum(jax.lax.scan(body, x, None, length=5)[0] ** 2)

    xs = jnp.stack([x0, x0 + 0.05])
    slope = jax.jit(jax.grad(lambda x, u: run(x, u, True), (0, 1)))
    plain = jax.jit(jax.grad(lambda x, u: run(x, u, False), (0, 1)))
    each = [plain(x, u0) for x in xs]
    batch = jax.vmap(slope, (0, None))(xs, u0)
    for k, own in enumerate(batch):
        np.testing.assert_allclose(own, jnp.stack([e[k] for e in each]), rtol=1e-11, atol=1e-13)


def test_residuals_do_not_grow_with_the_kernel():
    x = jnp.asarray(np.random.default_rng(0).random((1000, 2))) * 0.9
    field = deposit(1.0, x, GRID).with_boundary({"y": Mirror()})

    def num_residuals(kernel, f):
        linearize = lambda x, q: jax.vjp(lambda x, q: f(x, q, kernel), x, q)[1]
        pullback = jax.eval_shape(linearize, x, jnp.cos(x[:, 0]))
        return sum(
            x.size for x in jax.tree.leaves(pullback) if jnp.issubdtype(x.dtype, jnp.floating)
        )

    def read(x, q, kernel):
        return interpolate(field.replace(data=field.data * jnp.sum(q)), x, kernel)

    def add(x, q, kernel):
        return deposit(q, x, GRID, kernel).data

    for f in (read, add):
        assert abs(num_residuals(PCS(), f) - num_residuals(CIC(), f)) < 1000, (
            "less than one number a particle"
        )


def test_only_derivatives_by_the_field_scatter():
    f, (x, u) = interpolation_case(TSC())
    by_position = jax.jit(jax.grad(lambda x: jnp.sum(f(x, u) ** 2))).lower(x).as_text()
    assert "scatter" not in by_position
    by_field = jax.jit(jax.grad(lambda u: jnp.sum(f(x, u) ** 2))).lower(u).as_text()
    assert "scatter" in by_field


def test_nearest_has_no_derivative_by_position():
    f, at = interpolation_case(Nearest())
    assert not np.any(jax.grad(lambda x: jnp.sum(f(x, at[1]) ** 2))(at[0]))
