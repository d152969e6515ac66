"""`diagnose`: replay steps that went wrong, and name the first bad step, term and leaf."""

import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    ADVICE,
    Clock,
    Fault,
    ParameterError,
    PyTree,
    SimulationDiverged,
    State,
    all_finite,
    cast_floats,
    collect_faults,
    float_dtype,
)

from ..adjoint._adjoint import Direct
from ..driver._crash_record import load_last_good_carry
from ..loop._advance import make_block_body, with_materialized_state
from ..loop._carry import Carry, init, snapshot
from ..loop._observe import observe
from ..loop._simulation import Simulation


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Where a simulation went wrong.

    - `step`: the last good step; None if all are good. `carry`: its carry.
    - `findings`: the faults, terms and leaves of the first bad step, in words.
    """

    step: int | None
    findings: tuple[str, ...]
    carry: Carry

    def __repr__(self) -> str:
        if self.step is None:
            return "Diagnosis: nothing is wrong in these steps"
        head = f"Diagnosis: step {self.step} is good, step {self.step + 1} is not"
        return "\n".join([head, *(f"  {line}" for line in self.findings)])


def diagnose(
    what: SimulationDiverged | Simulation,
    carry: Carry | State = None,
    steps: int | None = None,
    *,
    folder: str | Path | None = None,
) -> Diagnosis:
    """Replay steps that went wrong, find the first bad one by bisection, and name its terms and leaves.

        try:
            pk.run(sim, state, 100_000)
        except pk.SimulationDiverged as error:
            print(pk.diagnose(error))

    A run with `to=` or `checkpoint=` leaves what this needs on disk, for another process:

        print(pk.diagnose(sim, state, folder="run"))

    **Arguments:** the error that `run` raised; or a simulation, a carry or state, and the number of
    steps to search; or a simulation, the state that the run began with, and the `folder` of the run.

    **Errors:** `ParameterError` for anything else; `FileError` for folders of runs that did not go wrong.
    """
    if isinstance(what, SimulationDiverged):
        sim, carry, steps = what.sim, what.carry, what.steps
    else:
        sim = what
    if folder is not None and isinstance(sim, Simulation) and carry is not None:
        carry, steps = load_last_good_carry(folder, sim, carry)
    if sim is None or carry is None or steps is None:
        raise ParameterError(
            "diagnose needs an error raised by run, or (simulation, carry, steps), or (simulation, "
            "state, folder=…)"
        )
    if not isinstance(carry, Carry):
        carry = init(sim, carry)
    sim = cast_floats(sim, float_dtype(carry.state))
    plain = dataclasses.replace(sim, observers=(), guards=(), adjoint=Direct())
    plain_carry = carry.replace(observer_state=(), guards=(), is_initial=False)

    # Bisection assumes that a bad simulation stays bad: NaN spreads, and fault bits stay set. Steps are counted
    # from the start of the replay; `plain_carry` is the carry at step `good`.
    good, bad = 0, steps
    if not _is_bad(sim, carry, _advance(plain, plain_carry, jnp.int32(steps))):
        return Diagnosis(None, (), carry)
    while bad - good > 1:
        middle = (good + bad) // 2
        later = _advance(plain, plain_carry, jnp.int32(middle - good))
        if _is_bad(sim, carry, later):
            bad = middle
        else:
            good, plain_carry = middle, later
    faults = _faults(_advance(plain, plain_carry, jnp.int32(1)))
    findings = [
        *(f"{fault.name}: {ADVICE[fault][1]}" for fault in faults),
        *_describe_terms(plain, plain_carry),
        *_describe_leaves(plain, plain_carry),
    ]
    # Observers as they were at the start: they have not seen the steps between.
    last_good = carry.replace(step=plain_carry.step, state=plain_carry.state, aux=plain_carry.aux)
    return Diagnosis(int(plain_carry.step), tuple(findings), last_good)


@eqx.filter_jit
def _advance(sim: Simulation, carry: Carry, steps: jax.Array) -> Carry:
    plan = sim.integrator.prepare(carry.state, sim.dt)
    body = make_block_body(sim, plan, Direct())
    return with_materialized_state(
        sim, plan, jax.lax.fori_loop(0, steps, lambda _, c: body(c)[0], carry)
    )


def _is_bad(sim: Simulation, begin: Carry, later: Carry) -> bool:
    """Whether the state of `later` is not finite, a term found a fault, or a guard is broken.

    - `begin`: the carry at the start of the replay, with what its guards hold.
    """
    if not bool(all_finite(later.state)) or _faults(later):
        return True
    full = begin.replace(step=later.step, state=later.state, aux=later.aux)
    plan = sim.integrator.prepare(later.state, sim.dt)
    for interval in {guard.interval for guard in sim.guards}:
        full, _ = observe(sim, plan, full, interval)
    return any(bool(guard_state.broken) for _, guard_state in full.guards)


def _faults(carry: Carry) -> list[Fault]:
    """The faults that terms found; not an overflow, which `run` heals by itself."""
    found = collect_faults(carry.aux).faults()
    return [fault for fault in ADVICE if fault in found and fault is not Fault.OVERFLOW]


def _describe_terms(sim: Simulation, carry: Carry) -> list[str]:
    """The terms at the last good state: which are not finite there, and the largest value of each."""
    plan = sim.integrator.prepare(carry.state, sim.dt)
    now = snapshot(sim, plan, carry)
    found = []
    for term, cache in now.terms():
        # An integrator that does not know its terms' caches gives none.
        cache = term.init(carry.state) if cache is None else cache
        value, _ = term(now.clock, carry.state, cache)
        for path, leaf in _inexact_leaves(value):
            largest, index = _largest(leaf)
            state = "not finite" if not np.isfinite(largest) else f"largest value {largest:.4g}"
            found.append(f"{type(term).__name__}{path}: {state} at index {index}")
    return found


def _describe_leaves(sim: Simulation, carry: Carry) -> list[str]:
    """The leaves of the state that are not finite one step later, or how large they became."""
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    plan = sim.integrator.prepare(carry.state, sim.dt)
    after, _ = sim.integrator.step(plan, clock, carry.state, carry.aux)
    found = []
    for path, leaf in _inexact_leaves(after):
        largest, index = _largest(leaf)
        if not np.isfinite(largest):
            count = int(np.sum(~np.isfinite(np.asarray(leaf))))
            found.append(f"state{path}: {count} of {leaf.size} not finite, first at index {index}")
        else:
            found.append(f"state{path}: finite, largest value {largest:.4g} at index {index}")
    return found


def _inexact_leaves(tree: PyTree) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(p), x) for p, x in leaves if eqx.is_inexact_array(x)]


def _largest(leaf: Array) -> tuple[float, tuple[int, ...]]:
    size = np.abs(np.asarray(leaf))
    size = np.where(np.isfinite(size), size, np.inf)  # NaN counts as largest
    index = np.unravel_index(int(np.argmax(size)), size.shape)
    return float(size[index]), tuple(int(i) for i in index)
