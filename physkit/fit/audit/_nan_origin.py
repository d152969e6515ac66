"""Where a NaN of a gradient comes from: the backward pass, step by step on the host."""

import dataclasses
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import AbstractTerm, Aux, Cache, Clock, Key, PyTree, State, as_generator
from physkit.observe import Snapshot
from physkit.simulate import Carry, Simulation, init

Cotangents: TypeAlias = PyTree  # a tree of cotangents, of the structure of what they belong to


def find_nan_origin(
    sim: Simulation, state: State, steps: int, *, key: Key | None, seed: int
) -> str:
    """The first step of the backward pass that makes a NaN, and the term and leaf in it, as a sentence."""
    # Forward, keeping every carry: the backward pass needs the state before each step.
    bare_sim = dataclasses.replace(sim, observers=(), guards=())
    carries = [init(bare_sim, state, key=key)]
    step_forward = eqx.filter_jit(_step)
    for _ in range(steps):
        carries.append(step_forward(bare_sim, carries[-1]))
    rng = as_generator(seed)
    by_state, by_aux = _random_like(_floats((carries[-1].state, carries[-1].aux)), rng)
    # Caches get no cotangents of their own: only what they do to the state counts.
    cotangents = (by_state, jax.tree.map(jnp.zeros_like, by_aux))
    step_backward = eqx.filter_jit(_pull_back_step)
    # One step at a time: inside a scan the first NaN spreads to all that comes before it.
    for n in reversed(range(steps)):
        by_sim, cotangents = step_backward(bare_sim, carries[n], cotangents)
        if not (_is_finite(by_sim) and _is_finite(cotangents)):
            return _explain_step(bare_sim, carries[n], carries[n + 1], n, by_sim, cotangents, rng)
    # The force at the start comes before the first step, so last in the backward pass.
    by_sim, by_state = eqx.filter_jit(_pull_back_init)(bare_sim, carries[0], cotangents[1])
    if not (_is_finite(by_sim) and _is_finite(by_state)):
        return _explain_init(bare_sim, carries[0], by_sim, by_state, rng)
    return (
        "Neither the steps nor the force at the start make the NaN: check the objective and the "
        "observers' frames."
    )


def _step(sim: Simulation, carry: Carry) -> Carry:
    plan = sim.integrator.prepare(carry.state, sim.dt)
    state, aux = sim.integrator.step(plan, _clock(sim, carry), carry.state, carry.aux)
    return carry.replace(step=carry.step.plus(1), state=state, aux=aux)


def _clock(sim: Simulation, carry: Carry) -> Clock:
    return Clock.at(carry.step, sim.t0, sim.dt, carry.key)


def _pull_back_step(
    sim: Simulation, carry: Carry, cotangents: Cotangents
) -> tuple[Cotangents, Cotangents]:
    """Cotangents after a step → those of the parameters, and of the state and aux before it."""
    (sim_floats, moving), rest = _partition((sim, (carry.state, carry.aux)))

    def step(sim_floats: PyTree, moving: PyTree) -> PyTree:
        whole_sim, (state, aux) = eqx.combine((sim_floats, moving), rest)
        out = _step(whole_sim, carry.replace(state=state, aux=aux))
        return _floats((out.state, out.aux))

    _, pull_back = jax.vjp(step, sim_floats, moving)
    return pull_back(cotangents)


def _pull_back_init(
    sim: Simulation, carry: Carry, cotangents: Cotangents
) -> tuple[Cotangents, Cotangents]:
    """Cotangents of `aux` at the start → those of the parameters, and of the state."""
    (sim_floats, state_floats), rest = _partition((sim, carry.state))

    def init_aux(sim_floats: PyTree, state_floats: PyTree) -> Aux:
        whole_sim, state = eqx.combine((sim_floats, state_floats), rest)
        plan = whole_sim.integrator.prepare(state, whole_sim.dt)
        return _floats(whole_sim.integrator.init(plan, _clock(whole_sim, carry), state))

    _, pull_back = jax.vjp(init_aux, sim_floats, state_floats)
    return pull_back(cotangents)


