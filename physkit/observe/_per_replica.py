"""Observers of each replica of a replica exchange."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import Aux, Clock, Fault, Frame, ObserverError, Plan, PyTree, State
from physkit.integrators import AbstractIntegrator, ReplicaExchange

from ._observer import AbstractObserver, AbstractQuantity, Every, Finite
from ._snapshot import Snapshot


class PerReplica(AbstractObserver):
    """Another observer, or guard, at every place of a `ReplicaExchange`: frames are `[times, replicas, …]`.

    **Arguments:** `observer`: of one replica.
    """

    observer: AbstractObserver

    @property
    def interval(self) -> int | None:
        return self.observer.interval

    @property
    def fault(self) -> Fault:
        return self.observer.fault

    @property
    def needs_equal_times(self) -> bool:
        return self.observer.needs_equal_times

    def with_interval(self, interval: int) -> "PerReplica":
        return PerReplica(self.observer.with_interval(interval))

    def init(self, snapshot: Snapshot) -> PyTree:
        return _map_snapshots(self.observer.init, snapshot)

    def check_start(self, state: State) -> None:
        for k in range(state.num_replicas):
            self.observer.check_start(state.replica(k))

    def check_step(self, dt: Float[Array, ""]) -> None:
        self.observer.check_step(dt)

    def __call__(self, snapshot: Snapshot, observer_state: PyTree) -> tuple[Frame, PyTree]:
        return _map_snapshots(self.observer, snapshot, observer_state)

    def summary(self, observer_state: PyTree) -> Frame:
        if not any(map(eqx.is_array, jax.tree.leaves(observer_state))):
            return {}
        return eqx.filter_vmap(lambda one: self.observer.summary(one))(observer_state)


class ReplicaIndex(AbstractQuantity):
    """Which of the states that a replica exchange began with is at each place now, `[replicas]`."""

    def __call__(self, snapshot: Snapshot) -> Int[Array, " m"]:
        require_exchange(snapshot)
        return snapshot.aux.replica


class SwapAcceptance(AbstractQuantity):
    """How many of the swaps between each place and the next were accepted so far, `[replicas − 1]`.

    0 before the first attempt.
    """

    def __call__(self, snapshot: Snapshot) -> Float[Array, " p"]:
        require_exchange(snapshot)
        dtype = snapshot.clock.dt.dtype
        attempts = jnp.maximum(snapshot.aux.attempts, 1).astype(dtype)
        return snapshot.aux.accepts.astype(dtype) / attempts


def observe_replicas(
    observers: Sequence[AbstractObserver], guards: Sequence[AbstractObserver], interval: int
) -> tuple[tuple[AbstractObserver, ...], tuple[AbstractObserver, ...]]:
    """Observers and guards of one replica as those of all, and who is where every `interval` steps."""
    record = Every(interval, replica=ReplicaIndex(), acceptance=SwapAcceptance())
    # Finite numbers are asked of all replicas at once.
    of_all = (g if isinstance(g, Finite) else PerReplica(g) for g in guards)
    return (*(PerReplica(observer) for observer in observers), record), tuple(of_all)


def require_exchange(snapshot: Snapshot) -> ReplicaExchange:
    """The running replica exchange.

    **Errors:** `ObserverError` where another integrator runs.
    """
    if not isinstance(snapshot.integrator, ReplicaExchange):
        raise ObserverError(
            f"this observes a ReplicaExchange; the integrator is {type(snapshot.integrator).__name__}"
        )
    return snapshot.integrator


def _map_snapshots(function: Callable, snapshot: Snapshot, *stacked: Any) -> Any:
    def one(
        integrator: AbstractIntegrator, clock: Clock, plan: Plan, state: State, aux: Aux, *rest: Any
    ) -> Any:
        return function(Snapshot(clock, state, aux, plan, integrator, snapshot.is_current), *rest)

    parts = (snapshot.plan, snapshot.state.states, snapshot.aux.inner)
    return require_exchange(snapshot).map_places(one, snapshot.clock, *parts, *stacked)
