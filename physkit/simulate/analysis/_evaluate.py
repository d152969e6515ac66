"""`evaluate`: quantities of a state, without a step."""

from typing import Any

import equinox as eqx
import jax

from physkit.core import (
    Frame,
    Health,
    Key,
    KeyLike,
    State,
    as_key,
    as_state,
    collect_faults,
    explain_call,
    is_concrete,
    is_tracing,
    poison_where,
)
from physkit.observe import as_observer

from ..loop._carry import Carry
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
    observers = (as_observer(quantities),) if quantities or not sim.observers else sim.observers
    sim = eqx.tree_at(lambda s: (s.observers, s.guards), sim, (observers, ()))
    state, key = as_state(state), as_key(key)
    if is_tracing() or not is_concrete((sim, state, key)):
        return _evaluate_traced(sim, state, key)
    values, health = _values(sim, *init_and_observe(sim, state, key))
    health.check("at the start")
    return values


@eqx.filter_jit
def _evaluate_traced(sim: Simulation, state: State, key: Key | None) -> Frame:
    """One program, also where `grad` or `vmap` alone would run one operation after the other."""
    return _values(sim, *init_and_observe(sim, state, key))[0]


@eqx.filter_jit
def _values(sim: Simulation, carry: Carry, observed: Carry, frames: Frame) -> tuple[Frame, Health]:
    """What was observed and accumulated at step 0, NaN where a cache is at fault; and the faults."""
    values = {name: jax.tree.map(lambda x: x[0], frame) for name, frame in frames.items()}
    for observer, observer_state in zip(sim.observers, observed.observer_state, strict=True):
        values |= observer.summary(observer_state)
    health = collect_faults((carry.aux, carry.state))
    return poison_where(values, health.bits != 0), health
