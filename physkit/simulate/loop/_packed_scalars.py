"""Small parameters as one vector: a derivative then adds up one cotangent a step, not one for each array."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax

from physkit.core import FEW_NUMBERS, ArrayLayout, PyTree

T = TypeVar("T", bound=PyTree)


def pack_scalars(tree: T) -> Callable[[], T]:
    """A function that gives `tree` again, with floating arrays of few entries read from one vector per dtype.

    To be called where they are used, in the body of a loop. On a GPU, sums over all cells for a parameter's
    cotangent then end in one kernel for all parameters, and so does adding up what all steps contribute.
    """
    leaves, form = jax.tree.flatten(tree)
    layout = ArrayLayout.of(leaves, ["small" if _is_small(x) else None for x in leaves])
    joined = layout.join(leaves)
    return lambda: jax.tree.unflatten(form, layout.split(joined))


def _is_small(x: PyTree) -> bool:
    return eqx.is_inexact_array(x) and x.size <= FEW_NUMBERS
