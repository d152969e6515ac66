"""`diagnose`: replay steps that went wrong, and name the first bad step, term and leaf."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from physkit.core import (
    ADVICE,
    AbstractTerm,
    Cache,
    Clock,
    Fault,
    ParameterError,
    PhyskitError,
    Plan,
    PyTree,
    State,
    all_finite,
    as_device_array,
    cast_floats,
    drop_outdated_programs,
    explain_call,
    float_dtype,
)

from ..adjoint._adjoint import Direct
from ..driver._crash_record import load_last_good_carry
from ..loop._advance import find_faults, make_block_body, with_materialized_state
from ..loop._carry import Carry, snapshot
from ..loop._init import init
from ..loop._simulation import Simulation

_Terms: TypeAlias = tuple[tuple[AbstractTerm, Cache], ...]  # each with its cache


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


@explain_call
def diagnose(
    what: PhyskitError | Simulation,
    carry: Carry | State = None,
    steps: int | None = None,
    *,
    folder: str | Path | None = None,
) -> Diagnosis:
    """Replay steps that went wrong up to the first bad one, and name its terms and leaves.

        try:
            pk.run(sim, state, 100_000)
        except pk.errors.PhyskitError as error:
            print(pk.diagnose(error))

    A run with `to=` or `checkpoint=` leaves what this needs on disk, for another process:

        print(pk.diagnose(sim, state, folder="run"))

    **Arguments:** the error that `run` raised, for whatever fault; or a simulation, a carry or state, and the
    number of steps to search; or a simulation, the state that the run began with, and the `folder` of the run.

    **Errors:** `ParameterError` for anything else; `FileError` for folders of runs that did not go wrong.
    """
    if isinstance(what, PhyskitError):
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
    drop_outdated_programs(sim, carry)
    if not isinstance(carry, Carry):
        carry = init(sim, carry)
    sim = cast_floats(sim, float_dtype(carry.state))
    plain = dataclasses.replace(sim, observers=(), guards=(), adjoint=Direct())
    plain_carry = carry.replace(observer_state=(), guards=(), is_initial=False)

    limit = as_device_array(np.int32(steps))
    plain_carry, bits, is_bad = _replay(sim, plain, carry.guards, plain_carry, limit)
    if not is_bad:
        return Diagnosis(None, (), carry)
    found = Fault(int(bits))
    terms = _terms_with_caches(plain, plain_carry)
    values, after = _next_step(plain, plain_carry, terms)
    findings = [
        *(f"{fault.name}: {ADVICE[fault][1]}" for fault in ADVICE if fault in found),
        *_describe_terms(terms, values),
        *_describe_leaves(after),
    ]
    # Observers as they were at the start: they have not seen the steps between.
    last_good = carry.replace(step=plain_carry.step, state=plain_carry.state, aux=plain_carry.aux)
    return Diagnosis(int(plain_carry.step), tuple(findings), last_good)


@eqx.filter_jit
def _replay(
    sim: Simulation, plain: Simulation, guards: PyTree, carry: Carry, steps: Int[Array, ""]
) -> tuple[Carry, Int[Array, ""], Bool[Array, ""]]:
    """Up to `steps` steps, until the first bad one: the carry before that, its faults, and if it is bad.

    Step by step, no bisection: a guard may be broken for a moment only, and hold again at the end.

    - `plain`: the simulation without observers and guards. `guards`: what those of `sim` hold at the start.
    """
    plan = plain.integrator.prepare(carry.state, plain.dt)
    body = make_block_body(plain.intervals, Direct(), lambda: (plain, plan))

    def proceeds(loop):
        n, _, _, _, is_bad = loop
        return (n < steps) & ~is_bad

    def step(loop):
        n, _, carry, guards, _ = loop
        later = body(carry)[0]
        whole = with_materialized_state(plain, plan, later)
        guards, broken = _check_guards(sim, plan, whole, guards, n + 1)
        is_bad = broken | ~all_finite(whole.state) | (_fault_bits(plain, plan, whole) != 0)
        return n + 1, carry, later, guards, is_bad

    start = (jnp.int32(0), carry, carry, guards, jnp.array(False))
    _, before, after, _, is_bad = jax.lax.while_loop(proceeds, step, start)
    bits = _fault_bits(plain, plan, with_materialized_state(plain, plan, after))
    return with_materialized_state(plain, plan, before), bits, is_bad


def _check_guards(
    sim: Simulation, plan: Plan, carry: Carry, guards: PyTree, n: Int[Array, ""]
) -> tuple[PyTree, Bool[Array, ""]]:
    """What guards hold after this step, and whether any is broken at it.

    At steps of its interval a guard observes and remembers, as in the run. At all others it looks, and forgets:
    most are broken some steps before the run could notice.

    - `n`: steps since the start of the replay, which is a multiple of every interval from that of the run.
    """
    now, broken, after = snapshot(sim, plan, carry), jnp.array(False), []
    for guard, (memory, guard_state) in zip(sim.guards, guards, strict=True):
        frame, observed = guard(now, memory)
        broken = broken | ~jnp.all(jnp.stack([jnp.all(x) for x in jax.tree.leaves(frame)]))
        if guard.interval is not None:
            is_due = n % guard.interval == 0
            memory = jax.tree.map(partial(jnp.where, is_due), observed, memory)
        after.append((memory, guard_state))
    return tuple(after), broken


def _fault_bits(sim: Simulation, plan: Plan, carry: Carry) -> Int[Array, ""]:
    """All faults but an overflow, which `run` heals by itself."""
    return find_faults(sim, plan, carry).bits & ~int(Fault.OVERFLOW)


def _terms_with_caches(sim: Simulation, carry: Carry) -> _Terms:
    """The terms with the caches that `carry` holds for them, or new ones."""
    # An integrator that does not know its terms' caches gives none.
    return tuple(
        (term, term.init(carry.state) if cache is None else cache)
        for term, cache in sim.integrator.terms(carry.aux)
    )


@eqx.filter_jit
def _next_step(sim: Simulation, carry: Carry, terms: _Terms) -> tuple[list[PyTree], State]:
    """The value of each term at a carry, and the state one step later."""
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    plan = sim.integrator.prepare(carry.state, sim.dt)
    values = [term(clock, carry.state, cache)[0] for term, cache in terms]
    after, _ = sim.integrator.step(plan, clock, carry.state, carry.aux)
    return values, after


def _describe_terms(terms: _Terms, values: list[PyTree]) -> list[str]:
    """The terms at the last good state: which are not finite there, and the largest value of each."""
    found = []
    for (term, _), value in zip(terms, values, strict=True):
        for path, leaf in _inexact_leaves(value):
            largest, index = _largest(leaf)
            state = "not finite" if not np.isfinite(largest) else f"largest value {largest:.4g}"
            found.append(f"{type(term).__name__}{path}: {state} at index {index}")
    return found


def _describe_leaves(after: State) -> list[str]:
    """The leaves of the state that are not finite one step later, or how large they became."""
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
