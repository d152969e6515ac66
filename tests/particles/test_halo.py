"""Halos: which rows travel, and in what order messages are sent."""

import jax.numpy as jnp
import numpy as np

from physkit.geometry import Box, Slab
from physkit.particles.decomposition._halo import Halo


def test_messages_are_sent_in_the_order_of_the_arrays(monkeypatch):
    """Processes trace the program on their own: with another order, their messages would not match."""
    sent = []

    def ring_shift(slab, array, by):
        sent.append((array.dtype.name, array.shape[2:], by))
        return array

    monkeypatch.setattr(Slab, "ring_shift", ring_shift)
    one_row = jnp.array([0], jnp.int32)
    halo = Halo(one_row, one_row, jnp.int32(1))
    shapes = [("int32", ()), ("float32", ()), ("float32", (3,)), ("bool", ()), ("int32", (2,))]
    arrays = [jnp.ones((4, *shape), dtype) for dtype, shape in shapes]
    extended = halo.exchange(Slab.of(Box([1.0]), 0), [*arrays, arrays[1]])
    assert sent == [(dtype, shape, by) for dtype, shape in shapes for by in (1, -1)]
    for before, after in zip([*arrays, arrays[1]], extended, strict=True):
        np.testing.assert_array_equal(after, jnp.concatenate([before, before[:2]]))
