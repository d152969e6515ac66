"""Places in a long array where something holds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import nonzero_indices


@pytest.mark.parametrize(("n", "part"), [(1, 1.0), (31, 0.5), (64, 0.0), (1000, 0.03), (1000, 1.0)])
def test_first_places_are_those_of_nonzero(n, part):
    which = np.random.default_rng(n).random(n) < part
    for size in (1, 7, n + 3):
        found = nonzero_indices(jnp.asarray(which), size)
        wanted = np.append(np.flatnonzero(which), np.full(size, n))[:size]
        assert found.dtype == jnp.int32
        assert np.array_equal(found, wanted)


def test_first_places_of_many_arrays():
    which = np.random.default_rng(0).random((3, 70)) < 0.3
    found = jax.jit(jax.vmap(lambda x: nonzero_indices(x, 9)))(which)
    assert np.array_equal(found, [np.flatnonzero(x)[:9] for x in which])
