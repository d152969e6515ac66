"""Whole numbers as random keys."""

import jax
import numpy as np
import pytest

from physkit.core import DeclarationError, ParameterError, as_generator, as_key


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


def test_a_generator_of_the_host_follows_from_whole_numbers_and_keys():
    for seeds in [(7,), (np.int64(2**40),), (3, 1)]:
        expected = np.random.default_rng([int(x) for x in seeds]).random()
        assert as_generator(*seeds).random() == expected
    key = jax.random.key(5)
    words = np.asarray(jax.random.key_data(key))
    for k in (key, jax.random.PRNGKey(5)):
        assert as_generator(k).random() == np.random.default_rng(words).random()
    assert as_generator(7).random() == np.random.default_rng(7).random()


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(ParameterError, match="whole number"):
        as_generator(seed)


def test_a_traced_key_makes_no_generator():
    with pytest.raises(DeclarationError, match="not inside of jit"):
        jax.jit(lambda key: as_generator(key).random())(jax.random.key(0))
