"""Functions of Modules as programs for one device of many."""

from collections.abc import Callable
from dataclasses import dataclass

from physkit.core import PyTree
from physkit.geometry import with_comm
from physkit.parallel import AbstractComm, SerialComm


@dataclass(frozen=True)
class SpmdFunction:
    """`function(*fixed, …)` of Modules as a program for one device of many.

    On entry, spaces get the communicator of the device; on exit it is taken out again, so that outside
    nothing ever holds anything but the serial one.
    """

    function: Callable[..., PyTree]
    fixed: tuple = ()

    def __call__(self, comm: AbstractComm, *parts: PyTree) -> PyTree:
        out = self.function(*self.fixed, *with_comm(parts, comm))
        return with_comm(out, SerialComm())
