"""Safe functions: value, first and second derivative are finite at singular points, and plain elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    ratio,
    safe_arctan2,
    safe_divide,
    safe_norm,
    safe_power,
    safe_sqrt,
    where_safe,
)

CASES = {
    "sqrt": (safe_sqrt, jnp.sqrt, (0.0,), (0.7,)),
    "sqrt below": (safe_sqrt, jnp.sqrt, (-1.0,), (0.7,)),
    "norm": (
        lambda x, y: safe_norm(jnp.stack([x, y])), lambda x, y: jnp.sqrt(x * x + y * y),
        (0.0, 0.0), (0.3, -0.4),
    ),
    "divide": (safe_divide, lambda a, b: a / b, (0.0, 0.0), (0.3, 0.4)),
    "power": (lambda x: safe_power(x, 0.3), lambda x: x**0.3, (0.0,), (0.7,)),
    "arctan2": (safe_arctan2, jnp.arctan2, (0.0, 0.0), (0.3, -0.4)),
    "where": (
        lambda x: where_safe(x > 0, jnp.log, x), jnp.log, (0.0,), (0.7,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_finite_at_singular_points_and_plain_elsewhere(case, dtype):
    safe, plain, singular, regular = CASES[case]
    singular, regular = (
        tuple(jnp.asarray(x, dtype) for x in point) for point in (singular, regular)
    )
    argnums = tuple(range(len(singular)))
    for what in (lambda f: f, lambda f: jax.grad(f, argnums), lambda f: jax.hessian(f, argnums)):
        derive = lambda f, what=what: jax.jit(what(f))
        for x in jax.tree.leaves(derive(safe)(*singular)):
            assert np.isfinite(x)
            assert x.dtype == dtype
        pairs = zip(*map(jax.tree.leaves, (derive(safe)(*regular), derive(plain)(*regular))))
        for x, y in pairs:
            np.testing.assert_allclose(x, y, rtol=1e-4 if dtype == jnp.float32 else 1e-12)


@pytest.mark.parametrize("case", [name for name in CASES if name != "where"])
def test_nan_stays_nan(case, dtype):
    safe, _, singular, _ = CASES[case]
    assert np.isnan(safe(*(jnp.asarray(np.nan, dtype) for _ in singular)))


@pytest.mark.parametrize("case", ["sqrt", "norm", "power", "divide"])
def test_plain_forms_are_not_finite_at_singular_points(case):
    """Otherwise the tests above could not fail."""
    _, plain, singular, _ = CASES[case]
    slope = jax.grad(plain, tuple(range(len(singular))))(*map(jnp.asarray, singular))
    assert not all(np.isfinite(x) for x in slope)


@pytest.mark.parametrize(
    ("function", "x", "value", "slope"),
    [
        (safe_sqrt, 4.0, 2.0, 0.25),
        (safe_sqrt, 0.0, 0.0, 0.0),
        (safe_sqrt, -1.0, 0.0, 0.0),
        (lambda x: safe_power(x, 1.5), 4.0, 8.0, 3.0),
        (lambda x: safe_power(x, 0.5), 0.0, 0.0, 0.0),
        (lambda x: safe_divide(1.0 + 0 * x, x), 2.0, 0.5, -0.25),
        (lambda x: safe_divide(1.0 + 0 * x, x), 0.0, 0.0, 0.0),
        (lambda x: safe_norm(jnp.stack([x, 0 * x])), 3.0, 3.0, 1.0),
        (lambda x: safe_norm(jnp.stack([x, 0 * x])), 0.0, 0.0, 0.0),
        (lambda x: where_safe(x > 0, jnp.log, x), 2.0, np.log(2.0), 0.5),
        (lambda x: where_safe(x > 0, jnp.log, x), 0.0, 0.0, 0.0),
    ],
)
def test_value_and_first_derivative(function, x, value, slope, dtype):
    x = jnp.asarray(x, dtype)
    backward = jax.grad(function)
    found, *slopes, second = jax.jit(
        lambda x: (function(x), backward(x), jax.jacfwd(function)(x), jax.grad(backward)(x))
    )(x)
    assert float(found) == pytest.approx(value, rel=1e-6)
    assert found.dtype == dtype
    assert np.array(slopes) == pytest.approx(slope, rel=1e-6)
    assert np.isfinite(second)


def test_a_ratio_of_a_whole_number_has_the_derivative_of_its_divisor():
    np.testing.assert_allclose(jax.grad(lambda b: ratio(3, b))(jnp.asarray(2.0)), -0.75)
