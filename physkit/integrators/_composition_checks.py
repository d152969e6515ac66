"""Checks of an integrator as a whole: parts left out, drifts made twice, forces of velocities, who rests."""

from collections import Counter
from typing import TypeAlias

import equinox as eqx
import jax
import numpy as np

from physkit.core import (
    AbstractTerm,
    Aux,
    Clock,
    DeclarationError,
    PyTree,
    State,
    concrete_value,
    depends_on,
    warn,
)
from physkit.particles import AbstractBodies
from physkit.particles.forces import AbstractForce

from ._integrator import AbstractIntegrator

# A term's class and its component; a tuple of components for one that acts on several.
TermKey: TypeAlias = tuple[str, str | tuple[str, ...] | None]


def check_composition(integrator: AbstractIntegrator, clock: Clock, state: State, aux: Aux) -> None:
    """Check an integrator as a whole, by tracing at most.

    Warns of forces that depend on velocities in methods that are of first order then, and of particles that
    nothing moves though they have velocities.

    **Errors:** `DeclarationError` where a part of an equation is advanced by no part of the integrator, or more
    often than another part of it; where two move one component by its velocity.
    """
    _require_whole_equations(integrator, state)
    _require_one_drift(integrator)
    suspects = {id(force): owner for owner, force in integrator.position_forces}
    for term, cache in integrator.terms(aux):
        if id(term) not in suspects or term.ignores_velocities:
            continue
        if reads_velocities(term, clock, state, cache):
            _warn_of_velocities(suspects[id(term)], term)
    _warn_of_resting(integrator, clock, state, aux)


def warn_before_sharding(integrator: AbstractIntegrator, clock: Clock, state: State) -> None:
    """The warnings of `check_composition` that need numbers, before the domain is cut over devices.

    All others are given where shapes for the whole domain are traced.
    """
    _warn_of_resting(integrator, clock, state)


def _require_whole_equations(integrator: AbstractIntegrator, state: State) -> None:
    """**Errors:** `DeclarationError` unless the parts of each equation are advanced equally often."""
    advanced = integrator.advanced_parts(state)
    # Which parts a term has is traced only where some integrator takes less than the whole.
    in_parts = {_key(term) for term, parts in advanced if parts is not None}
    counts: dict[TermKey, Counter[str]] = {}
    for term, parts in advanced:
        if (key := _key(term)) in in_parts:
            every = term.parts(state)
            counter = counts.setdefault(key, Counter(dict.fromkeys(every, 0)))
            counter.update(every if parts is None else parts)
    for (name, component), counter in counts.items():
        if len(set(counter.values())) < 2:
            continue
        where = "" if component is None else f" of {component!r}"
        what = ", ".join(f"its {part} part {_times(n)}" for part, n in counter.items())
        advice = (
            f"SplitStep({name}(…)) or ETDRK4({name}(…)) takes all of it"
            if name == "Schroedinger"
            else f"ETDRK4({name}(…)) takes all of it"
        )
        raise DeclarationError(
            f"{name}{where} is not advanced as a whole by {type(integrator).__name__}: {what}. {advice}; in a "
            "splitting every part must be advanced by exactly one integrator"
        )


def _key(term: AbstractTerm) -> TermKey:
    return type(term).__name__, getattr(term, "component", None)


def _times(n: int) -> str:
    return ("never", "once", "twice")[n] if n < 3 else f"{n} times"


def _require_one_drift(integrator: AbstractIntegrator) -> None:
    """**Errors:** `DeclarationError` where a component is moved by its velocity more than once."""
    owners: dict[str | None, list[str]] = {}
    for owner, name in integrator.drifts:
        owners.setdefault(name, []).append(owner)
    for name, several in owners.items():
        if len(several) < 2:
            continue
        first, *rest = several
        what = "the state" if name is None else repr(name)
        advice = "let one of them move it, and give the others only what changes velocities"
        if all(owner == first for owner in rest):
            advice = f"sum the forces in one, {first}(a + b)"
            if first not in ("VelocityVerlet", "EquationsOfMotion"):
                advice = f"sum what acts in one {first}, for forces {first}(a + b)"
        elif "VelocityVerlet" in several:
            advice += (
                "; forces that need no integrator of their own are summed, VelocityVerlet(a + b)"
            )
        raise DeclarationError(
            f"{' and '.join(several)} both move {what} by its velocity, which would move it {len(several)} "
            f"times as far: {advice}"
        )


