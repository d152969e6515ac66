"""First-order descent by an optimizer of optax, one start or many side by side."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ._iterate import Descent, Report
from ._methods import Optax
from ._problem import ObjectiveInputs, Problem

_REPORTS = 50  # how often the host looks


class _Walk(NamedTuple):
    """One start under way: where it is, the optimizer's state, and the best place so far.

    - `top`: the loss at the start; `mark`: at the last fall that counted, `since`: steps since then.
    """

    z: jax.Array
    state: Any
    best: jax.Array
    lowest: jax.Array
    top: jax.Array
    mark: jax.Array
    since: jax.Array


def descend(
    method: Optax, problem: Problem, z: jax.Array, inputs: ObjectiveInputs, report: Report
) -> Descent:
    """Steps of the optimizer from z, `[s p]`; the best place of each start is returned."""
    many = len(z) > 1
    optimizer = optax.with_extra_args_support(method.optimizer)
    patience = method.patience or method.steps + 1

    def begin(z):
        high = jnp.full((), jnp.inf, z.dtype)
        return _Walk(z, optimizer.init(z), z, high, high, high, jnp.zeros((), int))

    def one_step(walk: _Walk, inputs: ObjectiveInputs) -> tuple[_Walk, tuple]:
        loss, gradient = problem.with_jacobian(walk.z, inputs)
        # A start that diverged, or has waited in vain, stays where it is.
        fine = jnp.isfinite(loss) & jnp.all(jnp.isfinite(gradient)) & (walk.since <= patience)
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            update, state = optimizer.update(
                gradient, walk.state, walk.z, value=loss, grad=gradient,
                value_fn=lambda x: problem.value(x, inputs),
            )  # fmt: skip
            # A scan keeps precisions; optax counts and averages in its own.
            keep = lambda new, old: jnp.asarray(new).astype(jnp.asarray(old).dtype)
            state = jax.tree.map(keep, state, walk.state)
            ahead = optax.apply_updates(walk.z, update)
        better = loss < walk.lowest
        top = jnp.where(jnp.isfinite(walk.top), walk.top, loss)
        low = jnp.minimum(walk.lowest, loss)
        fall = top - low
        least = jnp.maximum(jnp.minimum(jnp.abs(low), fall), method.tolerance * fall)
        falls = ~jnp.isfinite(walk.mark) | (walk.mark - loss > method.tolerance * least)
        moved = _Walk(
            jnp.asarray(ahead, walk.z.dtype),
            state,
            jnp.where(better, walk.z, walk.best),
            jnp.where(better, loss, walk.lowest),
            top,
            jnp.where(falls, loss, walk.mark),
            jnp.where(falls, 0, walk.since + 1),
        )
        kept = jax.tree.map(lambda a, b: jnp.where(fine, a, b), moved, walk)
        return kept, (loss, jnp.sqrt(jnp.sum(gradient**2)))

    def stretch(walk: _Walk, inputs: ObjectiveInputs, length: int) -> tuple[_Walk, tuple]:
        return jax.lax.scan(lambda w, _: one_step(w, inputs), walk, None, length=length)

    walk = jax.vmap(begin)(z) if many else begin(z[0])
    several = lambda n: jax.vmap(lambda w, i: stretch(w, i, n), in_axes=(0, None))
    program = eqx.filter_jit(lambda w, i, n: several(n)(w, i) if many else stretch(w, i, n))
    length = -(-method.steps // _REPORTS)
    losses, gradients, count = [], [], 0
    while count < method.steps:
        now = min(length, method.steps - count)
        walk, seen = program(walk, inputs, now)
        loss, gradient = (np.asarray(x).reshape(len(z), now).T for x in seen)
        losses.append(loss)
        gradients.append(gradient)
        count += now
        report(count, loss[-1], gradient[-1])
        over = np.atleast_1d(np.asarray(walk.since)) > patience
        if np.all(over | ~np.isfinite(loss[-1])):
            break
    best = walk.best if many else walk.best[None]
    losses, gradients = np.concatenate(losses), np.concatenate(gradients)
    lost = ~np.isfinite(losses[-1])
    over = np.atleast_1d(np.asarray(walk.since)) > patience
    return Descent(best, losses, gradients, (over | _flat(losses, method.tolerance)) & ~lost, lost)


def _flat(losses: np.ndarray, tolerance: float) -> np.ndarray:
    """Whether in the last tenth of the steps the loss fell by less than `tolerance` of itself and of all
    that it fell; or by less than its square of that: a loss may go down to 0."""
    tail = max(len(losses) // 10, 1)
    if len(losses) < 10:
        return np.zeros(losses.shape[1], bool)
    low = np.min(losses, axis=0)
    fall = losses[0] - low
    enough = np.maximum(np.minimum(np.abs(low), fall), tolerance * fall)
    return np.min(losses[:-tail], axis=0) - low <= tolerance * enough
