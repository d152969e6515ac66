"""What is cut over devices, and holds the communicator by which its parts exchange numbers."""

import equinox as eqx
import jax

from physkit.core import Module, PyTree, replace_fields
from physkit.parallel import AbstractComm


class AbstractDomain(Module):
    """A space, or the register of a quantum state: it answers for the whole of what a device has a part of."""

    comm: eqx.AbstractVar[AbstractComm]

    def with_comm(self, comm: AbstractComm) -> "AbstractDomain":
        """A device's part of this, whose parts `comm` joins."""
        return replace_fields(self, {"comm": comm})


def with_comm(tree: PyTree, comm: AbstractComm) -> PyTree:
    """`tree` with this communicator in every domain: for programs over devices, and on the way back."""

    def is_domain(x: PyTree) -> bool:
        return isinstance(x, AbstractDomain)

    def replace_comm(x: PyTree) -> PyTree:
        return x.with_comm(comm) if is_domain(x) else x

    return jax.tree.map(replace_comm, tree, is_leaf=is_domain)
