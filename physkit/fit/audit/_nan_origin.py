"""Where a NaN is born: the backward pass, walked through step by step on the host."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import Clock
from physkit.observe import Snapshot
from physkit.simulate import Carry, Simulation, init


def find_nan_origin(
    sim: Simulation, state: Any, steps: int, *, key: Array | None, seed: int
) -> str:
    """The first step of the backward pass that makes a NaN, and the term and leaf in it, as a sentence."""
    plain = dataclasses.replace(sim, observers=(), guards=())
    carries = [init(plain, state, key=key)]
    forward = eqx.filter_jit(_step)
    for _ in range(steps):
        carries.append(forward(plain, carries[-1]))
    rng = np.random.default_rng(seed)
    random = lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype)
    bar = jax.tree.map(random, _floats((carries[-1].state, carries[-1].aux)))
    # Caches get no weight of their own: only what they do to the state counts.
    bar = (bar[0], jax.tree.map(jnp.zeros_like, bar[1]))
    backward = eqx.filter_jit(_pulled)
    for n in reversed(range(steps)):
        by_sim, bar = backward(plain, carries[n], bar)
        if not (_finite(by_sim) and _finite(bar)):
            return _inside(plain, carries[n], carries[n + 1], n, by_sim, bar, rng)
    by_sim, by_state = eqx.filter_jit(_begun)(plain, carries[0], bar[1])
    if not (_finite(by_sim) and _finite(by_state)):
        return _at_the_start(plain, carries[0], by_sim, by_state, rng)
    return (
        "The NaN is born neither in the steps nor in the force at the start: look at the objective "
        "and the observers' frames."
    )


def _step(sim: Simulation, carry: Carry) -> Carry:
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    plan = sim.integrator.prepare(carry.state, sim.dt)
    state, aux = sim.integrator.step(plan, clock, carry.state, carry.aux)
    return carry.replace(step=carry.step.plus(1), state=state, aux=aux)


def _pulled(sim: Simulation, carry: Carry, bar: Any) -> tuple[Any, Any]:
    """What a step's cotangents become: by parameters, and by the state and aux before it."""
    (own, moving), rest = _split((sim, (carry.state, carry.aux)))

    def after(own: Any, moving: Any) -> Any:
        full_sim, (state, aux) = eqx.combine((own, moving), rest)
        out = _step(full_sim, carry.replace(state=state, aux=aux))
        return _floats((out.state, out.aux))

    _, pull = jax.vjp(after, own, moving)
    return pull(bar)


def _begun(sim: Simulation, carry: Carry, bar: Any) -> tuple[Any, Any]:
    """What the cotangents of `aux` at the start become: by parameters, and by the state."""
    (own, moving), rest = _split((sim, carry.state))

    def aux(own: Any, moving: Any) -> Any:
        full, state = eqx.combine((own, moving), rest)
        plan = full.integrator.prepare(state, full.dt)
        clock = Clock.at(carry.step, full.t0, full.dt, carry.key)
        return _floats(full.integrator.init(plan, clock, state))

    _, pull = jax.vjp(aux, own, moving)
    return pull(bar)


def _inside(sim, before: Carry, after: Carry, n: int, by_sim: Any, bar: Any, rng: Any) -> str:
    where = f"A NaN is born in the backward pass of step {n + 1}"
    for carry, when in ((before, "before"), (after, "after")):
        found = _in_terms(sim, carry, rng)
        if found:
            term, leaves = found
            return f"{where}, in {term} (state {when} the step), by {leaves}"
    reached = {"integrator": by_sim, "state": bar[0], "carried": bar[1]}
    return f"{where}, {_itself(sim, reached)}"


def _at_the_start(sim: Simulation, carry: Carry, by_sim: Any, by_state: Any, rng: Any) -> str:
    where = "A NaN is born in the backward pass, in the force at the start (init)"
    found = _in_terms(sim, carry, rng)
    if found:
        term, leaves = found
        return f"{where}, in {term}, by {leaves}"
    return f"{where}, {_itself(sim, {'integrator': by_sim, 'state': by_state})}"


def _in_terms(sim: Simulation, carry: Carry, rng: Any) -> tuple[str, str] | None:
    """The first term that makes a NaN of random cotangents there, and by which leaves."""
    plan = sim.integrator.prepare(carry.state, sim.dt)
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    for term, cache in Snapshot(clock, carry.state, carry.aux, plan, sim.integrator).terms():
        leaves = _bad(_of_term(term, clock, carry.state, cache, rng))
        if leaves:
            return type(term).__name__, _shown(leaves)
    return None


def _itself(sim: Simulation, reached: dict[str, Any]) -> str:
    inside = type(sim.integrator).__name__
    shown = _shown(_bad(reached))
    return f"in {inside} itself: no term by itself makes one there. It reaches {shown}"


def _shown(leaves: list[str]) -> str:
    return ", ".join(leaves[:4]) + (" …" if len(leaves) > 4 else "")


def _of_term(term: Any, clock: Clock, state: Any, cache: Any, rng: Any) -> Any:
    """The cotangents that a term makes of random ones."""
    parts, rest = _split({"term": term, "state": state})

    def value(parts: Any) -> Any:
        full = eqx.combine(parts, rest)
        return _floats(full["term"](clock, full["state"], cache)[0])

    out, pull = jax.vjp(value, parts)
    return pull(jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype), out))[0]


def _split(tree: Any) -> tuple[Any, Any]:
    return eqx.partition(tree, eqx.is_inexact_array)


def _floats(tree: Any) -> Any:
    return eqx.filter(tree, eqx.is_inexact_array)


def _finite(tree: Any) -> bool:
    return all(bool(np.all(np.isfinite(np.asarray(x)))) for x in jax.tree.leaves(tree))


def _bad(tree: Any) -> list[str]:
    """Names of the leaves that are not finite, each with its first index."""
    found = []
    for path, x in jax.tree_util.tree_leaves_with_path(tree):
        wrong = ~np.isfinite(np.asarray(x))
        if np.any(wrong):
            index = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            name = jax.tree_util.keystr(path).replace("['state']", "state").replace("['term']", "")
            found.append(
                f"{name.removeprefix('.')}[{', '.join(map(str, index))}]".replace("[]", "")
            )
    return found
