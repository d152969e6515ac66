"""Down to the minimum, step by step on the host, one start or many side by side."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._methods import AbstractIterative
from ._problem import ObjectiveInputs, Problem

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
    diverged: np.ndarray

    @property
    def steps(self) -> np.ndarray:
        """How many steps each start took."""
        return np.sum(~np.isnan(self.gradients) | np.isinf(self.losses), axis=0)


class CompiledSolver(NamedTuple):
    """A solver's compiled init and step, and the objective's values and derivatives."""

    init: Callable
    evaluate: Callable
    step: Callable


class _Seen(NamedTuple):
    """The objective and its derivative where the solver asked for them."""

    value: jax.Array
    jacobian: jax.Array


@jax.custom_jvp
def _looked_up(z: jax.Array, seen: _Seen) -> jax.Array:
    """What was computed at z, as a function that can be linearized.

    The one expensive program, values and Jacobian, so is compiled once for all that a fit does.
    """
    del z
    return seen.value


@_looked_up.defjvp
def _(primals, tangents):
    seen = primals[1]
    return seen.value, seen.jacobian @ tangents[0]


def compile_solver(
    method: AbstractIterative, problem: Problem, precision: Any, evaluate: Callable, many: bool
) -> CompiledSolver:
    """Compiled functions for one start, or for many under `vmap`."""
    solver = method.solver(precision)
    aim = 1e-3 * step_tolerance(precision)  # so near, one step more is not missed
    is_loss = problem.kind == "a loss"
    call = lambda z, seen: (_looked_up(z, seen), None)

    def init(z):
        count = () if is_loss else (min(problem.count, z.size + 1),)
        blank = _Seen(jnp.zeros(count, z.dtype), jnp.zeros((*count, z.size), z.dtype))
        shape = jax.eval_shape(lambda: blank.value)
        return solver.init(call, z, blank, {}, shape, None, frozenset())

    def step(z, state, seen):
        if not is_loss:
            seen = _compressed(seen)
        new, new_state, _ = solver.step(call, z, seen, {}, state, frozenset())
        done, _ = solver.terminate(call, new, seen, {}, new_state, frozenset())
        info = new_state.f_info
        gradient = info.grad if is_loss else info.compute_grad()
        if not is_loss:
            done |= _left_to_go(info, problem.count) < aim
        return new, new_state, (info.as_min(), jnp.sqrt(jnp.sum(gradient**2)), done)

    def kept_step(z, state, active, seen):
        new, new_state, told = step(z, state, seen)
        # One that is done stays where it is while the others go on; a broken step is not taken.
        take = active & jnp.isfinite(told[0]) & jnp.all(jnp.isfinite(new))
        chosen = lambda a, b: jnp.where(take, a, b) if eqx.is_array(a) else a
        return *jax.tree.map(chosen, (new, new_state), (z, state)), told

    if not many:
        look = lambda state, inputs: _Seen(*evaluate(state.y_eval, inputs))
        return CompiledSolver(eqx.filter_jit(init), look, eqx.filter_jit(kept_step))
    by_start = eqx.if_array(0)
    batch = eqx.filter_jit(jax.vmap(problem.with_jacobian, in_axes=(0, None)))
    return CompiledSolver(
        eqx.filter_jit(eqx.filter_vmap(init)),
        lambda state, inputs: _Seen(*batch(state.y_eval, inputs)),
        eqx.filter_jit(eqx.filter_vmap(kept_step, in_axes=(by_start, by_start, 0, by_start))),
    )


def step_tolerance(precision: Any) -> float:
    """The part of a standard error that may be left to go."""
    return 1e-6 if np.finfo(precision).bits > 32 else 1e-2


def _compressed(seen: _Seen) -> _Seen:
    """p + 1 residuals that have the same sum of squares, gradient and JᵀJ: R of the matrix [J r].

    What a solver does in every step is then small, however many data there are.
    """
    count, p = seen.jacobian.shape
    if count <= p + 1:
        return seen
    both = jnp.concatenate([seen.jacobian, seen.value[:, None]], axis=1)
    r = jnp.linalg.qr(both, mode="r")
    r = r * jnp.where(jnp.diagonal(r) < 0, -1, 1)[:, None]  # one factor, so that steps compare
    return _Seen(r[:, p], r[:, :p])


def _left_to_go(info: Any, count: int) -> jax.Array:
    """The next Gauss–Newton step in standard errors, root mean square; nothing known is infinite."""
    residual = info.residual
    p = residual.size - 1
    if count <= p + 1 or info.jac.in_size() != p:
        return jnp.full((), jnp.inf, residual.dtype)
    along, across = jnp.sum(residual[:p] ** 2), residual[p] ** 2
    return jnp.sqrt(along * (count - p) / (p * jnp.where(across > 0, across, 1)))


def iterate(
    iteration: CompiledSolver,
    z: jax.Array,
    inputs: ObjectiveInputs,
    most_steps: int,
    report: Report,
) -> Descent:
    """From z, `[s p]`, until every start is done, lost, or gains nothing any more."""
    many = len(z) > 1
    place = z if many else z[0]
    state = iteration.init(place)
    done, lost = np.zeros(len(z), bool), np.zeros(len(z), bool)
    best, vain = np.full(len(z), np.inf), np.zeros(len(z), int)
    losses, gradients = [], []
    for count in range(1, most_steps + 1):
        active = ~(done | lost | (vain > _MOST_VAIN))
        flags = jnp.asarray(active) if many else jnp.asarray(True)
        place, state, told = iteration.step(place, state, flags, iteration.evaluate(state, inputs))
        loss, gradient, finished = (np.atleast_1d(np.asarray(x)) for x in told)
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
