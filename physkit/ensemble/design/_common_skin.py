"""One skin of neighbor lists for all members of a sweep, whatever their boxes."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import jax

from physkit.core import State
from physkit.simulate import Simulation


@runtime_checkable
class HasSkin(Protocol):
    """A force that keeps a list of neighbors within its cutoff and a skin."""

    def with_common_skin(self, states: Sequence[State]) -> "HasSkin":
        """This force with a skin that the boxes of all these states allow."""


def set_common_skin(
    model: tuple[Simulation, State], states: Sequence[State]
) -> tuple[Simulation, State]:
    """`model` with a skin that fits the box of every state, for those forces that were given none.

    How far a list reaches is part of the compiled program: members of different density must share it.
    """
    sim, state = model

    def has_skin(node):
        return isinstance(node, HasSkin)

    def set_skin(node):
        return node.with_common_skin(states) if has_skin(node) else node

    return jax.tree.map(set_skin, sim, is_leaf=has_skin), state
