"""First-order descent by an optimizer of optax, for one start or many side by side."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from physkit.core import Key, PyTree, replace_fields, warn

from .._program import compile_by_content
from ..descent._batches import Batches
from ..descent._descent_file import DescentFile
from ._iterate import Descent, Report
from ._methods import Optax
from ._problem import ObjectiveInputs, Problem

_NUM_REPORTS = 50  # how often the host learns of progress, so how many calls of the program
MIN_STEPS = 10  # that tell whether a loss still falls
_FOREVER = np.iinfo(np.int32).max  # steps without a fall that a descent goes on for


class _DescentState(NamedTuple):
    """One start under way: where it is, the optimizer's state, and the best point so far.

    - `count`: steps taken. `first_loss`: the loss at the start.
    - `last_loss_that_fell`: at the last fall that counted, `steps_since_fall`: steps since then.
    """

    count: jax.Array
    z: jax.Array
    optimizer_state: PyTree
    best_z: jax.Array
    lowest_loss: jax.Array
    first_loss: jax.Array
    last_loss_that_fell: jax.Array
    steps_since_fall: jax.Array


def descend(
    method: Optax,
    problem: Problem,
    z: jax.Array,
    inputs: ObjectiveInputs,
    report: Report,
    key: Key | None = None,
    to: Path | None = None,
) -> Descent:
    """Steps of the optimizer from z, `[s p]`; the best point of each start is returned, of batches the last.
    The last of the others is `last_z`, whose loss is not known yet.

    `key`: of the batches. `to`: a file that the descent is kept in, and goes on from.
    """
    many = len(z) > 1
    batches = Batches.of(method.batch_rows, inputs.data, key)
    if batches is not None:
        # What was traced has the shapes of all data.
        problem = replace_fields(problem, {"traced": None})
    optimizer = optax.with_extra_args_support(method.optimizer)
    patience = _FOREVER if method.patience is None else method.patience

    def init(z: jax.Array) -> _DescentState:
        high = jnp.full((), jnp.inf, z.dtype)
        zero = jnp.zeros((), int)
        return _DescentState(zero, z, optimizer.init(z), z, high, high, high, zero)

    def step(
        state: _DescentState, inputs: ObjectiveInputs
    ) -> tuple[_DescentState, tuple[jax.Array, jax.Array]]:
        if batches is not None:
            inputs = batches.take(inputs, state.count)
        loss, gradient = problem.with_jacobian(state.z, inputs)
        # A start that diverged or ran out of patience stays where it is while the others go on.
        is_active = (
            jnp.isfinite(loss)
            & jnp.all(jnp.isfinite(gradient))
            & (state.steps_since_fall <= patience)
        )
        # Optimizers of optax rely on JAX's promotions, whatever the caller has set.
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            update, optimizer_state = optimizer.update(
                gradient, state.optimizer_state, state.z, value=loss, grad=gradient,
                value_fn=lambda x: problem.value(x, inputs),
            )  # fmt: skip

            def keep_dtype(new: jax.Array, old: jax.Array) -> jax.Array:
                # A scan keeps precisions; optax counts and averages in its own.
                return jnp.asarray(new).astype(jnp.asarray(old).dtype)

            optimizer_state = jax.tree.map(keep_dtype, optimizer_state, state.optimizer_state)
            next_z = optax.apply_updates(state.z, update)
        # `loss` is that of state.z, before the update.
        better = loss < state.lowest_loss
        best_z = jnp.where(better, state.z, state.best_z)
        if batches is not None:
            best_z = jnp.asarray(next_z, state.z.dtype)
        first_loss = jnp.where(jnp.isfinite(state.first_loss), state.first_loss, loss)
        lowest_loss = jnp.minimum(state.lowest_loss, loss)
        fall = first_loss - lowest_loss
        # As `_is_flat` has it: what counts as a fall is relative to the loss and to all that it fell.
        size = jnp.maximum(jnp.minimum(jnp.abs(lowest_loss), fall), method.tolerance * fall)
        falls = ~jnp.isfinite(state.last_loss_that_fell) | (
            state.last_loss_that_fell - loss > method.tolerance * size
        )
        after = _DescentState(
            state.count + 1,
            jnp.asarray(next_z, state.z.dtype),
            optimizer_state,
            best_z,
            jnp.where(better, loss, state.lowest_loss),
            first_loss,
            jnp.where(falls, loss, state.last_loss_that_fell),
            jnp.where(falls, 0, state.steps_since_fall + 1),
        )
        kept = jax.tree.map(lambda new, old: jnp.where(is_active, new, old), after, state)
        return kept, (loss, jnp.sqrt(jnp.sum(gradient**2)))

    def many_steps(
        state: _DescentState, inputs: ObjectiveInputs, length: int
    ) -> tuple[_DescentState, tuple[jax.Array, jax.Array]]:
        return jax.lax.scan(lambda s, _: step(s, inputs), state, None, length=length)

    @compile_by_content
    def program(state: _DescentState, inputs: ObjectiveInputs, length: int):
        if not many:
            return many_steps(state, inputs, length)
        batched = jax.vmap(lambda s, i: many_steps(s, i, length), in_axes=(0, None))
        return batched(state, inputs)

    state = jax.vmap(init)(z) if many else init(z[0])
    # One compiled scan between reports: a host round trip for each step would cost more than the step.
    steps_per_report = -(-method.steps // _NUM_REPORTS)
    losses, gradients, count = [], [], 0
    file = DescentFile.of(to, method, problem, (z, inputs, key))
    if file is not None:
        state, losses, gradients = file.load(state, len(z))
        count = sum(map(len, losses))
        if count > method.steps:
            warn(
                f"the descent in {to} has come to step {count}, past the {method.steps} asked for: it is "
                "returned as it is there"
            )

    def is_over(state: _DescentState, losses: list[np.ndarray]) -> bool:
        """Whether no start goes on: each has run out of patience or diverged."""
        waited = np.atleast_1d(np.asarray(state.steps_since_fall))
        return bool(losses) and bool(np.all((waited > patience) | ~np.isfinite(losses[-1][-1])))

    while count < method.steps and not is_over(state, losses):
        length = min(steps_per_report, method.steps - count)
        state, outcome = program(state, inputs, length)
        # (starts, steps) under vmap, (steps,) alone → (steps, starts).
        loss, gradient = (np.asarray(x).reshape(len(z), length).T for x in outcome)
        losses.append(loss)
        gradients.append(gradient)
        count += length
        if file is not None:
            file.save(state, losses, gradients)
        report(count, loss[-1], gradient[-1], state.z)
    best_z, last_z = (x if many else x[None] for x in (state.best_z, state.z))
    losses, gradients = np.concatenate(losses), np.concatenate(gradients)
    diverged = ~np.isfinite(losses[-1])
    out_of_patience = np.atleast_1d(np.asarray(state.steps_since_fall)) > patience
    is_flat = _is_flat if batches is None else batches.is_flat
    done = (out_of_patience | is_flat(losses, method.tolerance)) & ~diverged
    return Descent(best_z, losses, gradients, done, diverged, last_z=last_z)


def _is_flat(losses: np.ndarray, tolerance: float) -> np.ndarray:
    """Whether in the last tenth of the steps the loss fell by less than `tolerance` of itself and of all
    that it fell; or by less than its square of that: a loss may go down to 0."""
    # Losses go up and down: the lowest before the tail is compared with the lowest of all.
    tail = max(len(losses) // 10, 1)
    if len(losses) < MIN_STEPS:
        return np.zeros(losses.shape[1], bool)
    lowest = np.min(losses, axis=0)
    fall = losses[0] - lowest
    size = np.maximum(np.minimum(np.abs(lowest), fall), tolerance * fall)
    return np.min(losses[:-tail], axis=0) - lowest <= tolerance * size
