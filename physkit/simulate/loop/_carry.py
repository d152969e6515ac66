"""The carry: all that continues a run; and `init`, which makes the first one."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from physkit.core import (
    AbstractComponent,
    AbstractGrowable,
    AbstractTerm,
    Aux,
    Clock,
    Frame,
    Health,
    Key,
    KeyLike,
    Module,
    ObserverError,
    OverlapError,
    ParameterError,
    Plan,
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
    data,
    explain_call,
    float_dtype,
    require_castable,
    static,
    with_prescribed_values,
)
from physkit.integrators import check_composition
from physkit.observe import Snapshot

from ._entry import require_simulation
from ._finite_start import require_finite, require_finite_state
from ._simulation import Simulation


class GuardState(Module):
    """Whether a guard is broken, and the step at which it first was."""

    broken: Bool[Array, ""] = data()
    step: StepCount

    @property
    def first_violation(self) -> tuple[int, int | None]:
        """The first step at which it was broken, and the device, if there are several (host only)."""
        if np.ndim(self.broken) == 0:
            return int(self.step), None
        # In device layout: a leading axis over devices, each of which has its own first step.
        steps = [
            (int(jax.tree.map(lambda x, i=i: x[i], self.step)), i)
            for i, broken in enumerate(np.asarray(self.broken))
            if broken
        ]
        return min(steps)

    def update(self, holds: Bool[Array, ""], step: StepCount) -> "GuardState":
        """This state after the guard was checked at `step`."""
        violated = ~jnp.all(holds)
        # Once broken, a guard stays broken, with the step at which it was first.
        is_first = violated & ~self.broken
        first = jax.tree.map(lambda new, old: jnp.where(is_first, new, old), step, self.step)
        return GuardState(self.broken | violated, first)


class Carry(Module):
    """Everything that continues a run: `init` makes it, and every verb takes and returns it.

    - `step`: number of steps done. `state`: of the simulation.
    - `aux`: what the integrator carries from step to step (forces, neighbor lists).
    - `observer_state`: what each observer has accumulated. `guards`: the same of each guard, with a
      `GuardState`.
    - `key`: a random key for dynamics with noise.
    - `is_initial`: whether it is at step 0 and has not been observed yet.
    """

    step: StepCount
    state: State
    aux: Aux
    observer_state: tuple[PyTree, ...]
    guards: tuple[tuple[PyTree, GuardState], ...]
    key: Key | None = data(None)
    is_initial: bool = static(default=False)

    def replace(self, **parts: PyTree) -> "Carry":
        """A copy with some parts replaced."""
        return Carry(
            **{**{f.name: getattr(self, f.name) for f in dataclasses.fields(self)}, **parts}
        )


def snapshot(sim: Simulation, plan: Plan, carry: Carry) -> Snapshot:
    """What observers see of `carry`."""
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    # Walls that move by themselves are no part of the steps: they are where they are at this time.
    state = with_prescribed_values(carry.state, clock.t)
    return Snapshot(clock, state, carry.aux, plan, sim.integrator)


def summary(sim: Simulation, carry: Carry) -> Frame:
    """Results of accumulating observers, by name."""
    merged: Frame = {}
    for observer, observer_state in zip(sim.observers, carry.observer_state, strict=True):
        merged |= observer.summary(observer_state)
    return merged


def state_faults(state: State) -> Int[Array, ""]:
    """Fault bits of all components of a state."""

    def is_component(x: PyTree) -> bool:
        return isinstance(x, AbstractComponent)

    bits = jnp.zeros((), jnp.int32)
    for node in jax.tree.leaves(state, is_leaf=is_component):
        if is_component(node):
            bits = bits | node.faults()
    return bits


def check_state(sim: Simulation, state: State) -> None:
    """Check the numbers of a state, by themselves and against those of the terms, where they can be seen.

    **Errors:** those of the faults of components, and of the terms.
    """
    bits = state_faults(state)
    if concrete_value(bits) is not None:  # outside of a trace, an error is better than NaN
        Health(bits).check("at the start")
    check_terms(sim, state)


def check_terms(sim: Simulation, state: State) -> None:
    """Check the numbers of a state against those of the terms, where they can be seen.

    **Errors:** those of the terms (`AbstractTerm.check_state`).
    """
    for term in jax.tree.leaves(sim.integrator, is_leaf=_is_term):
        if _is_term(term):
            term.check_state(state)


def _is_term(x: PyTree) -> bool:
    return isinstance(x, AbstractTerm)


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
    state, key = as_state(state), as_key(key)
    # Parameters in another precision than the state would change the dtype of a loop's carry.
    require_castable(sim, float_dtype(state))
    sim = cast_floats(sim, float_dtype(state))
    require_finite_state(state)
    check_state(sim, state)
    state = with_prescribed_values(state, sim.t0)
    # First of all: `Reversible` rounds the state, and forces must be those of the rounded one.
    state = sim.adjoint.prepare_state(sim, state)
    plan = sim.integrator.prepare(state, sim.dt)
    count = StepCount.of(0)
    aux = sim.integrator.init(plan, Clock.at(count, sim.t0, sim.dt, key), state)
    check_composition(sim.integrator, Clock.at(count, sim.t0, sim.dt, key), state, aux)
    if capacity is not None:
        aux = _with_capacity(aux, capacity)
    carry = Carry(count, state, aux, (), (), key, True)
    now = snapshot(sim, plan, carry)
    carry = carry.replace(
        observer_state=tuple(observer.init(now) for observer in sim.observers),
        guards=tuple(
            (guard.init(now), GuardState(jnp.array(False), count)) for guard in sim.guards
        ),
    )
    _check_names(sim, carry)
    _check_start(sim, carry)
    return carry


@at_full_precision
def refresh_aux(sim: Simulation, carry: Carry) -> Carry:
    """`carry` with its aux (forces, lists) computed anew from its state."""
    plan = sim.integrator.prepare(carry.state, sim.dt)
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    return carry.replace(aux=sim.integrator.refresh(plan, clock, carry.state, carry.aux))


def _with_capacity(aux: Aux, capacity: int) -> Aux:
    def is_growable(x: PyTree) -> bool:
        return isinstance(x, AbstractGrowable)

    def grow(node: PyTree) -> PyTree:
        return node.grow_to(capacity) if is_growable(node) and node.capacity < capacity else node

    return jax.tree.map(grow, aux, is_leaf=is_growable)


def _check_names(sim: Simulation, carry: Carry) -> None:
    """**Errors:** `ObserverError` when two observers record one name."""

    def observe_all(sim: Simulation, carry: Carry) -> list[Frame]:
        now = snapshot(sim, sim.integrator.prepare(carry.state, sim.dt), carry)
        pairs = zip(sim.observers, carry.observer_state, strict=True)
        return [
            {**observer(now, observer_state)[0], **observer.summary(observer_state)}
            for observer, observer_state in pairs
        ]

    names: set[str] = set()
    for recorded in eqx.filter_eval_shape(observe_all, sim, carry):
        twice = sorted(names & set(recorded))
        if twice:
            raise ObserverError(f"two observers record {twice}; give each its own name")
        names |= set(recorded)


def _check_start(sim: Simulation, carry: Carry) -> None:
    """Check numbers before the first step, where they can be seen: outside of a trace.

    **Errors:** `ParameterError` for a state or a parameter that is not finite, `OverlapError` for a force
    that is not; those of the faults of caches.
    """
    finite = concrete_value(all_finite((carry.state, carry.aux)))
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


def require_no_key(key: Key | None) -> None:
    """**Errors:** `ParameterError` for a key beside a carry."""
    if key is not None:
        raise ParameterError(
            "a carry brings its own key; give key= only when starting from a state"
        )
