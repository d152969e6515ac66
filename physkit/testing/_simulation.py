"""`check_simulation`: runs in pieces, frames, batches, compilation, conservation and derivatives."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    Clock,
    Key,
    ParameterError,
    PyTree,
    State,
    StepCount,
    cast_floats,
    explain_call,
)
from physkit.observe import Every, Snapshot
from physkit.simulate import Carry, Run, Simulation, init, run, simulate

from ._compare import check_equal, check_finite, double_precision, leaves_by_name, typical_magnitude
from ._gradient import check_gradient
from ._integrator import physical_leaves
from ._perturbed_states import meet_constraints, perturb_positions
from ._trees import check_batch, flatten_floats, parameter_paths, perturb, random_like


@explain_call
@double_precision()
def check_simulation(
    sim: Simulation,
    state: State,
    steps: int,
    key: jax.Array | None = None,
    *,
    conserved: dict[str, tuple[Any, float]] | None = None,
    objective: Callable[[Any], Any] | None = None,
    ignore: Sequence[str] = (),
    modes: Sequence[str] = ("forward", "reverse"),
    compare: str = "solve",
) -> None:
    """A simulation keeps every promise that long runs, ensembles and fits build on.

        check_simulation(sim, state, 40, conserved={"energy": (TotalEnergy(), 1e-4)})

    In double precision: a run in pieces gives bit for bit what one run gives, in its state and its
    frames; `simulate` agrees with `run`; frames and times belong together; `vmap` equals a loop;
    other values of parameters compile nothing anew, nor does continuing a carry; derivatives of
    the last state by every parameter equal finite differences; and what is conserved stays so.

    **Arguments:**

    - `steps`: a few blocks: a multiple of the longest observer interval, at least three of them.
    - `conserved`: quantities and how far each may move from its value at step 0, in its own unit.
    - `objective`: state → number that is differentiated; random weights of all observables if left
      out.
    - `ignore`: names of parameters that may have no effect (the start time `t0` always may).
    - `modes`: of differentiation; `("reverse",)` for adjoints that have no forward mode.
    - `compare`: row of the tolerance table for the same result by two programs.

    **Errors:** `AssertionError` that names what is wrong, by how much, and where.
    """
    sim, state = cast_floats((sim, state), jnp.float64)
    # `eqx.tree_at` can put a Python number where the constructor would have made an array.
    for path, leaf in leaves_by_name(sim).items():
        if isinstance(leaf, bool | int | float | complex):
            raise AssertionError(
                f"the simulation's {path} is the bare Python number {leaf}: it has no derivative, "
                "and every value of it compiles anew; make it an array"
            )
    uninterrupted = _run(sim, state, steps, key)
    check_pieces(sim, state, steps, key, uninterrupted)
    check_frames(sim, state, steps, key, uninterrupted, compare)
    if conserved:
        check_conserved(sim, state, steps, key, conserved)
    check_members(sim, state, steps, key, compare)
    check_traces(sim, state, steps, key)

    objective = objective or _weighted_sum(state)
    # One carry for all perturbed models: finite differences need caches of one capacity.
    carry = init(sim, state, key=key)

    def outcome(at):
        # A direction in which constraints break leads to no state: back to where they hold.
        start = reinitialize_carry(at["sim"], meet_constraints(at["state"]), carry)
        return objective(simulate(at["sim"], start, steps).state)

    everything = {"sim": sim, "state": state}
    # Where nothing depends on time, the start time rightly has no effect.
    required = {f"['sim']{p}" for p in parameter_paths(sim) if p != ".t0"}
    what = f"simulation of {type(sim.integrator).__name__}"
    check_gradient(
        outcome,
        everything,
        ignore=ignore,
        require_gradient=required,
        modes=modes,
        directions=1,
        what=what,
    )


def check_pieces(
    sim: Simulation, state: State, steps: int, key: Key | None, uninterrupted: Run
) -> None:
    """A run in uneven pieces equals one run, bit for bit."""
    blocks = steps // sim.observation_period
    if blocks < 3 or steps % sim.observation_period:
        raise ParameterError(
            f"steps={steps} must be at least three times the longest interval, {sim.observation_period}, and a "
            "multiple of it: a run is compared with one in pieces"
        )
    pieces = [_run(sim, state, sim.observation_period, key)]
    # Uneven pieces, so that no two chunks have one length: nothing may happen at a boundary.
    for count in (1, blocks - 2):
        pieces.append(run(sim, pieces[-1].carry, count * sim.observation_period, progress=False))
    name = "a run in three pieces against one run"
    check_equal(pieces[-1].state, uninterrupted.state, f"{name}: the last state", "same")
    frames = jax.tree.map(lambda *x: np.concatenate(x), *[p.frames for p in pieces])
    check_equal(frames, uninterrupted.frames, f"{name}: the frames", "same")
    check_equal(pieces[-1].summary, uninterrupted.summary, f"{name}: the summary", "same")
    if int(pieces[-1].carry.step) != int(uninterrupted.carry.step):
        raise AssertionError(
            f"{name}: ended at step {int(pieces[-1].carry.step)}, expected {int(uninterrupted.carry.step)}"
        )


def check_frames(
    sim: Simulation, state: State, steps: int, key: Key | None, uninterrupted: Run, compare: str
) -> None:
    """Every frame has its time, step 0 is the first, and `simulate` records the same as `run`."""
    check_finite(uninterrupted.state, "the last state")
    intervals = _intervals(sim, state, key)
    for name, frames in uninterrupted.frames.items():
        expected = float(sim.t0) + float(sim.dt) * np.arange(0, steps + 1, intervals[name])
        for path, leaf in leaves_by_name(frames).items():
            if len(leaf) != len(expected):
                raise AssertionError(
                    f"frames of {name}{path}: computed {len(leaf)}, expected {len(expected)}: one every "
                    f"{intervals[name]} of {steps} steps, and step 0"
                )
        check_equal(uninterrupted.times[name], expected, f"the times of {name}", "round-off")
    if set(uninterrupted.times) != set(uninterrupted.frames):
        raise AssertionError(
            f"times of {sorted(uninterrupted.times)} for frames of {sorted(uninterrupted.frames)}"
        )
    traced = jax.jit(lambda c: _observables(simulate(sim, c, steps)))(init(sim, state, key=key))
    check_equal(traced, _observables(uninterrupted), "simulate against run", compare)


def check_conserved(
    sim: Simulation, state: State, steps: int, key: Key | None, conserved: dict
) -> None:
    """What is conserved does not move further from its start than it may."""
    # Beside the simulation's own observers, and every step: a drift between frames counts, too.
    quantities = {name: quantity for name, (quantity, _) in conserved.items()}
    observed = dataclasses.replace(
        sim, observers=(*sim.observers, Every(1, **_label_conserved(quantities)))
    )
    recorded = _run(observed, state, steps, key).frames
    for name, (_, allowed) in conserved.items():
        values = np.asarray(recorded[f"conserved {name}"])
        drift = np.abs(values - values[:1])
        worst = np.unravel_index(int(np.argmax(drift)), drift.shape)  # (frame, …)
        if not np.all(drift <= allowed):
            raise AssertionError(
                f"{name} is not conserved: computed {values[worst]:.9g} at step {int(worst[0])}, "
                f"expected {values[(0, *worst[1:])]:.9g} as at step 0, difference "
                f"{drift[worst]:.3g}, tolerance {allowed:.3g}"
            )


def check_members(sim: Simulation, state: State, steps: int, key: Key | None, compare: str) -> None:
    """A batch of simulations runs as each member alone does."""
    carry = init(sim, state, key=key)
    members = [(sim, carry)]
    for seed in (1, 2):
        other = perturb(sim.integrator, seed, 1e-4)
        other_carry = init(sim, perturb_positions(state, seed, 0.1), key=key)
        # `init` may choose another capacity for the perturbed state; such a member cannot be stacked.
        is_same_tree = jax.tree.structure(other_carry) == jax.tree.structure(carry)
        if is_same_tree and _shapes(other_carry) == _shapes(carry):
            members.append((dataclasses.replace(sim, integrator=other), other_carry))
    check_batch(
        lambda m: _observables(simulate(m[0], m[1], steps)),
        members,
        "a batch of simulations",
        compare,
    )


def check_traces(sim: Simulation, state: State, steps: int, key: Key | None) -> None:
    """One program serves all values of parameters, and every continuation of a carry."""
    traces = []

    @eqx.filter_jit
    def advance(sim, carry):
        traces.append(1)  # runs while tracing only
        return simulate(sim, carry, steps)

    carry = init(sim, state, key=key)
    result = advance(sim, carry)
    advance(dataclasses.replace(sim, integrator=perturb(sim.integrator, 7, 1e-6)), carry)
    advance(dataclasses.replace(sim, dt=sim.dt * 0.999), carry)
    if len(traces) != 1:
        raise AssertionError(
            f"simulate was traced {len(traces)} times for three values of parameters, expected 1: a "
            "parameter is part of the program (a static field, or a number in Python)"
        )
    # A second trace is allowed: `is_initial` of a first carry is static, and is false from here on.
    result = advance(sim, result.carry)
    advance(sim, result.carry)
    if len(traces) != 2:
        raise AssertionError(
            f"continuing a carry was traced {len(traces) - 1} times, expected 1: a step changes "
            "the type of what it carries"
        )


def reinitialize_carry(sim: Simulation, state: State, carry: Carry) -> Carry:
    """`carry` of step 0 for another state and other parameters, with caches of the same size."""
    clock = Clock.at(StepCount.of(0), sim.t0, sim.dt, carry.key)
    plan = sim.integrator.prepare(state, sim.dt)
    # Refresh keeps the shapes of the caches, which `init` would choose anew from the numbers.
    aux = sim.integrator.refresh(plan, clock, state, carry.aux)
    snapshot = Snapshot(clock, state, aux, plan, sim.integrator)
    observer_state = tuple(observer.init(snapshot) for observer in sim.observers)
    guards = tuple(
        (guard.init(snapshot), guard_state)
        for guard, (_, guard_state) in zip(sim.guards, carry.guards, strict=True)
    )
    return carry.replace(state=state, aux=aux, observer_state=observer_state, guards=guards)


def _run(sim: Simulation, state: State, steps: int, key: Key | None) -> Run:
    return run(sim, state, steps, key=key, progress=False)


def _observables(result: PyTree) -> dict[str, Any]:
    return {"state": physical_leaves(result.state), "frames": result.frames, "times": result.times}


def _intervals(sim: Simulation, state: State, key: Key | None) -> dict[str, int]:
    """The interval at which each name is recorded."""
    intervals = {}
    for observer in sim.observers:
        # Only a trace knows the names: one abstract run per observer, with no other beside it.
        alone = dataclasses.replace(sim, observers=(observer,), guards=())
        shapes = eqx.filter_eval_shape(
            lambda s, a=alone, o=observer: simulate(a, s, o.interval, key=key).frames, state
        )
        intervals |= dict.fromkeys(shapes, observer.interval)
    return intervals


def _label_conserved(quantities: dict[str, Any]) -> dict[str, Any]:
    return {f"conserved {name}": quantity for name, quantity in quantities.items()}


def _shapes(tree: PyTree) -> list[tuple[int, ...]]:
    return [jnp.shape(x) for x in jax.tree.leaves(tree)]


def _weighted_sum(state: State) -> Callable[[Any], Any]:
    # Not one sum: errors of opposite sign would cancel, and small leaves vanish beside large ones.
    _, leaves, _ = flatten_floats(physical_leaves(state))
    weights = [random_like(x, (23, i)) / typical_magnitude(x) for i, x in enumerate(leaves)]

    def weighted_sum(last: PyTree) -> Any:
        last_leaves = flatten_floats(physical_leaves(last))[1]
        return sum(jnp.sum(w * x) for w, x in zip(weights, last_leaves, strict=True))

    return weighted_sum
