"""Maxima and minima: values as JAX has them, and derivatives that no compiler can lose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import safe_clip, safe_max, safe_maximum, safe_minimum
from tests.compared_results import compared_results

PAIRS = {"maximum": (safe_maximum, jnp.maximum), "minimum": (safe_minimum, jnp.minimum)}
# One larger, the other larger, equal, and beside numbers that are not finite.
A = np.array([1.0, -2.0, 0.5, np.inf, -np.inf])
B = np.array([0.3, 4.0, 0.5, 1.0, 1.0])


@pytest.mark.parametrize("name", PAIRS)
def test_value_and_derivatives_are_those_of_jax(name, dtype):
    safe, plain = PAIRS[name]
    a, b, w = (jnp.asarray(x, dtype) for x in (A, B, np.arange(1.0, 6)))
    np.testing.assert_array_equal(safe(a, b), plain(a, b))
    assert safe(a, b).dtype == dtype
    for argument in (0, 1):
        slopes = [
            jax.grad(lambda a, b, f=f: jnp.vdot(w, f(a, b)), argument)(a, b) for f in (safe, plain)
        ]
        np.testing.assert_array_equal(*slopes)
        tangents = [jax.jvp(lambda a, b, f=f: f(a, b), (a, b), (w, -w))[1] for f in (safe, plain)]
        np.testing.assert_array_equal(*tangents)


@pytest.mark.parametrize("name", PAIRS)
def test_numbers_of_python_and_nan(name, dtype):
    safe, plain = PAIRS[name]
    x = jnp.asarray([-1.0, 2.0, np.nan], dtype)
    for number in (0, 0.5):
        for arguments in ((x, number), (number, x)):
            got = safe(*arguments)
            np.testing.assert_array_equal(got, plain(*arguments))
            assert got.dtype == dtype
        slopes = [jax.grad(lambda x, f=f, c=number: jnp.sum(f(x, c)))(x[:2]) for f in (safe, plain)]
        np.testing.assert_array_equal(*slopes)


def test_precision_is_that_of_jax(dtype):
    """Numbers of Python take the precision of what they meet, afterwards, too."""
    x = jnp.ones(2, dtype)
    for safe, plain in PAIRS.values():
        for a, b in ((0.5, 0.1), (0.5, 1), (x, 1), (2, x), (x, jnp.asarray(0.3))):
            if isinstance(b, jax.Array) and b.dtype != dtype:
                continue
            scaled = lambda a, b, safe=safe: x * safe(a, b)
            for f in (scaled, jax.jit(scaled)):
                assert f(a, b).dtype == dtype
                np.testing.assert_array_equal(f(a, b), x * plain(a, b))
        slopes = [jax.grad(lambda k, f=f: jnp.sum(x * f(k, 0.1)))(0.5) for f in (safe, plain)]
        assert slopes[0] == slopes[1]
        assert safe(1, 2).dtype == plain(1, 2).dtype  # whole numbers stay so


def test_clip(dtype):
    x = jnp.asarray([-1.0, 0.2, 3.0, np.nan], dtype)
    np.testing.assert_array_equal(safe_clip(x, 0, 1), jnp.clip(x, 0, 1))
    np.testing.assert_array_equal(
        jax.grad(lambda x: jnp.sum(safe_clip(x, 0, 1)))(x[:3]), [0.0, 1.0, 0.0]
    )


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (-2, -1)], ids=str)
def test_largest_element(axis, dtype):
    x = jnp.asarray(np.random.default_rng(0).permutation(24).reshape(2, 3, 4) % 7, dtype)  # equals
    np.testing.assert_array_equal(safe_max(x, axis), jnp.max(x, axis))
    slopes = [jax.grad(lambda x, f=f: jnp.sum(f(x, axis) ** 2))(x) for f in (safe_max, jnp.max)]
    np.testing.assert_allclose(*slopes, rtol=1e-6)
    assert slopes[0].dtype == dtype


def test_largest_of_what_has_no_derivative():
    assert safe_max(jnp.asarray([3, 5])) == 5
    assert safe_max(jnp.asarray([False, True]))
    assert jnp.isnan(safe_max(jnp.asarray([1.0, np.nan])))


def test_derivatives_of_nan_and_of_nothing():
    assert np.isnan(jax.grad(safe_max)(jnp.asarray([1.0, np.nan]))[1])
    tangent = jax.jvp(lambda x: safe_max(x, 1), (jnp.zeros((0, 3)),), (jnp.zeros((0, 3)),))[1]
    assert tangent.shape == (0,)


def test_second_derivatives_and_batches():
    f = lambda a, b: jnp.sum(safe_maximum(a * a, b) ** 2) + safe_max(a * b)
    g = lambda a, b: jnp.sum(jnp.maximum(a * a, b) ** 2) + jnp.max(a * b)
    a, b = jnp.asarray([1.0, 0.2, -0.7]), jnp.asarray([0.3, 0.9, 0.1])
    for order in (jax.grad, jax.hessian):
        np.testing.assert_allclose(order(f)(a, b), order(g)(a, b), rtol=1e-14)
    batched = jax.vmap(jax.grad(f), (0, None))(jnp.stack([a, 2 * a]), b)
    np.testing.assert_allclose(batched, jnp.stack([jax.grad(f)(x, b) for x in (a, 2 * a)]))


@pytest.mark.parametrize(
    ("safe", "plain", "mended"),
    [
        (lambda x: safe_maximum(x * x, x), lambda x: jnp.maximum(x * x, x), (0, 11)),
        (lambda x: safe_minimum(x * x, x), lambda x: jnp.minimum(x * x, x), (0, 11)),
        (lambda x: safe_clip(x * x, 0, 1), lambda x: jnp.clip(x * x, 0, 1), (0, 12)),
        (lambda x: safe_max(x * x), lambda x: jnp.max(x * x), None),
    ],
    ids=["maximum", "minimum", "clip", "max"],
)
def test_no_derivative_asks_whether_an_argument_equals_the_result(safe, plain, mended):
    """As JAX's do, by which the search for such derivatives in systems (tests/gpu) is tested, too.

    `mended` is the version of JAX whose own does not any more.
    """
    slope = lambda f: jax.make_jaxpr(jax.jit(jax.grad(lambda x: jnp.sum(f(x)))))(jnp.ones(3))
    assert not compared_results(slope(safe))
    if mended is None or jax.__version_info__ < mended:
        assert compared_results(slope(plain))
