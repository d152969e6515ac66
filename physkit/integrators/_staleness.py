"""What a part of a composition left alone, read off the arrays themselves."""

from typing import Any

import jax

from physkit.particles import Particles


def holds_same_arrays(before: Any, after: Any) -> bool:
    """Whether two trees hold the very same arrays.

    While a step is traced an array that nobody touched stays the same Python object, so identity
    proves that nothing moved. A new object may still hold the old values: the answer errs on the
    safe side.
    """
    a, b = jax.tree.leaves(before), jax.tree.leaves(after)
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def drop_velocities(state: Any) -> Any:
    """`state` as a force of positions and time sees it."""
    is_particles = lambda node: isinstance(node, Particles)
    strip = lambda node: node.replace(velocity=None) if is_particles(node) else node
    return jax.tree.map(strip, state, is_leaf=is_particles)
