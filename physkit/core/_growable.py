"""Caches of fixed capacity that record the capacity that they would have needed."""

import abc
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from ._errors import DeclarationError
from ._module import Module
from ._types import PyTree

GROWTH_FACTOR = 1.25  # of what was required


class AbstractGrowable(Module):
    """A cache node whose capacity is the shape of its arrays.

    Shapes are static inside a program, so a cache cannot grow there. It records in `required` the largest
    number of entries that it has had to hold. Where that exceeds `capacity`, results are NaN, and the host
    replays the chunk from its start with larger caches. Growing pads with a sentinel and rebuilds nothing.
    """

    required: eqx.AbstractVar[Int[Array, "..."]]

    @property
    @abc.abstractmethod
    def capacity(self) -> int:
        """How many entries fit."""

    @abc.abstractmethod
    def grow_to(self, capacity: int) -> "AbstractGrowable":
        """The same content with room for at least `capacity` entries."""

    def grow_to_fit(self, measured: "AbstractGrowable") -> tuple["AbstractGrowable", list[str]]:
        """Grow this node to what `measured`, the same node at a later step, required (host only).

        **Returns:** the node, and what has grown, as text for the progress line.
        """
        # The largest of a batch or of all devices: they share one shape.
        required = int(np.max(np.asarray(measured.required)))
        if required <= self.capacity:
            return self, []
        # Some more than required: what has grown once will often grow on, and each growth recompiles.
        larger = self.grow_to(math.ceil(GROWTH_FACTOR * required))
        return larger, [f"{type(self).__name__} {self.capacity} → {larger.capacity}"]

    def with_common_shape(self, nodes: Sequence["AbstractGrowable"]) -> "AbstractGrowable":
        """This node with a static shape that all of `nodes`, the same node of several carries, can share.

        Carries can then be stacked into a batch. By default the node as it is.
        """
        del nodes
        return self

    def invalidate(self) -> "AbstractGrowable":
        """This node after particles have changed their rows: whatever refers to rows must be rebuilt.

        **Errors:** `DeclarationError` where a class does not say how: kept, it would refer to other particles.
        """
        raise DeclarationError(
            f"{type(self).__name__} does not say what becomes of it where particles change devices: write "
            "invalidate(self), which marks it to be rebuilt, or returns self if nothing in it refers to rows"
        )


class AbstractResizable(AbstractGrowable):
    """A growable whose capacity can also shrink, as when members of an ensemble take a common one."""

    @abc.abstractmethod
    def resize(self, capacity: int) -> "AbstractResizable":
        """The same content with exactly this capacity; entries that are cut off must be empty."""


def _is_growable(node: PyTree) -> bool:
    return isinstance(node, AbstractGrowable)


def find_growables(tree: PyTree) -> list[AbstractGrowable]:
    """Every growable node of `tree`, outermost first."""
    return [n for n in jax.tree.leaves(tree, is_leaf=_is_growable) if _is_growable(n)]


def has_overflow(tree: PyTree) -> Bool[Array, ""]:
    """Whether any growable node of `tree` required more than its capacity (traceable)."""
    overflows = [jnp.any(node.required > node.capacity) for node in find_growables(tree)]
    return jnp.any(jnp.stack(overflows)) if overflows else jnp.array(False)


def invalidate_caches(tree: PyTree) -> PyTree:
    """`tree` after particles have changed their rows: every growable node invalidated."""

    def invalidate(node: PyTree) -> PyTree:
        return node.invalidate() if _is_growable(node) else node

    return jax.tree.map(invalidate, tree, is_leaf=_is_growable)


def grow_caches(tree: PyTree, measured: PyTree) -> tuple[PyTree, list[str]]:
    """Grow the caches of `tree` to what `measured`, a tree of the same structure, required (host only).

    Nodes with enough capacity stay as they are.

    **Returns:** the tree, and what has grown, as text.
    """
    # Both trees list their growables in the same order; their shapes may differ, so that they cannot be
    # mapped over together.
    measured_nodes = iter(find_growables(measured))
    events: list[str] = []

    def grow(node: PyTree) -> PyTree:
        if not _is_growable(node):
            return node
        larger, grown = node.grow_to_fit(next(measured_nodes))
        events.extend(grown)
        return larger

    return jax.tree.map(grow, tree, is_leaf=_is_growable), events
