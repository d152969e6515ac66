"""Down to the minimum, step by step on the host, one start or many side by side."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._methods import AbstractIterative
from ._problem import Inputs, Problem

_MOST_VAIN = 12  # steps without any gain after which rounding is all that is left
Report = Callable[[int, np.ndarray, np.ndarray], None]  # step, losses, norms of gradients


class Descent(NamedTuple):
    """Where starts have come to; leading axis: the start.

    - `z`: `[s p]`; `losses`, `gradients`: `[steps s]`, NaN where a start was done before.
    - `done`: the solver was satisfied; `lost`: not finite.
    """

    z: jax.Array
    losses: np.ndarray
    gradients: np.ndarray
    done: np.ndarray
    lost: np.ndarray

    @property
    def steps(self) -> np.ndarray:
        """How many steps each start took."""
        return np.sum(~np.isnan(self.gradients) | np.isinf(self.losses), axis=0)


class Iteration(NamedTuple):
    """A solver's compiled init and step: made once, used for every round."""

    init: Callable
    step: Callable


def make_iteration(
    method: AbstractIterative, problem: Problem, dtype: Any, many: bool
) -> Iteration:
    """Compiled functions for one start, or for many under `vmap`."""
    solver = method.solver(dtype)
    is_loss = problem.kind == "a loss"
    function = problem.value if is_loss else problem.once_linearised()
    call = lambda z, inputs: (function(z, inputs), None)
    mode = {"forward": "fwd", "reverse": "bwd"}[problem.mode]
    options = {"autodiff_mode": mode} if is_loss else {}

    def init(z, inputs):
        shape = eqx.filter_eval_shape(lambda: call(z, inputs)[0])
        return solver.init(call, z, inputs, options, shape, None, frozenset())

    def step(z, state, inputs):
        new, new_state, _ = solver.step(call, z, inputs, options, state, frozenset())
        done, _ = solver.terminate(call, new, inputs, options, new_state, frozenset())
        info = new_state.f_info
        gradient = info.grad if is_loss else info.compute_grad()
        return new, new_state, (info.as_min(), jnp.sqrt(jnp.sum(gradient**2)), done)

    def kept_step(z, state, active, inputs):
        new, new_state, seen = step(z, state, inputs)
        # One that is done stays where it is while the others go on; a broken step is not taken.
        take = active & jnp.isfinite(seen[0]) & jnp.all(jnp.isfinite(new))
        chosen = lambda a, b: jnp.where(take, a, b) if eqx.is_array(a) else a
        return *jax.tree.map(chosen, (new, new_state), (z, state)), seen

    if not many:
        return Iteration(eqx.filter_jit(init), eqx.filter_jit(kept_step))
    by_start = eqx.if_array(0)
    return Iteration(
        eqx.filter_jit(eqx.filter_vmap(init, in_axes=(by_start, None))),
        eqx.filter_jit(eqx.filter_vmap(kept_step, in_axes=(by_start, by_start, 0, None))),
    )


def iterate(
    iteration: Iteration, z: jax.Array, inputs: Inputs, most_steps: int, report: Report
) -> Descent:
    """From z, `[s p]`, until every start is done, lost, or gains nothing any more."""
    many = len(z) > 1
    place = z if many else z[0]
    state = iteration.init(place, inputs)
    done, lost = np.zeros(len(z), bool), np.zeros(len(z), bool)
    best, vain = np.full(len(z), np.inf), np.zeros(len(z), int)
    losses, gradients = [], []
    for count in range(1, most_steps + 1):
        active = ~(done | lost | (vain > _MOST_VAIN))
        flags = jnp.asarray(active) if many else jnp.asarray(True)
        place, state, seen = iteration.step(place, state, flags, inputs)
        loss, gradient, finished = (np.atleast_1d(np.asarray(x)) for x in seen)
        fine = np.isfinite(loss)
        losses.append(np.where(active, loss, np.nan))
        gradients.append(np.where(active, gradient, np.nan))
        lost |= active & ~fine
        done |= active & fine & finished
        vain = np.where(fine & (loss < best), 0, vain + 1)
        best = np.where(fine, np.fmin(best, loss), best)
        report(count, losses[-1], gradients[-1])
        if np.all(done | lost | (vain > _MOST_VAIN)):
            break
    return Descent(
        place if many else place[None], np.array(losses), np.array(gradients), done, lost
    )
