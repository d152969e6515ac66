"""The adjoint that stores nothing: it walks back from the last state, bit by bit."""

import math
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    Clock,
    NotReversible,
    ParameterError,
    StepCount,
    replace_fields,
    static,
)
from physkit.fields import Field
from physkit.particles import Particles
from physkit.particles.forces import AbstractForce

from ..adjoint._adjoint import AbstractAdjoint, Direct, LoopBody, MemoryEstimate


class Reversible(AbstractAdjoint):
    """Walks back from the last state to the same bits: memory for derivatives ∝ 1, whatever the steps.

        x' = x + round(dt·v),   v' = v + round(dt·F(x')/m)   on integers, which subtract exactly

    Positions are fractions of the box and velocities multiples of a tiny quantum, both integers of 64
    bits: each drift and kick is an exact shear, taken back by the same step with −dt. Derivatives are
    those of the plain step at the states so rebuilt. Costs about one forward run more than `Direct`,
    and keeps nothing per step; of observers that accumulate, what they hold at each look.

    For `VelocityVerlet`, `Leapfrog`, `Yoshida`, `Suzuki`, `KahanLi`, `BlanesMoan`, `PEFRL`, `Boris`,
    for `Euler` of a kick or drift of fields, and for `Lie`, `Strang`, `Composition` and `Subcycle` of
    these.

    **Arguments:**

    - `room`: how many times further from the origin than at the start particles may fly in open
      space, and how many times larger than at the start fields may become.

    **Errors:** `NotReversible` names a part that damps, draws noise, or is no sequence of drifts and
    kicks, a force that depends on velocities, and a `Pairwise` with a neighbor list that is not
    `exact=True`; it refuses derivatives of second order. `ParameterError` for a room below 1.
    Fault `LATTICE` where a number leaves its range. Where the way back misses the start, derivatives
    are NaN: `retrace` says at which steps.

    **Notes:** reverse mode only, and first order only. A force with a `custom_jvp` or `custom_vjp` of
    its own should hand it positions alone: given velocities, it counts as depending on them. On
    accelerators, deposits need `ParticleMesh(…, exact=True)`.

    **Reference:** Levesque & Verlet, J. Stat. Phys. 72, 519 (1993), for leapfrog on integers;
    Maclaurin, Duvenaud & Adams, ICML 2015, for derivatives on the way back.
    """

    range_factor: float = static(default=1024.0)

    def __check_init__(self):
        number = isinstance(self.range_factor, int | float) and math.isfinite(self.range_factor)
        if not number or self.range_factor < 1:
            raise ParameterError(f"room is a finite factor of 1 or more; got {self.range_factor!r}")

    def repeat(self, body: LoopBody, carry: Any, length: int) -> tuple[Any, Any]:
        return Direct().repeat(body, carry, length)

    def estimate_memory(self, length: int, carry: float, inner: MemoryEstimate) -> MemoryEstimate:
        # Forward, back on the lattice, and once more for the derivative.
        return MemoryEstimate(2 * carry, 4 * carry + inner.peak, 3.0)


def to_fixed_point(sim: Any, state: Any) -> Any:
    """`state` on the lattice that `Reversible` computes on, where it is not yet.

    **Errors:** `NotReversible` names what cannot be taken back.
    """
    sim.integrator.require_reversible(state)
    nodes = jax.tree.leaves(state, is_leaf=has_fixed_point_form)
    for node in nodes:
        if not has_fixed_point_form(node) and eqx.is_inexact_array(node):
            raise NotReversible(
                "Reversible() moves Particles and Fields; the state holds other floating numbers, "
                f"of shape {jnp.shape(node)}"
            )
    if all(node.fixed_point is not None for node in nodes if has_fixed_point_form(node)):
        return state
    changes = _first_changes(sim, state) if any(isinstance(n, Field) for n in nodes) else state

    def rounded(node, change):
        if not has_fixed_point_form(node) or node.fixed_point is not None:
            return node
        if isinstance(node, Particles):
            return node.to_fixed_point(sim.dt, sim.adjoint.range_factor)
        return node.to_fixed_point(change.data, sim.adjoint.range_factor)

    return jax.tree.map(rounded, state, changes, is_leaf=has_fixed_point_form)


def require_velocity_independent(sim: Any, clock: Clock, state: Any, aux: Any) -> None:
    """**Errors:** `NotReversible` names a force that depends on velocities, which damp or drive."""
    state = drop_fixed_point(state)
    is_moved = lambda node: isinstance(node, Particles)
    speeds = [n.velocity for n in jax.tree.leaves(state, is_leaf=is_moved) if is_moved(n)]

    def forced(term, cache, message, speeds):
        rest = iter(speeds)
        moved = lambda node: node.replace(velocity=next(rest)) if is_moved(node) else node
        return forbid_tangents(
            term(clock, jax.tree.map(moved, state, is_leaf=is_moved), cache)[0], message
        )

    for term, cache in sim.integrator.terms(aux):
        if not isinstance(term, AbstractForce):
            continue
        message = (
            f"{_name(term)} depends on velocities, and what damps or drives cannot be taken back: "
            "use adjoint=NestedCheckpoint() or Binomial(n)"
        )
        push = partial(forced, term, cache, message)
        jax.eval_shape(lambda v, push=push: jax.jvp(push, (v,), (v,))[0], speeds)


def _name(term: Any) -> str:
    inner = getattr(term, "inner", None)
    own = type(term).__name__
    return f"{own}({_name(inner)})" if isinstance(inner, AbstractForce) else own


def forbid_tangents(tree: Any, message: str) -> Any:
    """`tree`, no number of which may have a tangent: `NotReversible` says the message where one has."""
    seal = lambda x: _unmoved(message, x) if eqx.is_inexact_array(x) else x
    return jax.tree.map(seal, tree)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _unmoved(message: str, x: Array) -> Array:
    del message
    return x


@_unmoved.defjvp
def _(message, primals, tangents):
    del primals, tangents
    raise NotReversible(message)


def drop_fixed_point(state: Any) -> Any:
    """`state` as plain floats."""
    strip = lambda n: replace_fields(n, {"fixed_point": None}) if has_fixed_point_form(n) else n
    return jax.tree.map(strip, state, is_leaf=has_fixed_point_form)


def exact_bits(state: Any) -> list[Array]:
    """The integers that a state is made of: equal only if all bits are."""
    found = []
    for node in jax.tree.leaves(state, is_leaf=has_fixed_point_form):
        if isinstance(node, Particles):
            found += [node.fixed_point.position, node.fixed_point.velocity.fixed_point, node.image]
        elif isinstance(node, Field):
            found.append(node.fixed_point.fixed_point)
    return jax.tree.leaves(found)


def _first_changes(sim: Any, state: Any) -> Any:
    """What one plain step changes, in the places of a state."""
    plan = sim.integrator.prepare(state, sim.dt)
    clock = Clock.at(StepCount.of(0), sim.t0, sim.dt)
    aux = sim.integrator.init(plan, clock, state)
    after, _ = sim.integrator.step(plan, clock, state, aux)

    def change(new, old):
        if not isinstance(old, Field):
            return old
        return old.replace(data=new.data - old.data)

    return jax.tree.map(change, after, state, is_leaf=has_fixed_point_form)


def has_fixed_point_form(node: Any) -> bool:
    """Whether this is a component that can be put on a lattice."""
    return isinstance(node, Particles | Field)
