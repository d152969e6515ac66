"""Forward and back again: whether the way back meets the very same states."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, UInt

from physkit.core import (
    Clock,
    Fault,
    Health,
    Module,
    NotReversible,
    cast_floats,
    collect_faults,
    data,
    float_dtype,
    static,
)
from physkit.integrators import select_clock

from ..adjoint._pullback import fusion_barrier
from ..loop._carry import Carry, init
from ..loop._simulation import Simulation
from ._reversible import Reversible, exact_bits, to_fixed_point
from ._reversible_loop import prepare_reproducibly

_MARKS = 32


class ReversibilityReport(Module):
    """What `retrace` found.

    - `state`: the start, as the way back found it.
    - `bitwise`: whether that is the start to the last bit.
    - `met`: for every mark, whether the way back met the state of the way there.
    - `every`: steps between marks; `health`: of the way there, with `REVERSAL` where the start was missed.
    """

    state: Any
    bitwise: Bool[Array, ""] = data()
    matches: Bool[Array, " m"] = data()
    health: Health
    interval: int = static()

    def check(self) -> None:
        """**Errors:** that of another fault, else `NotReversible` with where the ways part (host only)."""
        found = self.health.faults()
        Health(jnp.int32(found & ~Fault.REVERSAL)).check()
        if Fault.REVERSAL in found:
            last = int(jnp.max(jnp.where(self.matches, -1, jnp.arange(self.matches.shape[0]))))
            raise NotReversible(
                f"the way back parts from the way there between the steps {last * self.interval} and "
                f"{(last + 1) * self.interval}: a term may depend on velocities, or on the order of "
                "particles, or be compiled differently on the way back"
            )


def reversibility_report(sim: Simulation, carry_or_state: Any, steps: int) -> ReversibilityReport:
    """`steps` steps on the lattice of `Reversible`, and back to the start. Pure.

    `Retraced.check()` raises where the way back parts from the way there, which turns derivatives by
    `Reversible` into NaN: inside of `grad` nobody can be told.

    **Arguments:** as for `simulate`; no observers look.

    **Errors:** `NotReversible` names a part that cannot be taken back.
    """
    carry = carry_or_state
    if not isinstance(carry, Carry):
        carry = init(_reversible(sim), carry)
    sim = _reversible(cast_floats(sim, float_dtype(carry.state)))
    carry = carry.replace(state=to_fixed_point(sim, carry.state))
    return _retraced(sim, carry, steps)


@eqx.filter_jit
def _retraced(sim: Simulation, carry: Carry, steps: int) -> ReversibilityReport:
    sim, carry = fusion_barrier((sim, carry))
    plan, aux = prepare_reproducibly(sim, carry)
    at = lambda n: Clock.at(carry.step.plus(n), sim.t0, sim.dt, carry.key)
    every = max(1, steps // _MARKS)
    marks, rest = divmod(steps, every)

    def there(now, n):
        return sim.integrator.step(plan, at(n), *now), None

    def back(now, n):
        begun = select_clock(n == 0, at(n), sim.integrator.end_clock(at(jnp.maximum(n - 1, 0))))
        return sim.integrator.reverse_step(plan, at(n), *now, begun), None

    def piece_there(now, first):
        mark = _digest(now[0])
        return jax.lax.scan(there, now, first + jnp.arange(every))[0], mark

    def piece_back(now, seen):
        first, mark = seen
        now = jax.lax.scan(back, now, first + jnp.arange(every), reverse=True)[0]
        return now, jnp.all(_digest(now[0]) == mark)

    firsts, left = every * jnp.arange(marks), every * marks + jnp.arange(rest)
    end, digests = jax.lax.scan(piece_there, (carry.state, aux), firsts)
    end, _ = jax.lax.scan(there, end, left)
    now, _ = jax.lax.scan(back, end, left, reverse=True)
    (state, _), met = jax.lax.scan(piece_back, now, (firsts, digests), reverse=True)
    pairs = zip(exact_bits(state), exact_bits(carry.state), strict=True)
    bitwise = jnp.all(jnp.stack([jnp.all(a == b) for a, b in pairs]))
    health = collect_faults(end, (Fault.REVERSAL, ~bitwise))
    return ReversibilityReport(state, bitwise, met, health, every)


def _reversible(sim: Simulation) -> Simulation:
    if isinstance(sim.adjoint, Reversible):
        return sim
    parts = {"observers": sim.observers, "guards": sim.guards, "t0": sim.t0}
    return Simulation(sim.integrator, sim.dt, adjoint=Reversible(), **parts)


def _digest(state: Any) -> UInt[Array, " k"]:
    """A number for each array of bits: equal states have equal ones, others hardly ever."""

    def mixed(x):
        x = x.reshape(-1)
        odd = 2 * jnp.arange(x.shape[0], dtype=x.dtype) + jnp.ones((), x.dtype)
        return jnp.sum(x * odd, dtype=x.dtype).astype(jnp.uint32)

    return jnp.stack([mixed(x) for x in exact_bits(state)])
