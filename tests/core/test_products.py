"""Powers of two to the last bit."""

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import multiply_by_power_of_two, power_of_two


def test_all_of_them_are_exact(dtype):
    limits = np.finfo(dtype)
    exponent = np.arange(limits.minexp, limits.maxexp)
    found = jax.jit(lambda e: power_of_two(e, dtype))(jnp.asarray(exponent, jnp.int32))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.ldexp(np.ones((), dtype), exponent))


def test_beyond_the_range_they_are_its_ends(dtype):
    limits = np.finfo(dtype)
    found = power_of_two(jnp.asarray([-5000, 5000]), dtype)
    np.testing.assert_array_equal(found, [limits.smallest_normal, 2.0 ** (limits.maxexp - 1)])


def test_products_pass_the_range_of_one_power(dtype):
    limits = np.finfo(dtype)
    x = jnp.asarray([limits.smallest_normal, -3.5 * limits.smallest_normal], dtype)
    most = jnp.asarray(limits.maxexp - limits.minexp - 3)
    expected = np.ldexp(np.asarray(x), int(most))
    np.testing.assert_array_equal(multiply_by_power_of_two(x, most), expected)
    large = jnp.asarray(1.5 * 2.0 ** (limits.maxexp - 1), dtype)
    least = limits.minexp - (limits.maxexp - 1)
    found = [float(multiply_by_power_of_two(large, jnp.asarray(e))) for e in (least, 2 * least)]
    np.testing.assert_array_equal(found, [1.5 * float(limits.smallest_normal), 0])
    by_component = multiply_by_power_of_two(jnp.ones((3, 2), dtype), jnp.asarray([1, -2]))
    np.testing.assert_array_equal(by_component, np.broadcast_to([2, 0.25], (3, 2)))
