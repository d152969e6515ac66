"""The contract of observers, which record something every n steps, and of quantities, which they read.

A guard is an observer whose frame must stay true.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Fault,
    Frame,
    Module,
    ObserverError,
    PyTree,
    State,
    StepCount,
    StorageKind,
    all_finite,
    as_count,
    call_user_function,
    describe,
    get_component,
    is_random_key,
    replace_fields,
    static,
)

from ._snapshot import Snapshot


class AbstractObserver(Module):
    """Observes the simulation every `interval` steps, step 0 included.

    `init` makes its state from the first snapshot; a call returns a frame (arrays by name, stacked
    over time by the loop) and the new state; `summary` turns the final state into results.

    All of it runs inside the compiled loop, but `describe`: nothing may raise on the values of arrays.
    """

    interval: eqx.AbstractVar[int | None]
    # What a run raises when this observer is one of its guards and its frame is false.
    fault: ClassVar[Fault] = Fault.GUARD

    @property
    def needs_equal_times(self) -> bool:
        """Whether its samples must be equally far apart in time, so that it cannot go on with another dt."""
        return False

    def init(self, snapshot: Snapshot) -> PyTree:
        """The observer's state before its first observation.

        Mistakes that shapes and names show are raised here, once, when the run begins.
        """
        del snapshot

    def with_interval(self, interval: int) -> "AbstractObserver":
        """This observer every `interval` steps."""
        return replace_fields(self, {"interval": interval})

    def check_start(self, state: State) -> None:
        """Check what only numbers show; called on the host, where a run begins, with the state of step 0."""
        del state

    def check_step(self, dt: Float[Array, ""]) -> None:
        """Check the interval with steps of length `dt`; called with `check_start`."""
        del dt

    @abc.abstractmethod
    def __call__(self, snapshot: Snapshot, observer_state: PyTree) -> tuple[Frame, PyTree]:
        """The frame recorded now, and the observer's state for the next observation."""

    def summary(self, observer_state: PyTree) -> Frame:
        """Results that the observer's state holds, by name."""
        del observer_state
        return {}

    def recorded_quantities(self) -> dict[str, "AbstractQuantity"]:
        """The quantities whose values are frames, by the names of the frames; they say how frames are stored.

        Frames without a quantity are stored as series.
        """
        return {}

    def describe(self, observer_state: PyTree) -> str:
        """For a guard that is broken: what was wrong, and where. It is called on the host, after the chunk.

        Over devices `observer_state` is that of the device whose guard broke first.
        """
        del observer_state
        return ""


class AbstractQuantity(Module):
    """A number or array computed from a snapshot: an energy, a temperature, positions.

    `storage_kind` says in which kind of file its frames are stored. A quantity that is stored as a trajectory
    or as a field names its component with `stored_component`.
    """

    storage_kind: ClassVar[StorageKind] = StorageKind.SERIES
    # Whether a user wrote it as a function of a snapshot, with numbers that may be of a device's part.
    is_plain_function: ClassVar[bool] = False

    @abc.abstractmethod
    def __call__(self, snapshot: Snapshot) -> PyTree:
        """Its value at this instant."""

    def check_start(self, state: State) -> None:
        """Check what only numbers show; called on the host, where a run begins, with the state of step 0."""
        del state

    def stored_component(self) -> str | None:
        """The name of the component that it reads; None where the state is one component, or it reads all."""
        return getattr(self, "component", None)

    def stored_field(self, state: State) -> PyTree:
        """What is like its frames where they are stored as a field: it has their grid and location."""
        return get_component(state, self.stored_component())

    def stored_bytes(self, frame: PyTree) -> int:
        """Bytes of one frame in its file, from the shapes of its arrays."""
        leaves = jax.tree.leaves(frame)
        kind = self.storage_kind
        return sum(kind.stored_bytes(tuple(x.shape), np.dtype(x.dtype)) for x in leaves)


class Expression(AbstractQuantity):
    """A plain function of the snapshot as a quantity."""

    function: Callable[[Snapshot], PyTree] = static()
    is_plain_function: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot) -> PyTree:
        value = call_user_function(self.function, (snapshot,), "a quantity", "(snapshot)")
        if isinstance(value, StepCount):
            raise ObserverError(
                "a quantity returns numbers of the snapshot, not a StepCount, which is two: every frame has "
                "its time, result.times[name], and in files its step, too"
            )
        leaves = jax.tree.leaves(value)
        if not leaves or not all(eqx.is_array_like(x) and not is_random_key(x) for x in leaves):
            raise ObserverError(
                f"a quantity returns numbers of the snapshot; this one returned {describe(value)}"
            )
        return value


# What users may give where a quantity is expected.
QuantityLike: TypeAlias = AbstractQuantity | Callable[[Snapshot], PyTree]


