"""`nonzero_indices`: equal to NumPy's, padded with the length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import nonzero_indices


@pytest.mark.parametrize(
    ("n", "fraction"), [(1, 1.0), (31, 0.5), (64, 0.0), (1000, 0.03), (1000, 1.0)]
)
def test_nonzero_indices_equal_those_of_numpy(n, fraction):
    mask = np.random.default_rng(n).random(n) < fraction
    for size in (1, 7, n + 3):
        found = jax.jit(nonzero_indices, static_argnums=1)(mask, size)
        expected = np.append(np.flatnonzero(mask), np.full(size, n))[:size]
        assert found.dtype == jnp.int32
        assert np.array_equal(found, expected)


def test_nonzero_indices_under_vmap():
    mask = np.random.default_rng(0).random((3, 70)) < 0.3
    found = jax.jit(jax.vmap(lambda x: nonzero_indices(x, 9)))(mask)
    assert np.array_equal(found, [np.flatnonzero(x)[:9] for x in mask])