def _explain_step(
    sim: Simulation,
    before: Carry,
    after: Carry,
    n: int,
    by_sim: Cotangents,
    cotangents: Cotangents,
    rng: np.random.Generator,
) -> str:
    step = f"A NaN first appears in the backward pass of step {n + 1}"
    # A term may be called at either end of a step: velocity Verlet asks for the force at the end.
    for carry, when in ((before, "before"), (after, "after")):
        found = _first_bad_term(sim, carry, rng)
        if found:
            term, leaves = found
            return f"{step}, in {term} (state {when} the step), by {leaves}"
    reached = {"integrator": by_sim, "state": cotangents[0], "carried": cotangents[1]}
    return f"{step}, {_blame_integrator(sim, reached)}"


def _explain_init(
    sim: Simulation,
    carry: Carry,
    by_sim: Cotangents,
    by_state: Cotangents,
    rng: np.random.Generator,
) -> str:
    start = "A NaN first appears in the backward pass, in the force at the start (init)"
    found = _first_bad_term(sim, carry, rng)
    if found:
        term, leaves = found
        return f"{start}, in {term}, by {leaves}"
    return f"{start}, {_blame_integrator(sim, {'integrator': by_sim, 'state': by_state})}"


def _first_bad_term(
    sim: Simulation, carry: Carry, rng: np.random.Generator
) -> tuple[str, str] | None:
    """The first term whose pullback of random cotangents is not finite, and by which leaves."""
    plan = sim.integrator.prepare(carry.state, sim.dt)
    clock = _clock(sim, carry)
    for term, cache in Snapshot(clock, carry.state, carry.aux, plan, sim.integrator).terms():
        # An integrator that does not know its terms' caches gives none.
        cache = term.init(carry.state) if cache is None else cache
        leaves = _not_finite(_pull_back_term(term, clock, carry.state, cache, rng))
        if leaves:
            return type(term).__name__, _enumerate(leaves)
    return None


def _pull_back_term(
    term: AbstractTerm, clock: Clock, state: State, cache: Cache, rng: np.random.Generator
) -> Cotangents:
    """Random cotangents of a term's value → those of the term and of the state."""
    # Those of the run are not known inside of a step; random ones reach every path.
    floats, rest = _partition({"term": term, "state": state})

    def value(floats: PyTree) -> PyTree:
        whole = eqx.combine(floats, rest)
        return _floats(whole["term"](clock, whole["state"], cache)[0])

    out, pull_back = jax.vjp(value, floats)
    return pull_back(_random_like(out, rng))[0]


def _blame_integrator(sim: Simulation, reached: dict[str, Cotangents]) -> str:
    name = type(sim.integrator).__name__
    return (
        f"in {name} itself: no term by itself makes one there. It reaches "
        f"{_enumerate(_not_finite(reached))}"
    )


def _enumerate(leaves: list[str]) -> str:
    return ", ".join(leaves[:4]) + (" …" if len(leaves) > 4 else "")


def _partition(tree: PyTree) -> tuple[PyTree, PyTree]:
    return eqx.partition(tree, eqx.is_inexact_array)


def _floats(tree: PyTree) -> PyTree:
    return eqx.filter(tree, eqx.is_inexact_array)


def _random_like(tree: PyTree, rng: np.random.Generator) -> PyTree:
    return jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype), tree)


def _is_finite(tree: PyTree) -> bool:
    return all(bool(np.all(np.isfinite(np.asarray(x)))) for x in jax.tree.leaves(tree))


def _not_finite(tree: PyTree) -> list[str]:
    """Names of the leaves that are not finite, each with its first index."""
    found = []
    for path, x in jax.tree_util.tree_leaves_with_path(tree):
        is_bad = ~np.isfinite(np.asarray(x))
        if np.any(is_bad):
            index = np.unravel_index(int(np.argmax(is_bad)), is_bad.shape)
            # Paths begin with the dict of `_pull_back_term`: `state.position`, but `epsilon` of the term.
            name = jax.tree_util.keystr(path).replace("['state']", "state").replace("['term']", "")
            shown = f"{name.removeprefix('.')}[{', '.join(map(str, index))}]"
            found.append(shown.replace("[]", ""))
    return found
