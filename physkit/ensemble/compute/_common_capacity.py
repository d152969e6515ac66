"""Members that were initialized one by one, as one batch: their caches get a common capacity."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from physkit.core import AbstractGrowable, AbstractResizable, Aux, ShapeError, find_growables
from physkit.simulate import Carry


def find_resizables(aux: Aux) -> list[AbstractResizable]:
    """The caches whose capacity is that of the ensemble, such as neighbor lists."""
    return [n for n in find_growables(aux) if isinstance(n, AbstractResizable)]


def resize_caches(aux: Aux, capacity: int) -> Aux:
    """`aux`, all of its resizable caches with this capacity."""

    def is_resizable(node):
        return isinstance(node, AbstractResizable)

    def resize(node):
        return node.resize(capacity) if is_resizable(node) else node

    return jax.tree.map(resize, aux, is_leaf=is_resizable)


def round_up_capacity(required: float | int) -> int:
    """A capacity for so many entries that serves numbers near it, too: chunks that need nearly the same share a
    program.

    A multiple of eight, so that rows of lists suit vector units, and of an eighth to a fourth of itself.
    """
    step = max(8, 2 ** (math.floor(math.log2(max(required, 1))) - 2))
    return step * max(1, math.ceil(required / step))


def stack_carries(carries: Sequence[Carry]) -> Carry:
    """Carries that were initialized one by one as one batch, with the largest of their capacities.

    **Errors:** `ShapeError` where they differ in more than that.
    """
    # Every carry has the same caches in the same order, unless members chose different methods at the start.
    nodes = [find_growables(c.aux) for c in carries]
    if len({len(carry_nodes) for carry_nodes in nodes}) > 1:
        raise _structure_error()
    capacities = [node.capacity for c in carries for node in find_resizables(c.aux)]
    capacity = max([0, *capacities])
    same_nodes = list(zip(*nodes, strict=True))
    resized = [_with_common_shapes(carry, capacity, same_nodes) for carry in carries]
    # The structure includes static fields: a skin or a number of cells that differs shows here.
    if len({jax.tree.structure(carry) for carry in resized}) > 1:
        raise _structure_error()
    return jax.tree.map(lambda *x: jnp.stack(x), *resized)


def _structure_error() -> ShapeError:
    return ShapeError(
        "members are set up differently, so that they cannot be computed side by side: give "
        "Pairwise(…, skin=…) one skin that fits all boxes, or make groups of them"
    )


def _with_common_shapes(
    carry: Carry, capacity: int, same_nodes: Sequence[Sequence[AbstractGrowable]]
) -> Carry:
    """A carry whose caches have the shapes that those of all carries can have.

    - `same_nodes`: for each of its growables, in order, the same one of every carry.
    """
    columns = iter(same_nodes)

    def is_growable(node):
        return isinstance(node, AbstractGrowable)

    def fit(node):
        if not is_growable(node):
            return node
        nodes = next(columns)
        if isinstance(node, AbstractResizable):
            return node.resize(capacity)
        return node.with_common_shape(nodes)

    return carry.replace(aux=jax.tree.map(fit, carry.aux, is_leaf=is_growable))