def _warn_of_velocities(owner: str, force: AbstractTerm) -> None:
    """Warn of a force that depends on velocities where the method takes it to depend on positions."""
    warn(
        f"{_name(force)} depends on velocities, but {owner} takes forces of positions and time: "
        "it is of first order with this one. Use RK4(EquationsOfMotion(force)); for drag BAOAB, or a "
        "part of its own, Strang(VelocityVerlet(others), RK4(drag)); for magnetic fields Boris"
    )


def _warn_of_resting(
    integrator: AbstractIntegrator, clock: Clock, state: State, aux: Aux | None = None
) -> None:
    """Warn of particles with velocities that no integrator moves.

    - `aux`: of the integrator; traced anew if left out.
    """
    if not isinstance(state, dict):
        return  # a single component, which every integrator advances
    drifting = {name for _, name in integrator.drifts}
    suspects = [name for name, x in state.items() if name not in drifting and _may_fly(x)]
    if not suspects:
        return
    resting: list[str] = []

    def step(arrays: PyTree) -> PyTree:
        before, current = eqx.combine(arrays, rest)
        plan = integrator.prepare(before, clock.dt)
        current = integrator.init(plan, clock, before) if aux is None else current
        after, current = integrator.step(plan, clock, before, current)
        # In a trace an array that nothing replaces is still the same object.
        resting.extend(name for name in suspects if after[name].position is before[name].position)
        return eqx.filter((after, current), eqx.is_array)

    arrays, rest = eqx.partition((state, aux), eqx.is_array)
    jax.eval_shape(step, arrays)
    for name in resting:
        warn(
            f"nothing moves {name!r}, though it has velocities: no force names it. Give it a force of its own, "
            f"VelocityVerlet(others + force(…, component={name!r})), one of strength 0 for free flight; or "
            "velocities of 0, where it shall rest"
        )


def _may_fly(component: PyTree) -> bool:
    """Whether these are particles with a velocity that can be seen."""
    if not _is_particles(component):
        return False
    velocity = concrete_value(component.velocity)
    if velocity is None:
        return False
    frozen = concrete_value(component.frozen)
    return bool(np.any(velocity if frozen is None else velocity[~frozen]))


def _name(term: PyTree) -> str:
    inner = getattr(term, "inner", None)
    kind = type(term).__name__
    return f"{kind}({_name(inner)})" if isinstance(inner, AbstractForce) else kind


def reads_velocities(force: AbstractForce, clock: Clock, state: State, cache: PyTree) -> bool:
    """Whether a force is computed from the velocities of any particles.

    False over devices, where a message between them may hold velocities beside positions.
    """
    arrays, rest = eqx.partition((force, clock, state, cache), eqx.is_array)
    particles = _all_particles(state)
    if not particles or any(one.is_distributed for one in particles):
        return False

    def values(arrays: PyTree) -> PyTree:
        term, clock, state, cache = eqx.combine(arrays, rest)
        # Lists are of positions alone: their search need not be traced.
        if cache is not None:
            cache = term.mark_current(cache, state)
        return term(clock, state, cache)[0]

    return depends_on(values, _mark_velocities(arrays), arrays)


def _all_particles(state: State) -> list[AbstractBodies]:
    return [x for x in jax.tree.leaves(state, is_leaf=_is_particles) if _is_particles(x)]


def _is_particles(x: PyTree) -> bool:
    return isinstance(x, AbstractBodies)


def _mark_velocities(tree: PyTree) -> PyTree:
    """`tree` with True for velocities of particles and False for all other arrays."""

    def mark(path: tuple, x: PyTree) -> bool:
        del x
        return len(path) == 1 and path[0] in ("velocity", "angular_momentum")

    def mark_node(node: PyTree) -> PyTree:
        if not _is_particles(node):
            return jax.tree.map(lambda _: False, node)
        return jax.tree_util.tree_map_with_path(
            lambda path, x: mark(tuple(getattr(key, "name", None) for key in path), x), node
        )

    return jax.tree.map(mark_node, tree, is_leaf=_is_particles)
