"""`init`, which makes the first carry: one compiled program, whose results the host checks."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from physkit.core import (
    AbstractGrowable,
    AbstractResizable,
    AbstractTerm,
    Aux,
    CapacityError,
    Clock,
    Frame,
    Health,
    Key,
    KeyLike,
    OverlapError,
    PhyskitError,
    PyTree,
    State,
    StepCount,
    all_finite,
    as_key,
    as_state,
    at_full_precision,
    cast_floats,
    collect_faults,
    concrete_value,
    drop_outdated_programs,
    explain_call,
    find_growables,
    float_dtype,
    fusion_barrier,
    is_concrete,
    is_tracing,
    jit_by_size,
    require_castable,
    with_prescribed_values,
)
from physkit.integrators import check_composition, warn_before_sharding

from ._advance import observe_initial
from ._carry import (
    Carry,
    GuardState,
    check_state,
    check_terms,
    hides_terms,
    snapshot,
    state_faults,
)
from ._carry_parameters import remember_parameters
from ._entry import require_simulation
from ._finite_start import require_finite, require_finite_state
from ._garbage import without_garbage_collection
from ._observe import require_different_names
from ._simulation import Simulation

# What Python code raises that needs the number of a traced value.
HIDDEN_NUMBERS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


@explain_call
@at_full_precision
def init(
    sim: Simulation, state: State, *, key: KeyLike | None = None, capacity: int | None = None
) -> Carry:
    """The carry of step 0: parameters in the state's precision, caches built, observers ready.

    **Arguments:**

    - `key`: a JAX random key or a whole number, for dynamics with noise.
    - `capacity`: at least this capacity of every growable cache (neighbors per particle). By
      default it is estimated from the density where the numbers can be seen, that is outside of
      `jit`, `grad` and `vmap`.

    **Errors:** those of the terms; `ParameterError` when the state at the start is not finite, `OverlapError`
    when the force is not; `ObserverError` when two observers record one name.
    """
    require_simulation("init", sim, state)
    drop_outdated_programs(sim, state)
    return init_and_observe(sim, as_state(state), as_key(key), capacity, observes=False)[0]


class _Start(NamedTuple):
    """What a start is made of, all of it data.

    - `carry`: of step 0, not observed yet. `clock`: of step 0.
    - `observed`: the same after its first observation, and the frames of that; None where none was asked for.
    - `bits`: faults of the state itself. `is_finite`: whether state, forces and caches are finite.
    """

    carry: Carry
    clock: Clock
    observed: tuple[PyTree, PyTree, Frame] | None
    bits: Int[Array, ""]
    is_finite: Bool[Array, ""]


@without_garbage_collection()
@at_full_precision
def init_and_observe(
    sim: Simulation,
    state: State,
    key: Key | None,
    capacity: int | None = None,
    *,
    observes: bool = True,
) -> tuple[Carry, Carry, Frame]:
    """The carry of step 0, the same after its first observation if `observes`, and the frames of that.

    Other arguments and errors as of `init`.
    """
    # Parameters in another precision than the state would change the dtype of a loop's carry.
    require_castable(sim, float_dtype(state))
    sim = cast_floats(sim, float_dtype(state))
    require_finite_state(state)
    is_on_host = is_concrete((sim, state, key)) and not is_tracing()
    if is_on_host:
        start, planned = _start_on_host(sim, state, key, observes)
    else:  # part of a larger program
        check_state(sim, state)
        start, planned = _start(sim, state, key, observes), sim
    check_composition(sim.integrator, start.clock, start.carry.state, start.carry.aux)
    _check_names(sim, start, is_on_host=is_on_host)
    _check_finite(sim, start.carry, start.is_finite)
    aux = start.carry.aux
    if is_on_host:
        for observer in (*sim.observers, *sim.guards):
            observer.check_step(sim.dt)
            observer.check_start(start.carry.state)
        aux = _fit_caches(planned, aux)
    carry = start.carry.replace(aux=aux if capacity is None else _with_capacity(aux, capacity))
    if is_on_host:
        remember_parameters(sim, carry)
    if start.observed is None:
        return carry, carry, {}
    observer_state, guards, frames = start.observed
    observed = carry.replace(observer_state=observer_state, guards=guards, is_initial=False)
    return carry, observed, frames


def _start_on_host(
    sim: Simulation, state: State, key: Key | None, observes: bool
) -> tuple[_Start, Simulation]:
    """The start by one compiled program, and the simulation as it was planned for that."""
    least = 0
    while True:
        try:
            check_terms(sim, state)
            planned = plan_start(sim, state, least)
            start = _start_compiled(planned, state, key, observes)
        except PhyskitError as error:
            # A state that is at fault by itself says more than what fails because of it.
            Health(state_faults(state)).check("at the start")
            if not isinstance(error, CapacityError):
                raise
            planned, start = sim, _start(sim, state, key, observes)
        except HIDDEN_NUMBERS:
            # A term of one's own that needs numbers at the start, and runs where it can see them.
            planned, start = sim, _start(sim, state, key, observes)
        Health(start.bits).check("at the start")
        required = _overflow(start.carry.aux)
        if required <= least:
            return start, planned
        least = required  # the estimates from mean densities were too low


def plan_start(sim: Simulation, state: State, least: int = 0) -> Simulation:
    """`sim` with what its terms choose from the numbers of `state`, which a trace would hide.

    - `least`: as of `AbstractTerm.for_start`.
    """

    def plan(x: PyTree) -> PyTree:
        return x.for_start(state, least) if _plans(x) else x

    return jax.tree.map(plan, sim, is_leaf=_plans)


def plans_start(sim: Simulation) -> bool:
    """Whether a term of `sim` chooses from the numbers of the state (`AbstractTerm.for_start`)."""
    return any(map(_plans, jax.tree.leaves(sim, is_leaf=_plans)))


def _plans(x: PyTree) -> bool:
    if hides_terms(x):
        return True
    return isinstance(x, AbstractTerm) and type(x).for_start is not AbstractTerm.for_start


def check_visible_start(sim: Simulation, state: State, key: Key | None) -> None:
    """Check the numbers of a start that can be seen, before a program takes them up in which they are hidden.

    **Errors:** as of `init`.
    """
    require_finite_state(state)
    check_terms(sim, state)
    if is_concrete(state):
        Health(_state_faults(state)).check("at the start")
        warn_before_sharding(sim.integrator, Clock.at(StepCount.of(0), sim.t0, sim.dt, key), state)


_state_faults = eqx.filter_jit(state_faults)


def _start(sim: Simulation, state: State, key: Key | None, observes: bool) -> _Start:
    bits = state_faults(state)
    state = with_prescribed_values(state, sim.t0)
    # First of all: `Reversible` rounds the state, and forces must be those of the rounded one.
    state = sim.adjoint.prepare_state(sim, state)
    plan = sim.integrator.prepare(state, sim.dt)
    count = StepCount.of(0)
    clock = Clock.at(count, sim.t0, sim.dt, key)
    aux = sim.integrator.init(plan, clock, state)
    carry = Carry(count, state, aux, (), (), key, True)
    now = snapshot(sim, plan, carry, is_current=True)
    carry = carry.replace(
        observer_state=tuple(observer.init(now) for observer in sim.observers),
        guards=tuple(
            (guard.init(now), GuardState(jnp.array(False), count)) for guard in sim.guards
        ),
    )
    observed = None
    if observes:
        # Behind a barrier: forces have the same bits whether or not they are observed at once.
        after, frames = observe_initial(sim, fusion_barrier(carry), is_current=True)
        observed = after.observer_state, after.guards, frames
    return _Start(carry, clock, observed, bits, all_finite((state, aux)))


_start_compiled = jit_by_size(at_full_precision(_start), lambda sim, state, key, observes: state)


def _overflow(aux: Aux) -> int:
    """The largest number of entries that a cache lacks the capacity for; 0 where all have it."""
    nodes = [node for node in find_growables(aux) if isinstance(node, AbstractResizable)]
    required = [(int(np.max(np.asarray(node.required))), node.capacity) for node in nodes]
    return max((needed for needed, capacity in required if needed > capacity), default=0)


def _fit_caches(sim: Simulation, aux: Aux) -> Aux:
    """`aux` with the caches of the terms of `sim` in the capacity that they have turned out to need."""
    caches = [(term, cache) for term, cache in sim.integrator.terms(aux) if cache is not None]
    # By identity: `terms` shows the caches that `aux` holds, wherever in it they are.
    fitted = {id(cache): term.fit_cache(cache) for term, cache in caches}

    def is_cache(x: PyTree) -> bool:
        return id(x) in fitted

    return jax.tree.map(lambda x: fitted.get(id(x), x), aux, is_leaf=is_cache)


def _with_capacity(aux: Aux, capacity: int) -> Aux:
    def is_growable(x: PyTree) -> bool:
        return isinstance(x, AbstractGrowable)

    def grow(node: PyTree) -> PyTree:
        return node.grow_to(capacity) if is_growable(node) and node.capacity < capacity else node

    return jax.tree.map(grow, aux, is_leaf=is_growable)


def _check_names(sim: Simulation, start: _Start, *, is_on_host: bool) -> None:
    """**Errors:** `ObserverError` when two observers record one name."""
    results_of_each = _results_traced_once if is_on_host else _results_of_each
    recorded = eqx.filter_eval_shape(results_of_each, sim, start.carry)
    # Names of frames were compared where these were observed. Only one that is a result, too, says nothing: an
    # observer may give both.
    frames = None if start.observed is None else start.observed[2]
    if frames is None or any(set(frames) & set(results) for results in recorded):
        recorded = eqx.filter_eval_shape(_recorded_by_each, sim, start.carry)
    names: set[str] = set()
    for one in recorded:
        require_different_names(names, one)
        names |= set(one)


def _results_of_each(sim: Simulation, carry: Carry) -> list[Frame]:
    pairs = zip(sim.observers, carry.observer_state, strict=True)
    return [observer.summary(observer_state) for observer, observer_state in pairs]


# Jitted only for JAX to keep what it traced: further runs of a simulation ask for the same names.
_results_traced_once = eqx.filter_jit(_results_of_each)


def _recorded_by_each(sim: Simulation, carry: Carry) -> list[Frame]:
    """Frames and results of each observer."""
    plan = sim.integrator.prepare(carry.state, sim.dt)
    # Names alone count: what caches hold need not be traced.
    now = snapshot(sim, plan, carry, is_current=True)
    pairs = zip(sim.observers, carry.observer_state, strict=True)
    frames = [observer(now, observer_state)[0] for observer, observer_state in pairs]
    results = _results_of_each(sim, carry)
    return [{**frame, **more} for frame, more in zip(frames, results, strict=True)]


def _check_finite(sim: Simulation, carry: Carry, is_finite: Bool[Array, ""]) -> None:
    """Check numbers before the first step, where they can be seen: outside of a trace.

    **Errors:** `ParameterError` for a state or a parameter that is not finite, `OverlapError` for a force
    that is not; those of the faults of caches.
    """
    finite = concrete_value(is_finite)
    if finite is None or finite:
        return
    require_finite_state(carry.state)
    # A parameter that is not finite makes forces that are not, wherever particles are.
    require_finite(sim, "a parameter of the simulation")
    # A cache that knows its fault (a cutoff beyond the image limit) says more than "not finite".
    collect_faults(carry.aux).check("at the start")
    largest = float(jnp.finfo(float_dtype(carry.state)).max)
    raise OverlapError(
        "the force at the start is not finite. Particles may sit on top of each other: start from a lattice, "
        "or relax with minimize(force, state) first. Or numbers leave the range of "
        f"{float_dtype(carry.state)}, up to {largest:.1e}: take units in which they are near 1, or float64"
    )
