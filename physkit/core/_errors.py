"""One class of error per kind of fault, so that a script can catch just the kind that it can handle."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax

from .calls._notebook_traceback import render_traceback


def printable(text: object, *, lines: bool = True) -> str:
    """`text` without control characters, which could steer a terminal or hide a part of what is printed.

    Every character that does not print, escape sequences and marks of writing direction among them,
    becomes `?`. Line breaks stay, unless not `lines`.
    """
    return "".join(c if c.isprintable() or (lines and c == "\n") else "?" for c in str(text))


class PhyskitError(Exception):
    """Base of every error that physkit raises on purpose.

    On an error that `run` raises for a fault, `sim` and `carry` are the simulation and the carry at the start
    of the failed chunk and `steps` its length: `diagnose` replays them. None on all others.
    """

    sim: Any = None
    carry: Any = None
    steps: int | None = None

    def _render_traceback_(self) -> list[str]:
        # IPython asks the error itself how it looks: nothing is installed there.
        return render_traceback(self)


class PhyskitWarning(UserWarning):
    """A program runs, but probably not as meant; the message names the remedy."""


class DeclarationError(PhyskitError, TypeError):
    """A Module is declared in a way that would silently misbehave later."""


class ParameterError(PhyskitError, ValueError):
    """A number has the wrong sign, range, type or precision."""


class ShapeError(PhyskitError, ValueError):
    """The shape of an array does not fit the arrays that it is used with."""


class ComponentError(PhyskitError, KeyError):
    """A term names a component that the state does not have."""

    def __str__(self) -> str:  # KeyError would print the repr, with escaped quotes
        return str(self.args[0]) if self.args else ""


class CutoffError(PhyskitError, ValueError):
    """A cutoff reaches beyond what the minimum-image convention allows."""


class OverlapError(PhyskitError, ValueError):
    """Particles sit on top of each other, where the force is not finite."""


class StepSizeError(PhyskitError, RuntimeError):
    """The time step is too large: something moved further in one step than physics allows."""


class ConvergenceError(PhyskitError, RuntimeError):
    """An iteration did not reach its tolerance within the steps allowed."""


class ObserverError(PhyskitError, ValueError):
    """Observers whose intervals do not divide one another, or two that record one name."""


class DeviceError(PhyskitError, RuntimeError):
    """There are fewer devices than asked for, or they cannot be used in this way."""


class SamplingError(PhyskitError, RuntimeError):
    """Too few samples carry the weight of an average: they were drawn for other parameters."""


class CapacityError(PhyskitError, RuntimeError):
    """A cache overflowed and could not be grown to what is required, or the memory of a device is full."""


class RangeError(PhyskitError, RuntimeError):
    """An exact (integer) sum left the range of its integers."""


class NotReversible(PhyskitError, TypeError):  # noqa: N818  named by the design
    """A part of a simulation has no exact inverse of its step, or its inverse missed a bit."""


class SimulationDiverged(PhyskitError, RuntimeError):  # noqa: N818  named by the design
    """The state is not finite, or about to be, or a guard is broken; `diagnose` finds the step."""

    def __init__(
        self, message: str, *, sim: Any = None, carry: Any = None, steps: int | None = None
    ):
        super().__init__(message)
        self.sim, self.carry, self.steps = sim, carry, steps


class NoEnergyError(PhyskitError, TypeError):
    """An energy was asked of a force that has none."""


class NoVirialError(PhyskitError, TypeError):
    """A virial (for pressure or stress) was asked of a force that does not have one."""


class MissingExtraError(PhyskitError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class SelectionError(PhyskitError, ValueError):
    """`where` points at nothing, or at something that has no derivative."""


class ObjectiveError(PhyskitError, ValueError):
    """An objective returns something that cannot be fitted, or not by the chosen method."""


class GradientError(PhyskitError, ArithmeticError):
    """A derivative is wrong, cut off or not finite; the message names the leaf it belongs to."""


class ClusterError(PhyskitError, RuntimeError):
    """Processes of one job do not find each other, are not alike, or are out of step."""


class SweepError(PhyskitError, RuntimeError):
    """A sweep cannot be executed here, or its workers have ended and chunks are missing."""


class FileError(PhyskitError, OSError):
    """A file cannot be written, or is not what it should be; the message names it and the remedy.

    The message may quote what is in the file: control characters in it are not printed.
    """

    def __init__(self, *args: object):
        super().__init__(*(printable(arg) if isinstance(arg, str) else arg for arg in args))


class DamagedFileError(FileError):
    """A file is cut short, altered, foreign, or would read from outside of itself."""


class MismatchError(FileError):
    """A file is sound, but belongs to something else than what should continue from it."""


class FileInUseError(FileError):
    """Another run is writing to the same file."""


class DiskFullError(FileError):
    """The disk is full; the file is as it was before."""


@contextlib.contextmanager
def explain_exhausted_memory(message: Callable[[], str]) -> Iterator[None]:
    """**Errors:** `CapacityError`: `message()`, and what XLA says, where the memory of a device is full."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        # JAX has no error class of its own for exhausted memory.
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise CapacityError(f"{message()} ({str(error).splitlines()[0]})") from error
