"""Which arrays of a state another integrator left alone, decided while tracing."""

import jax

from physkit.core import PyTree, State
from physkit.particles import AbstractBodies


def holds_same_arrays(before: PyTree, after: PyTree) -> bool:
    """Whether two trees hold the very same arrays.

    While a step is traced, an array that nobody replaced stays the same Python object, so identity
    proves that nothing changed. A new object may still hold the old values: then the answer is False
    and costs a refresh that was not needed, never a wrong force.
    """
    a, b = jax.tree.leaves(before), jax.tree.leaves(after)
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def drop_velocities(state: State) -> State:
    """`state` as a force of positions and time sees it: particles without velocities."""

    def is_bodies(node: PyTree) -> bool:
        return isinstance(node, AbstractBodies)

    def drop(node: PyTree) -> PyTree:
        return node.replace(**dict.fromkeys(node.kicked_leaves)) if is_bodies(node) else node

    return jax.tree.map(drop, state, is_leaf=is_bodies)
