"""Safe maths: at the bad points values and derivatives are finite, first and second; elsewhere plain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
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
def test_finite_at_the_bad_point_and_plain_elsewhere(case, dtype):
    safe, plain, bad, good = CASES[case]
    bad, good = (tuple(jnp.asarray(x, dtype) for x in point) for point in (bad, good))
    every = tuple(range(len(bad)))
    for derived in (lambda f: f, lambda f: jax.grad(f, every), lambda f: jax.hessian(f, every)):
        for x in jax.tree.leaves(derived(safe)(*bad)):
            assert np.isfinite(x)
            assert x.dtype == dtype
        pairs = zip(*map(jax.tree.leaves, (derived(safe)(*good), derived(plain)(*good))))
        for x, y in pairs:
            np.testing.assert_allclose(x, y, rtol=1e-4 if dtype == jnp.float32 else 1e-12)


@pytest.mark.parametrize("case", [name for name in CASES if name != "where"])
def test_what_is_no_number_stays_none(case, dtype):
    safe, _, bad, _ = CASES[case]
    assert np.isnan(safe(*(jnp.asarray(np.nan, dtype) for _ in bad)))


@pytest.mark.parametrize("case", ["sqrt", "norm", "power", "divide"])
def test_the_plain_form_is_not_finite_there(case):
    """Else the test above could not fail."""
    _, plain, bad, _ = CASES[case]
    slope = jax.grad(plain, tuple(range(len(bad))))(*map(jnp.asarray, bad))
    assert not all(np.isfinite(x) for x in slope)
