"""`evaluate`: quantities of a state, without a step."""

from typing import Any

import equinox as eqx
import jax

from physkit.core import (
    Frame,
    Key,
    KeyLike,
    PyTree,
    State,
    as_key,
    as_state,
    collect_faults,
    drop_outdated_programs,
    explain_call,
    is_concrete,
    is_tracing,
    poison_where,
)
from physkit.observe import AbstractObserver, as_observer

from ..loop._entry import require_simulation
from ..loop._init import init_and_observe
from ..loop._simulation import Simulation


@explain_call
def evaluate(
    sim: Simulation, state: State, *, key: KeyLike | None = None, **quantities: Any
) -> Frame:
    """Quantities of a state, as a run would record them at its start. Pure: `jit`, `grad`, `vmap` it.

        evaluate(simulation, crystal, energy=PotentialEnergy(), pressure=Pressure())

    **Arguments:**

    - `key`: as of `run`, for dynamics with noise.
    - `quantities`: quantities, or functions of the snapshot, by name, as for `Every`. If none is given, all
      that the observers of the simulation record, and what they accumulate.

    **Returns:** the values by name.

    **Errors:** those of `init`; `ObserverError` when there is nothing to evaluate. Nothing raises inside a
    trace: what a cache that is too small would get wrong is NaN there.
    """
    require_simulation("evaluate", sim, state)
    drop_outdated_programs(sim, state, quantities)
    observers = (as_observer(quantities),) if quantities or not sim.observers else sim.observers
    sim = eqx.tree_at(lambda s: (s.observers, s.guards), sim, (observers, ()))
    state, key = as_state(state), as_key(key)
    if is_tracing() or not is_concrete((sim, state, key)):
        return _evaluate_traced(sim, state, key)
    carry, observed, frames = init_and_observe(sim, state, key)
    collect_faults((carry.aux, carry.state)).check("at the start")
    # Without the caches, whose capacities differ from state to state: one program for all.
    return _values(sim.observers, observed.observer_state, frames)


@eqx.filter_jit
def _evaluate_traced(sim: Simulation, state: State, key: Key | None) -> Frame:
    """One program, also where `grad` or `vmap` alone would run one operation after the other."""
    carry, observed, frames = init_and_observe(sim, state, key)
    values = _values(sim.observers, observed.observer_state, frames)
    return poison_where(values, collect_faults((carry.aux, carry.state)).bits != 0)


@eqx.filter_jit
def _values(
    observers: tuple[AbstractObserver, ...], observer_states: tuple[PyTree, ...], frames: Frame
) -> Frame:
    """What was observed and accumulated at step 0."""
    values = {name: jax.tree.map(lambda x: x[0], frame) for name, frame in frames.items()}
    for observer, observer_state in zip(observers, observer_states, strict=True):
        values |= observer.summary(observer_state)
    return values
