"""The adjoint that stores nothing: it walks back from the last state, bit by bit."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    Clock,
    Count,
    NotReversible,
    ParameterError,
    replaced,
    static,
)
from physkit.fields import Field
from physkit.particles import Particles

from ._adjoint import AbstractAdjoint, Body, Demand, Direct


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
    kicks; and a `Pairwise` with a neighbour list that is not `exact=True`. Fault `LATTICE` where a
    number leaves its range. Where the way back misses the start, derivatives are NaN: `retrace`
    says at which steps.

    **Notes:** reverse mode only. On accelerators, deposits need `ParticleMesh(…, exact=True)`.

    **Reference:** Levesque & Verlet, J. Stat. Phys. 72, 519 (1993), for leapfrog on integers;
    Maclaurin, Duvenaud & Adams, ICML 2015, for derivatives on the way back.
    """

    room: float = static(default=1024.0)

    def __check_init__(self):
        if not self.room >= 1:
            raise ParameterError(f"room is a factor of 1 or more; got {self.room!r}")

    def repeat(self, body: Body, carry: Any, length: int) -> tuple[Any, Any]:
        return Direct().repeat(body, carry, length)

    def demand(self, length: int, carry: float, inner: Demand) -> Demand:
        # Forward, back on the lattice, and once more for the derivative.
        return Demand(2 * carry, 4 * carry + inner.peak, 3.0)


def on_lattice(sim: Any, state: Any) -> Any:
    """`state` on the lattice that `Reversible` computes on, where it is not yet.

    **Errors:** `NotReversible` names what cannot be taken back.
    """
    sim.integrator.need_reversible(state)
    nodes = jax.tree.leaves(state, is_leaf=has_lattice)
    for node in nodes:
        if not has_lattice(node) and eqx.is_inexact_array(node):
            raise NotReversible(
                "Reversible() moves Particles and Fields; the state holds other floating numbers, "
                f"of shape {jnp.shape(node)}"
            )
    if all(node.lattice is not None for node in nodes if has_lattice(node)):
        return state
    changes = _first_changes(sim, state) if any(isinstance(n, Field) for n in nodes) else state

    def rounded(node, change):
        if not has_lattice(node) or node.lattice is not None:
            return node
        if isinstance(node, Particles):
            return node.on_lattice(sim.dt, sim.adjoint.room)
        return node.on_lattice(change.data, sim.adjoint.room)

    return jax.tree.map(rounded, state, changes, is_leaf=has_lattice)


def off_lattice(state: Any) -> Any:
    """`state` as plain floats."""
    strip = lambda n: replaced(n, {"lattice": None}) if has_lattice(n) else n
    return jax.tree.map(strip, state, is_leaf=has_lattice)


def exact_bits(state: Any) -> list[Array]:
    """The integers that a state is made of: equal only if all bits are."""
    found = []
    for node in jax.tree.leaves(state, is_leaf=has_lattice):
        if isinstance(node, Particles):
            found += [node.lattice.position, node.lattice.velocity.lattice, node.image]
        elif isinstance(node, Field):
            found.append(node.lattice.lattice)
    return jax.tree.leaves(found)


def _first_changes(sim: Any, state: Any) -> Any:
    """What one plain step changes, in the places of a state."""
    plan = sim.integrator.prepare(state, sim.dt)
    clock = Clock.at(Count.of(0), sim.t0, sim.dt)
    aux = sim.integrator.init(plan, clock, state)
    after, _ = sim.integrator.step(plan, clock, state, aux)

    def change(new, old):
        if not isinstance(old, Field):
            return old
        return old.replace(data=new.data - old.data)

    return jax.tree.map(change, after, state, is_leaf=has_lattice)


def has_lattice(node: Any) -> bool:
    """Whether this is a component that can be put on a lattice."""
    return isinstance(node, Particles | Field)
