"""Observers: what is recorded every so many steps. A guard is one whose frame must stay true."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx

from physkit.core import Fault, Module, ObserverError, all_finite, static

from ._snapshot import Snapshot

Frame = dict[str, Any]


class AbstractObserver(Module):
    """Looks at the simulation every `interval` steps, step 0 included.

    `init` makes its memory from the first snapshot; a call returns a frame (arrays by name, stacked
    over time by the loop) and the new memory; `summary` turns the final memory into results.
    """

    interval: eqx.AbstractVar[int | None]
    fault: ClassVar[Fault] = Fault.GUARD  # what it means when this observer guards, and fails

    def init(self, snapshot: Snapshot) -> Any:
        """Memory before the first look."""
        del snapshot

    @abc.abstractmethod
    def __call__(self, snapshot: Snapshot, memory: Any) -> tuple[Frame, Any]:
        """What is recorded now, and the memory for the next look."""

    def summary(self, memory: Any) -> Frame:
        """Results that the memory holds, by name."""
        del memory
        return {}

    def describe(self, memory: Any) -> str:
        """Of a guard that is broken: what was wrong, and where (host only).

        Over devices `memory` is that of the one that saw it first.
        """
        del memory
        return ""


class AbstractQuantity(Module):
    """A number or array read off a snapshot: an energy, a temperature, positions."""

    @abc.abstractmethod
    def __call__(self, snapshot: Snapshot) -> Any:
        """Its value at this instant."""


class Expression(AbstractQuantity):
    """A plain function of the snapshot as a quantity."""

    function: Callable = static()

    def __call__(self, snapshot: Snapshot) -> Any:
        return self.function(snapshot)


class Every(AbstractObserver):
    """Records named quantities every `interval` steps.

        Every(10, energy=TotalEnergy(), height=lambda now: now.state.position[:, 2])

    **Arguments:** quantities, or plain functions of a `Snapshot`, by the name they are recorded as.
    """

    interval: int = static()
    outputs: dict[str, AbstractQuantity]

    def __init__(self, interval: int, **outputs: Any):
        self.interval = check_interval(interval)
        if not outputs:
            raise ObserverError("Every(n, …) needs something to record, e.g. energy=TotalEnergy()")
        self.outputs = {name: as_quantity(name, q) for name, q in outputs.items()}

    def __call__(self, snapshot: Snapshot, memory: None) -> tuple[Frame, None]:
        return {name: quantity(snapshot) for name, quantity in self.outputs.items()}, memory


class Finite(AbstractObserver):
    """Guard: every floating number of the state is finite.

    Without an `interval` it looks at the end of each chunk only, which costs nothing.
    """

    interval: int | None = static(default=None)
    fault: ClassVar[Fault] = Fault.NOT_FINITE

    def __call__(self, snapshot: Snapshot, memory: None) -> tuple[Frame, None]:
        return {"finite": all_finite(snapshot.state)}, memory


class Guard(AbstractObserver):
    """Guard from a function of the snapshot that returns True while all is well.

    Guard(100, lambda now: jnp.max(jnp.abs(now.state.velocity)) < 50)
    """

    interval: int | None = static()
    holds: AbstractQuantity

    def __init__(self, interval: int | None, holds: Any):
        self.interval = None if interval is None else check_interval(interval)
        self.holds = as_quantity("guard", holds)

    def __call__(self, snapshot: Snapshot, memory: None) -> tuple[Frame, None]:
        return {"guard": self.holds(snapshot)}, memory


def check_interval(interval: Any) -> int:
    """`interval` if it counts steps: 1, 2, …"""
    if isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
        raise ObserverError(f"an observer's interval counts steps: 1, 2, …; got {interval!r}")
    return interval


def as_quantity(name: str, value: Any) -> AbstractQuantity:
    """A quantity as it is, a plain function of the snapshot as an `Expression`."""
    if isinstance(value, AbstractQuantity):
        return value
    if isinstance(value, type) or not callable(value):
        hint = f"{value.__name__}()" if isinstance(value, type) else "a quantity or a function"
        raise ObserverError(f"{name}={value!r} is not a quantity; did you mean {hint}?")
    return Expression(value)