class Every(AbstractObserver):
    """Records named quantities every `interval` steps.

        Every(10, energy=TotalEnergy(), height=lambda now: now.state.position[:, 2])

    **Arguments:** quantities, or plain functions of a `Snapshot`, by the name under which they are recorded.

    **Errors:** `ObserverError` for an interval that counts no steps, or something that is no quantity.
    """

    interval: int = static()
    outputs: dict[str, AbstractQuantity]

    def __init__(self, interval: int, **outputs: Any):
        self.interval = check_interval(interval)
        if not outputs:
            raise ObserverError("Every(n, …) needs something to record, e.g. energy=TotalEnergy()")
        self.outputs = {name: as_quantity(name, q) for name, q in outputs.items()}

    def init(self, snapshot: Snapshot) -> None:
        """**Errors:** `ObserverError` for positions in a box that changes, without the box beside them."""
        kinds = {quantity.storage_kind for quantity in self.outputs.values()}
        if not snapshot.integrator.evolves_space or StorageKind.CELL in kinds:
            return
        for name, quantity in self.outputs.items():
            if quantity.storage_kind is StorageKind.POSITIONS:
                raise ObserverError(
                    f"{type(snapshot.integrator).__name__} changes the box, without which positions mean "
                    f"nothing: record it, too, Every({self.interval}, {name}=Positions(), cell=BoxVectors())"
                )

    def __call__(self, snapshot: Snapshot, observer_state: None) -> tuple[Frame, None]:
        return {name: quantity(snapshot) for name, quantity in self.outputs.items()}, observer_state

    def check_start(self, state: State) -> None:
        for quantity in self.outputs.values():
            quantity.check_start(state)

    def recorded_quantities(self) -> dict[str, AbstractQuantity]:
        return dict(self.outputs)


class AbstractGuard(AbstractObserver):
    """An observer for `Simulation(guards=…)`: a run ends where a frame of it is not true."""


class Finite(AbstractGuard):
    """Guard: every floating-point number of the state is finite.

    **Arguments:** `interval`: steps between checks; None for the end of each chunk only, which costs nothing:
    a NaN does not go away.
    """

    interval: int | None = static(default=None)
    fault: ClassVar[Fault] = Fault.NOT_FINITE

    def __call__(self, snapshot: Snapshot, observer_state: None) -> tuple[Frame, None]:
        return {"finite": all_finite(snapshot.state)}, observer_state


class Guard(AbstractGuard):
    """Guard from a function of the snapshot that must return True.

        Guard(100, lambda now: jnp.max(jnp.abs(now.state.velocity)) < 50)

    **Arguments:** `interval`: steps between checks; None for the end of each chunk only. `holds`: the
    condition, a quantity or a function of the snapshot.

    **Errors:** `ObserverError` for a condition that is a number, whatever it is.

    **Notes:** write `x < limit`, not `~(x >= limit)`: comparisons with NaN are false, and NaN breaks the guard.
    """

    interval: int | None = static()
    holds: AbstractQuantity

    def __init__(self, interval: int | None, holds: QuantityLike):
        self.interval = check_optional_interval(interval)
        self.holds = as_quantity("guard", holds)

    def __call__(self, snapshot: Snapshot, observer_state: None) -> tuple[Frame, None]:
        holds = self.holds(snapshot)
        for x in jax.tree.leaves(holds):
            if jnp.result_type(x) != np.bool_:
                raise ObserverError(
                    f"a guard says whether something holds, x < limit; this one returns numbers, "
                    f"{jnp.result_type(x)}{list(jnp.shape(x))}"
                )
        return {"guard": holds}, observer_state


def check_interval(interval: object) -> int:
    """`interval`, which counts steps: 1, 2, …

    **Errors:** `ObserverError` for anything else.
    """
    try:
        return as_count(interval)
    except ObserverError:
        raise ObserverError(
            f"an observer's interval counts steps: 1, 2, …; got {describe(interval)}"
        ) from None


def check_optional_interval(interval: object) -> int | None:
    """`check_interval`, or None, which means the end of each chunk only."""
    return None if interval is None else check_interval(interval)


def as_quantity(name: str, value: object) -> AbstractQuantity:
    """A quantity unchanged; a plain function of the snapshot as an `Expression`.

    **Errors:** `ObserverError` for anything else.
    """
    if isinstance(value, AbstractQuantity):
        return value
    # A class is callable: `Every(10, energy=TotalEnergy)` lacks its parentheses.
    if isinstance(value, type | Module) or not callable(value):
        hint = f"{value.__name__}()" if isinstance(value, type) else "a quantity or a function"
        raise ObserverError(f"{name}={describe(value)} is not a quantity; did you mean {hint}?")
    return Expression(value)


def as_observer(outputs: dict[str, QuantityLike]) -> AbstractObserver:
    """An observer that records these quantities, by name, at every step."""
    return Every(1, **outputs)
