"""The backward pass: inverse steps and cotangents together, in the nested loops of the forward pass.

    for n = N−1 … 0:    (xₙ, aₙ) = Φₙ⁻¹(xₙ₊₁, aₙ₊₁)       state, to the last bit
                        (λₙ, āₙ) = (∂Φₙ)ᵀ (λₙ₊₁, āₙ₊₁)     cotangents there

A level of the forward loop repeats the level inside and then observes. A level of this loop pulls back the
observation first, and then repeats the level inside.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
from jaxtyping import Array

from physkit.core import Frame

from ..loop._nested_loop import nest_loops
from ._backward_state import BackwardContext, BackwardState
from ._cotangents import pull_back_observation, pull_back_step
from ._forward import ObserverStates
from ._inverse_step import invert_step
from ._migrate_backward import migrate_backward


class BackwardInputs(NamedTuple):
    """What the backward pass reads for a stretch of time, with a leading time axis.

    - `frame_cotangents`: of the frames recorded in it, by name; None where the loss depends on none.
    - `observer_states`: by interval, what observers and guards held before each observation.
    """

    frame_cotangents: Frame | None
    observer_states: dict[int, ObserverStates]


BackwardBody: TypeAlias = Callable[[BackwardState, BackwardInputs], BackwardState]


def run_backward(
    context: BackwardContext, end: BackwardState, inputs: BackwardInputs, blocks: int
) -> BackwardState:
    """Run `blocks` blocks backward, from the state `end`: the state at their start, with its cotangents."""

    def step_back(current: BackwardState, inputs: BackwardInputs) -> BackwardState:
        del inputs
        n = current.step - 1  # the step to reverse: from n to n + 1 in the forward pass
        state, aux, computed_at = invert_step(
            context.sim, context.plan, context.clock_at, n, current.state, current.aux
        )
        cotangents = pull_back_step(context, n, state, aux, current.aux, current.cotangents)
        current = current._replace(state=state, aux=aux, step=n, cotangents=cotangents)
        # Not earlier: the pullback needs both ends of the step in the same rows.
        return migrate_backward(context, current, computed_at)

    def level(inner: BackwardBody, length: int, interval: int) -> BackwardBody:
        def body(current: BackwardState, inputs: BackwardInputs) -> BackwardState:
            # The time axis of this level has one entry here: its only observation.
            before = jax.tree.map(lambda x: x[0], inputs.observer_states[interval])
            if context.is_observed:
                # First the observers as they were before: at that point Y is differentiated.
                current = _restore_observers(context, current, before, interval)
                cotangents = pull_back_observation(
                    context, current, inputs.frame_cotangents, interval
                )
                current = current._replace(cotangents=cotangents)
            return _repeat_backward(
                inner, current, _inputs_of_inner_levels(inputs, interval), length
            )

        return body

    block = nest_loops(step_back, context.sim.intervals, level)
    return _repeat_backward(block, end, inputs, blocks)


def _repeat_backward(
    body: BackwardBody, current: BackwardState, inputs: BackwardInputs, length: int
) -> BackwardState:
    """`body` applied `length` times, the latest of `inputs` first."""
    if length == 1:
        return body(current, inputs)

    def split_by_repeat(x: Array) -> Array:
        return x.reshape(
            (length, x.shape[0] // length, *x.shape[1:])
        )  # (repeats, times of each, …)

    def scan_body(current: BackwardState, row: BackwardInputs) -> tuple[BackwardState, None]:
        return body(current, row), None

    rows = jax.tree.map(split_by_repeat, inputs)
    return jax.lax.scan(scan_body, current, rows, length, reverse=True)[0]


def _restore_observers(
    context: BackwardContext, current: BackwardState, before: ObserverStates, interval: int
) -> BackwardState:
    """`current` with the observers and guards of `interval` in the states that they had `before` it."""

    def replace(states, observers, earlier):
        # `earlier` holds the states of this interval only, in the order of `observers`.
        earlier, pairs = iter(earlier), zip(observers, states, strict=True)
        return tuple(next(earlier) if o.interval == interval else state for o, state in pairs)

    observer_state = replace(current.observer_state, context.sim.observers, before[0])
    guards = replace(current.guards, context.sim.guards, before[1])
    return current._replace(observer_state=observer_state, guards=guards)


def _inputs_of_inner_levels(inputs: BackwardInputs, interval: int) -> BackwardInputs:
    """What of `inputs` belongs to the levels inside of that of `interval`."""
    states = {k: v for k, v in inputs.observer_states.items() if k != interval}
    frames = inputs.frame_cotangents
    if frames is not None:
        # A quantity with a single frame in this stretch is recorded by this level: intervals are distinct
        # and divide one another, so that inner levels record at least two.
        leaves = {name: jax.tree.leaves(x) for name, x in frames.items()}
        of_this_level = {name for name, xs in leaves.items() if xs and xs[0].shape[0] == 1}
        frames = {name: x for name, x in frames.items() if name not in of_this_level}
    return BackwardInputs(frames, states)
