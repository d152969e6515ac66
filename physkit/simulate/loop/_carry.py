"""The carry: all that continues a run."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from physkit.core import (
    AbstractComponent,
    AbstractTerm,
    Aux,
    Clock,
    Frame,
    Health,
    Key,
    Module,
    ParameterError,
    Plan,
    PyTree,
    State,
    StepCount,
    Tendencies,
    at_full_precision,
    concrete_value,
    data,
    is_random_key,
    static,
    with_prescribed_values,
    with_tangent_of,
)
from physkit.geometry import AbstractSpace
from physkit.integrators import AbstractIntegrator
from physkit.observe import Snapshot
from physkit.parallel import AbstractComm, SerialComm

from ._simulation import Simulation

# In eps of the largest number, what rounding makes of forces that are computed again. Where terms cancel to
# less than a part in so many, new forces are taken: as good as the old ones, though not the same bits.
_ROUNDING = 1024


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
    - `is_initial`: whether it is at step 0 and has not been observed yet: the next frames are one more. It is
      part of the structure, so that a `lax.scan` over `simulate` starts from the carry after a first one.
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


def snapshot(sim: Simulation, plan: Plan, carry: Carry, *, is_current: bool = False) -> Snapshot:
    """What observers see of `carry`.

    - `is_current`: whether its caches are known to be up to date for its state: a carry that was given may have
      been changed.
    """
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    # Walls that move by themselves are no part of the steps: they are where they are at this time.
    state = with_prescribed_values(carry.state, clock.t)
    return Snapshot(clock, state, carry.aux, plan, sim.integrator, is_current)


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


def check_state(sim: Simulation, state: State, *, checks_step: bool = True) -> None:
    """Check the numbers of a state, by themselves and against those of the terms, where they can be seen.

    - `checks_step`: as of `check_terms`.

    **Errors:** those of the faults of components, and of the terms.
    """
    bits = state_faults(state)
    if concrete_value(bits) is not None:  # outside of a trace, an error is better than NaN
        Health(bits).check("at the start")
    check_terms(sim, state, checks_step=checks_step)


def check_terms(sim: Simulation, state: State, *, checks_step: bool = True) -> None:
    """Check the numbers of a state against those of the terms, where they can be seen.

    - `checks_step`: whether a step that is far too long is an error. A member of a sweep shows it as its fault.

    **Errors:** those of the terms (`AbstractTerm.check_state`).
    """
    found = [x for x in jax.tree.leaves(sim.integrator, is_leaf=_is_term) if _is_term(x)]
    terms: list[AbstractTerm] = []
    for term in found:
        term.check_state(state)
        if isinstance(term, AbstractTerm):
            term.check_time(state, sim.t0)
        terms += term.terms if isinstance(term, Tendencies) else ()
    for k, term in enumerate(terms):
        term.check_beside(terms[:k] + terms[k + 1 :], state)
    if checks_step:
        sim.integrator.check_step(state, sim.dt)


def _is_term(x: PyTree) -> bool:
    return isinstance(x, AbstractTerm) or hides_terms(x)


def hides_terms(x: PyTree) -> bool:
    """Whether `x` is an integrator that answers for the terms inside of it."""
    return isinstance(x, AbstractIntegrator) and x.hides_terms


@at_full_precision
def refresh_aux(sim: Simulation, carry: Carry) -> Carry:
    """`carry` with its aux (forces, lists) computed anew from its state."""
    plan = sim.integrator.prepare(carry.state, sim.dt)
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    return carry.replace(aux=sim.integrator.refresh(plan, clock, carry.state, carry.aux))


@at_full_precision
def follow_parameters(sim: Simulation, carry: Carry) -> Carry:
    """`carry` for going on with `sim`, by which its forces and their derivatives are.

    Its aux stays, bit for bit, where it was made by these parameters and of this state. Another simulation with
    other parameters may have made it, or the same one outside of the derivative that is being taken.
    """
    old, form = jax.tree.flatten(carry.aux)
    new, new_form = jax.tree.flatten(refresh_aux(sim, carry).aux)
    if form != new_form or all(a is b for a, b in zip(old, new, strict=True)):
        return carry
    pairs = list(zip(old, new, strict=True))
    changed = [_differs(a, b) for a, b in pairs if jnp.issubdtype(a.dtype, jnp.floating)]
    is_same_state = sim.integrator.is_aux_of(carry.state, carry.aux)
    if is_same_state is not None:
        changed.append(~is_same_state)
    is_other = jnp.any(jnp.stack(changed)) if changed else jnp.array(False)
    # On all devices alike: forces of particles of two devices belong together.
    is_other = _communicator(carry.state).pmax(is_other.astype(jnp.int32)) > 0

    def choose(a: Array, b: Array) -> Array:
        if a is b or is_random_key(a):
            return a
        if not jnp.issubdtype(a.dtype, jnp.inexact):
            return jnp.where(is_other, b, a)
        # A row of its own for each particle: a weak force may have changed beside strong ones.
        is_new = _differs(a, b, axis=-1) if a.ndim > 1 and not jnp.iscomplexobj(a) else False
        return jnp.where(is_other | is_new, b, with_tangent_of(a, b))

    return carry.replace(aux=form.unflatten(map(choose, old, new)))


def _communicator(state: State) -> AbstractComm:
    """That of the devices over which a state is sharded."""

    def is_space(x: PyTree) -> bool:
        return isinstance(x, AbstractSpace)

    spaces = [x for x in jax.tree.leaves(state, is_leaf=is_space) if is_space(x)]
    return spaces[0].comm if spaces else SerialComm()


def _differs(a: Array, b: Array, axis: int | None = None) -> Bool[Array, "..."]:
    """Whether two arrays differ by more than rounding, as a whole or along an axis."""
    a, b = jax.lax.stop_gradient((a, b))
    keep = axis is not None
    size = jnp.max(jnp.abs(a), initial=0, axis=axis, keepdims=keep)
    return jnp.any(
        jnp.abs(a - b) > _ROUNDING * jnp.finfo(a.dtype).eps * size, axis=axis, keepdims=keep
    )


def require_no_key(key: Key | None) -> None:
    """**Errors:** `ParameterError` for a key beside a carry."""
    if key is not None:
        raise ParameterError(
            "a carry brings its own key; give key= only when starting from a state"
        )
