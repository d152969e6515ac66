"""The backward pass: inverse steps and cotangents together, in the nested loops of the forward pass.

    for n = N−1 … 0:    (xₙ, aₙ) = Φₙ⁻¹(xₙ₊₁, aₙ₊₁)       state, to the last bit
                        (λₙ, āₙ) = (∂Φₙ)ᵀ (λₙ₊₁, āₙ₊₁)     cotangents there

Where the forward loop repeats and then observes, this one pulls back the observation and then repeats.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax

from physkit.core import Frame

from ..loop._nested_loop import nest_loops
from ._backward_state import BackwardContext, BackwardState
from ._cotangents import pull_back_observation, pull_back_step
from ._forward import ObserverStates
from ._inverse_step import invert_step
from ._migrate_backward import migrate_backward


class BackwardInputs(NamedTuple):
    """What the backward pass reads of a stretch of time, with a leading time axis.

    - `frame_cotangents`: of the frames in it, by name; None where the loss depends on none.
    - `observer_states`: by interval, what observers and guards held before each observation.
    """

    frame_cotangents: Frame | None
    observer_states: dict[int, ObserverStates]


BackwardBody: TypeAlias = Callable[[BackwardState, BackwardInputs], BackwardState]


def run_backward(
    context: BackwardContext, end: BackwardState, inputs: BackwardInputs, blocks: int
) -> BackwardState:
    """From the end of `blocks` blocks back to the start."""

    def step_back(now: BackwardState, inputs: BackwardInputs) -> BackwardState:
        del inputs
        n = now.step - 1
        state, aux, computed_at = invert_step(
            context.sim, context.plan, context.clock_at, n, now.state, now.aux
        )
        cotangents = pull_back_step(context, n, state, aux, now.aux, now.cotangents)
        now = now._replace(state=state, aux=aux, step=n, cotangents=cotangents)
        return migrate_backward(context, now, computed_at)

    def level(inner: BackwardBody, length: int, interval: int) -> BackwardBody:
        def body(now: BackwardState, inputs: BackwardInputs) -> BackwardState:
            before = jax.tree.map(lambda x: x[0], inputs.observer_states[interval])
            if context.is_observed:
                now = _step_back_observers(context, now, before, interval)
                cotangents = pull_back_observation(context, now, inputs.frame_cotangents, interval)
                now = now._replace(cotangents=cotangents)
            return _repeat_backward(inner, now, _inside(inputs, interval), length)

        return body

    block = nest_loops(step_back, context.sim.intervals, level)
    return _repeat_backward(block, end, inputs, blocks)


def _repeat_backward(
    body: BackwardBody, now: BackwardState, inputs: BackwardInputs, length: int
) -> BackwardState:
    if length == 1:
        return body(now, inputs)
    split = lambda x: x.reshape((length, x.shape[0] // length, *x.shape[1:]))

    def scanned(now: BackwardState, row: BackwardInputs) -> tuple[BackwardState, None]:
        return body(now, row), None

    rows = jax.tree.map(split, inputs)
    return jax.lax.scan(scanned, now, rows, length, reverse=True)[0]


def _step_back_observers(
    context: BackwardContext, now: BackwardState, before: ObserverStates, interval: int
) -> BackwardState:
    """Observers and guards of one interval as they were `before` the observation."""

    def replace(states, observers, earlier):
        earlier, pairs = iter(earlier), zip(observers, states, strict=True)
        return tuple(next(earlier) if o.interval == interval else state for o, state in pairs)

    observer_state = replace(now.observer_state, context.sim.observers, before[0])
    guards = replace(now.guards, context.sim.guards, before[1])
    return now._replace(observer_state=observer_state, guards=guards)


def _inside(inputs: BackwardInputs, interval: int) -> BackwardInputs:
    """What belongs to the levels inside of that of `interval`."""
    states = {k: v for k, v in inputs.observer_states.items() if k != interval}
    frames = inputs.frame_cotangents
    if frames is not None:
        # Of a stretch that ends with its only frame, that frame is of this level: those of the levels
        # inside have more of them.
        leaves = {name: jax.tree.leaves(x) for name, x in frames.items()}
        own = {name for name, found in leaves.items() if found and found[0].shape[0] == 1}
        frames = {name: x for name, x in frames.items() if name not in own}
    return BackwardInputs(frames, states)
