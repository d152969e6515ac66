"""`round_before_add`: products are rounded before they are added, and derivatives pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import round_before_add


def operands(dtype):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=10_001), dtype) for _ in range(3)]


def test_products_are_rounded_before_they_are_added(dtype):
    a, b, c = operands(dtype)
    found = jax.jit(lambda a, b, c: round_before_add(a * b) + c)(a, b, c)
    assert np.array_equal(found, np.asarray(a) * np.asarray(b) + np.asarray(c))


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_first_and_second_derivatives(mode):

    def cube(x):
        return round_before_add(x * round_before_add(x * x))

    x = jnp.asarray(1.3)
    np.testing.assert_allclose(mode(cube)(x), 3 * x**2)
    np.testing.assert_allclose(mode(mode(cube))(x), 6 * x)
    np.testing.assert_allclose(jax.vmap(mode(cube))(x[None]), 3 * x[None] ** 2)
