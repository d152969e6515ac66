"""A function of Modules as the program that every device runs."""

from collections.abc import Callable
from dataclasses import dataclass

from physkit.core import PyTree
from physkit.geometry import with_comm
from physkit.parallel import AbstractComm, SerialComm


@dataclass(frozen=True)
class SpmdFunction:
    """`function(*fixed, …)` of Modules as the program that every device runs on its part.

    On entry, spaces get the communicator of the device. On exit they get the serial one back, so that outside
    of SPMD programs nothing holds any other: static fields then compare equal across device counts.

    Hashable and compared by value: `Spmd` keeps compiled programs by it.
    """

    function: Callable[..., PyTree]
    fixed: tuple = ()

    def __call__(self, comm: AbstractComm, *parts: PyTree) -> PyTree:
        out = self.function(*self.fixed, *with_comm(parts, comm))
        return with_comm(out, SerialComm())
