"""Growth of caches: only what overflowed grows, and a batch grows together."""

import jax
import jax.numpy as jnp

from physkit.core import find_growables, grow_caches, has_overflow
from tests.core.growable_row import Row, row


def test_only_overflowed_caches_grow():
    tree = {"a": row(4, 0), "b": (row(4, 0), jnp.ones(2))}
    measured = {"a": row(4, 4), "b": (row(4, 9), jnp.ones(2))}
    bigger, events = grow_caches(tree, measured)
    assert bigger["a"].capacity == 4
    assert bigger["b"][0].capacity == 12  # ⌈1.25 · 9⌉
    assert bigger["b"][0].entries[:4].tolist() == [0, 1, 2, 3]
    assert events == ["Row 4 → 12"]


def test_caches_with_enough_capacity_stay():
    tree = (row(4, 0),)
    same, events = grow_caches(tree, (row(4, 4),))
    assert same[0] is tree[0]
    assert events == []


def test_a_batch_grows_to_its_largest_requirement():
    tree = Row(jnp.zeros((3, 4)), jnp.zeros(3, jnp.int32))
    bigger, _ = grow_caches(tree, Row(jnp.zeros((3, 4)), jnp.array([1, 8, 3])))
    assert bigger.entries.shape == (3, 10)


def test_has_overflow_is_traceable():
    assert not has_overflow({"x": jnp.ones(2)})
    assert jax.jit(has_overflow)((row(3, 4), row(9, 1)))
    assert not jax.jit(has_overflow)((row(3, 3),))
    assert len(find_growables((row(3, 3), {"y": row(1, 1)}))) == 2
