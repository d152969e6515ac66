"""Sums that give few numbers become few reductions, and nothing else changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import linear_call, programs_of, recomputed
from physkit.simulate.adjoint.packing._joined_sums import join_sums

X, Y = jnp.linspace(0.1, 1.0, 60).reshape(3, 20), jnp.linspace(-1.0, 2.0, 60).reshape(3, 20)


@jax.custom_jvp
def with_own_derivative(x):
    return jnp.sum(x**2)


with_own_derivative.defjvps(lambda t, _, x: jnp.sum(2 * x * t))


def of_calls(x, y):
    """Sums in calls of every kind, of several shapes; one of them of what another gave."""
    first = jax.jit(lambda a: (a * y).sum())(x)
    second = recomputed(lambda a: jnp.sum(jnp.sin(a)))(y)
    third = linear_call(lambda r, a: (r * a).sum(), lambda r, c: r * c, x, y)
    of_row = jnp.sum(x[0])
    fourth = with_own_derivative(x)
    centered = x - first / x.size
    of_columns = jnp.sum(x.reshape(20, 3) * y.reshape(20, 3), axis=0)
    return [first * second, third * y + fourth, of_row + jnp.sum(centered**2), of_columns]


def reductions(function, *args):
    """How many rows each reduction of a traced function adds up, in the order of the program."""

    def within(jaxpr):
        for equation in jaxpr.eqns:
            if equation.primitive.name == "reduce":
                yield len(equation.outvars)
            elif equation.primitive.name == "reduce_sum":
                assert equation.invars[0].aval.shape[-1] <= 8
            else:
                for inner in programs_of(equation):
                    yield from within(inner)

    return list(within(jax.make_jaxpr(function)(*args).jaxpr))


def test_sums_that_wait_for_no_other_are_one_reduction():
    joined = lambda x, y: join_sums(of_calls, x, y)
    # A row and three columns of 20 numbers, four of 60; and one that waits for them.
    assert reductions(joined, X, Y) == [1 + 3 + 4 * 3, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_derivatives_and_batches_are_those_of_the_function(dtype):
    x, y = X.astype(dtype), Y.astype(dtype)
    joined = lambda x, y: join_sums(of_calls, x, y)

    def close(a, b):
        # Of the largest: sums that cancel are rounded as their terms are.
        largest = np.max(np.abs(b))
        np.testing.assert_allclose(a, b, rtol=0, atol=20 * np.finfo(dtype).eps * largest)

    jax.tree.map(close, joined(x, y), of_calls(x, y))
    both = lambda f: jax.jvp(f, (x, y), (y, x))
    jax.tree.map(close, both(joined), both(of_calls))
    gradient = lambda f: jax.grad(lambda x: sum(jnp.sum(z) for z in f(x, y)))(x)
    close(gradient(joined), gradient(of_calls))
    many = lambda f: jax.vmap(f, in_axes=(0, None))(jnp.stack([x, y]), y)
    jax.tree.map(close, many(joined), many(of_calls))


def test_sums_in_loops_and_choices_are_joined_there():
    two = lambda x: (jnp.sum(x), jnp.sum(x**2))

    def function(x, count):
        turn = lambda k, sums: tuple(a + b for a, b in zip(sums, two(x), strict=True))
        of_loop = jax.lax.fori_loop(0, count, turn, (0.0, 0.0))
        of_scan = jax.lax.scan(lambda sums, k: (turn(k, sums), k), (0.0, 0.0), jnp.arange(3))[0]
        of_choice = jax.lax.cond(count > 2, two, lambda x: (x[0, 0], x[0, 1]), x)
        by_platform = jax.lax.platform_dependent(x, cpu=two, default=unknown)
        return [*of_loop, *of_scan, *of_choice, *by_platform]

    def unknown(x):
        name = jax.ShapeDtypeStruct((), x.dtype)
        return jax.ffi.ffi_call("there_is_none_on_cpus", name)(x), jnp.sum(x)

    joined = jax.jit(lambda x, count: join_sums(function, x, count))
    assert sorted(reductions(joined, X, 3)) == [1, 2, 2, 2, 2]
    np.testing.assert_allclose(joined(X, 3), function(X, 3), rtol=1e-13)


def test_sums_over_the_same_axes_of_the_same_shape_are_one_reduction():
    products = lambda x, y: jnp.outer(x[0], y[1])

    def function(x, y):
        lines = jnp.sum(products(x, y), axis=1), jnp.sum(products(y, x), axis=1)
        return [*lines, jnp.sum(products(x, x), axis=0), jnp.sum(lines[0])]

    joined = lambda x, y: join_sums(function, x, y)
    assert reductions(joined, X, Y) == [2, 1, 1]
    for found, expected in zip(joined(X, Y), function(X, Y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_many_sums_are_several_reductions():
    function = lambda x: [jnp.sum(x * k) for k in range(1, 71)]
    assert reductions(lambda x: join_sums(function, x), X) == [16, 16, 16, 16, 6]
    np.testing.assert_allclose(join_sums(function, X), function(X), rtol=1e-12)


def test_integers_and_programs_without_sums_are_as_they_were():
    function = lambda x: [jnp.sum(jnp.int32(x)), 2 * x, x[0]]
    for found, expected in zip(join_sums(function, 10 * X), function(10 * X), strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


def test_a_result_may_be_a_number_of_the_program():
    """JAX 0.10 has a type of its own for it, and beartype looks at one item of a list, any."""
    total, zero = join_sums(lambda x: [jnp.sum(x), jnp.zeros((), x.dtype)], X)
    (alone,) = join_sums(lambda x: [jnp.zeros((), x.dtype)], X)
    assert (float(total), float(zero), float(alone)) == (pytest.approx(33.0), 0.0, 0.0)


def test_sums_of_few_numbers_are_no_reductions():
    """Of the components of a vector, as in the cotangent of a speed that divides it."""
    function = lambda x: [jnp.sum(x[0, :2]), jnp.sum(x[:, :4], axis=0), jnp.sum(x)]
    assert reductions(lambda x: join_sums(function, x), X) == [1]
    jaxpr = jax.make_jaxpr(lambda x: join_sums(function, x))(X).jaxpr
    assert "reduce_sum" not in {equation.primitive.name for equation in jaxpr.eqns}
    for found, expected in zip(join_sums(function, X), function(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
