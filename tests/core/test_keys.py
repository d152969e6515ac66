"""Whole numbers as random keys."""

import jax
import numpy as np
import pytest

from physkit.core import as_key


@pytest.mark.parametrize("doubles", [False, True])
def test_all_bits_of_a_seed_count(doubles):
    """JAX itself takes a seed modulo 2³² while doubles are off."""
    with jax.enable_x64(doubles):
        words = [tuple(np.asarray(jax.random.key_data(as_key(s)))) for s in (7, 2**32 + 7, 2**62)]
    assert words == [(0, 7), (1, 7), (2**30, 0)]
    with jax.enable_x64(True):
        for seed in (0, 7, 2**31, 2**32 - 1, 2**32 + 7):
            np.testing.assert_array_equal(
                jax.random.key_data(as_key(seed)), jax.random.key_data(jax.random.key(seed))
            )
