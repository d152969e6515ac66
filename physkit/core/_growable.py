"""Caches of fixed capacity that know how much they would have needed."""

import abc
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from ._module import Module

HEADROOM = 1.25


class AbstractGrowable(Module):
    """A cache node whose capacity is the shape of its arrays.

    `required` is the largest need met so far. Where it exceeds `capacity`, results are poisoned
    and the host replays the stretch from its start with `grown` caches; growing pads with a
    sentinel and rebuilds nothing.
    """

    required: eqx.AbstractVar[Int[Array, "..."]]

    @property
    @abc.abstractmethod
    def capacity(self) -> int:
        """How much fits."""

    @abc.abstractmethod
    def grow_to(self, capacity: int) -> "AbstractGrowable":
        """The same content with room for `capacity`."""

    def grow_to_fit(self, measured: "AbstractGrowable") -> tuple["AbstractGrowable", list[str]]:
        """This node with room for what the same one, `measured` later, required, and what has grown.

        Host only.
        """
        required = int(np.max(np.asarray(measured.required)))
        if required <= self.capacity:
            return self, []
        bigger = self.grow_to(math.ceil(HEADROOM * required))
        return bigger, [f"{type(self).__name__} {self.capacity} → {bigger.capacity}"]

    def invalidate(self) -> "AbstractGrowable":
        """This node after particles have changed their rows: what goes by rows must be made anew."""
        return self


def _is_growable(node: Any) -> bool:
    return isinstance(node, AbstractGrowable)


def find_growables(tree: Any) -> list[AbstractGrowable]:
    """Every growable node of `tree`, outermost first."""
    return [n for n in jax.tree.leaves(tree, is_leaf=_is_growable) if _is_growable(n)]


def has_overflow(tree: Any) -> Bool[Array, ""]:
    """Whether any growable node of `tree` needed more than it has (traceable)."""
    short = [jnp.any(node.required > node.capacity) for node in find_growables(tree)]
    return jnp.any(jnp.stack(short)) if short else jnp.array(False)


def invalidate_caches(tree: Any) -> Any:
    """`tree` after particles have changed their rows."""
    renew = lambda node: node.invalidate() if _is_growable(node) else node
    return jax.tree.map(renew, tree, is_leaf=_is_growable)


def grow_caches(tree: Any, measured: Any) -> tuple[Any, list[str]]:
    """`tree` with room for what the same-shaped `measured` tree required, and what was grown.

    Host only. Nodes that had room enough stay as they are.
    """
    needs = iter(find_growables(measured))
    events = []

    def enlarge(node):
        if not _is_growable(node):
            return node
        bigger, grown = node.grow_to_fit(next(needs))
        events.extend(grown)
        return bigger

    return jax.tree.map(enlarge, tree, is_leaf=_is_growable), events
