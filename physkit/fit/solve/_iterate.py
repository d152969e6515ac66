"""Steps of an optimistix solver, driven from the host, for one start or many side by side."""

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from physkit.core import PyTree, as_device_array, custom_jvp, matmul

from .._program import compile_by_content
from .._triangle import triangle
from ._methods import AbstractIterative, Kind
from ._problem import ObjectiveInputs, Problem

_MAX_STEPS_WITHOUT_GAIN = 12  # after which rounding is all that is left
# Called with the step, the losses, the norms of the gradients, and z, of all starts.
Report: TypeAlias = Callable[[int, np.ndarray, np.ndarray, jax.Array], None]


class Descent(NamedTuple):
    """Where starts have come to; leading axis: the start.

    - `z`: `[s p]`; `losses`, `gradients`: `[steps s]`, NaN where a start was done before.
    - `done`: the solver was satisfied; `diverged`: not finite.
    - `at_end`: value and derivative at z of a single start, if they were computed on the way.
    - `last_z`: `[s p]`, where the last step led, if its loss is not known yet.
    """

    z: jax.Array
    losses: np.ndarray
    gradients: np.ndarray
    done: np.ndarray
    diverged: np.ndarray
    at_end: tuple[np.ndarray, np.ndarray] | None = None
    last_z: jax.Array | None = None

    @property
    def steps(self) -> np.ndarray:
        """How many steps each start took."""
        return np.sum(~np.isnan(self.gradients) | np.isinf(self.losses), axis=0)


class CompiledSolver(NamedTuple):
    """A solver's compiled init and step, and the objective's values and derivatives.

    - `init`: z → state. `evaluate`: (state, inputs) → evaluation where the solver wants one.
    - `step`: (z, state, active, evaluation) → (z, state, outcome): the loss, the norm of the gradient, and
      whether the solver is done.
    """

    init: Callable[[jax.Array], PyTree]
    evaluate: Callable[[PyTree, ObjectiveInputs], "_Evaluation"]
    step: Callable[..., tuple[jax.Array, PyTree, tuple[jax.Array, ...]]]


class _Evaluation(NamedTuple):
    """The objective and its derivative where the solver asked for them."""

    value: jax.Array
    jacobian: jax.Array


@custom_jvp
def _value_of(z: jax.Array, evaluation: _Evaluation) -> jax.Array:
    """What was computed at z, as a function that the solver can linearize.

    So the one expensive program, values and Jacobian, is compiled once for all that a fit does.
    """
    del z
    return evaluation.value


@_value_of.defjvp
def _value_of_jvp(
    primals: tuple[jax.Array, _Evaluation], tangents: tuple[jax.Array, _Evaluation]
) -> tuple[jax.Array, jax.Array]:
    evaluation = primals[1]
    return evaluation.value, matmul(evaluation.jacobian, tangents[0])


def compile_solver(
    method: AbstractIterative,
    problem: Problem,
    precision: np.dtype,
    evaluate: Callable[[jax.Array, ObjectiveInputs], tuple[jax.Array, jax.Array]],
    many: bool,
) -> CompiledSolver:
    """Compiled functions for one start, or for many under `vmap`."""
    has_arrays = any(map(eqx.is_array, jax.tree.leaves(method)))  # and no hash
    make = _compile_steps.__wrapped__ if has_arrays else _compile_steps
    # Part of what is kept, since solvers count steps in it.
    integers = jax.dtypes.canonicalize_dtype(int)
    init, step = make(method, problem.kind, problem.count, precision, integers, many)
    if not many:
        return CompiledSolver(
            init, lambda state, inputs: _Evaluation(*evaluate(state.y_eval, inputs)), step
        )
    evaluate_batch = compile_by_content(jax.vmap(problem.with_jacobian, in_axes=(0, None)))
    return CompiledSolver(
        init, lambda state, inputs: _Evaluation(*evaluate_batch(state.y_eval, inputs)), step
    )


# The next fit by this method of as many residuals traces nothing of it anew.
@functools.lru_cache(maxsize=32)
def _compile_steps(
    method: AbstractIterative,
    kind: Kind,
    num_residuals: int,
    precision: np.dtype,
    integers: np.dtype,
    many: bool,
) -> tuple[Callable[..., PyTree], Callable[..., PyTree]]:
    """The solver's compiled `init` and `step`, which know of the objective only its evaluations."""
    del integers  # JAX's own, whose programs are others
    solver = method.solver(precision)
    is_loss = kind == "loss"

    # Solvers of optimistix call function(y, args): args carry what the objective's program has computed.
    def function(z: jax.Array, evaluation: _Evaluation) -> tuple[jax.Array, None]:
        return _value_of(z, evaluation), None

    def init(z: jax.Array) -> PyTree:
        # Residuals reach the solver compressed to p + 1, see `_compress`.
        count = () if is_loss else (min(num_residuals, z.size + 1),)
        blank = _Evaluation(jnp.zeros(count, z.dtype), jnp.zeros((*count, z.size), z.dtype))
        shape = jax.eval_shape(lambda: blank.value)
        return solver.init(function, z, blank, {}, shape, None, frozenset())

    def step(z: jax.Array, state: PyTree, evaluation: _Evaluation):
        if not is_loss:
            evaluation = _compress(evaluation)
        new_z, new_state, _ = solver.step(function, z, evaluation, {}, state, frozenset())
        done, _ = solver.terminate(function, new_z, evaluation, {}, new_state, frozenset())
        info = new_state.f_info  # the function at the last point that was accepted
        gradient = info.grad if is_loss else info.compute_grad()
        if not is_loss:
            done |= _step_left(info, num_residuals) < step_tolerance(precision)
        return new_z, new_state, (info.as_min(), jnp.sqrt(jnp.sum(gradient**2)), done)

    def step_if_active(z: jax.Array, state: PyTree, active: jax.Array, evaluation: _Evaluation):
        new_z, new_state, outcome = step(z, state, evaluation)
        # One that is done stays where it is while the others go on; a broken step is not taken.
        take = active & jnp.isfinite(outcome[0]) & jnp.all(jnp.isfinite(new_z))

        # States of solvers also hold functions, which are the same in both.
        def choose(new: PyTree, old: PyTree) -> PyTree:
            return jnp.where(take, new, old) if eqx.is_array(new) else new

        return *jax.tree.map(choose, (new_z, new_state), (z, state)), outcome

    if not many:
        return (
            compile_by_content(init, quickly=True),
            compile_by_content(step_if_active, quickly=True),
        )
    by_start = eqx.if_array(0)
    return (
        compile_by_content(eqx.filter_vmap(init), quickly=True),
        compile_by_content(
            eqx.filter_vmap(step_if_active, in_axes=(by_start, by_start, 0, by_start))
        ),
    )


def step_tolerance(precision: DTypeLike) -> float:
    """How far the minimum may be at the end of a fit, in standard errors."""
    return 1e-6 if np.finfo(precision).bits > 32 else 1e-2


def _compress(evaluation: _Evaluation) -> _Evaluation:
    """p + 1 residuals that have the same sum of squares, gradient and JᵀJ: R of the matrix [J r].

    What a solver does in every step is then small, however many data there are.
    """
    # Q drops out of Jᵀr and JᵀJ, and of all that Gauss–Newton and its damped kin ask for.
    count, p = evaluation.jacobian.shape
    if count <= p + 1:
        return evaluation
    r = triangle(jnp.concatenate([evaluation.jacobian, evaluation.value[:, None]], axis=1))
    r = r * jnp.where(jnp.diagonal(r) < 0, -1, 1)[:, None]  # one factor, so that steps compare
    return _Evaluation(r[:, p], r[:, :p])


def _step_left(info: PyTree, count: int) -> jax.Array:
    """The next Gauss–Newton step in standard errors, root mean square; infinite where nothing is known."""
    residual = info.residual
    p = residual.size - 1
    if count <= p + 1 or info.jac.in_size() != p:
        return jnp.full((), jnp.inf, residual.dtype)
    # In the basis of the compression the first p residuals lie in the range of J, the last across it.
    along, across = jnp.sum(residual[:p] ** 2), residual[p] ** 2
    return jnp.sqrt(along * (count - p) / (p * jnp.where(across > 0, across, 1)))


def iterate(
    solver: CompiledSolver,
    z: jax.Array,
    inputs: ObjectiveInputs,
    max_steps: int,
    report: Report,
    at_start: tuple[np.ndarray, np.ndarray] | None = None,
) -> Descent:
    """From z, `[s p]`, until every start is done, has diverged, or gains nothing any more.

    `at_start`: value and derivative at z of a single start, if they are known.
    """
    many = len(z) > 1
    position = z if many else as_device_array(np.asarray(z)[0])
    state = solver.init(position)
    done, diverged = np.zeros(len(z), bool), np.zeros(len(z), bool)
    lowest, without_gain = np.full(len(z), np.inf), np.zeros(len(z), int)
    losses, gradients = [], []
    at_end = None
    # Driven from the host: progress can be shown, and the one expensive program serves all steps.
    for count in range(1, max_steps + 1):
        active = ~(done | diverged | (without_gain > _MAX_STEPS_WITHOUT_GAIN))
        flags = as_device_array(active if many else np.asarray(True))
        tried = state.y_eval
        if at_start is not None and count == 1 and _is_same(tried, position):
            evaluation = _Evaluation(*(as_device_array(np.asarray(x, z.dtype)) for x in at_start))
        else:
            evaluation = solver.evaluate(state, inputs)
        position, state, outcome = solver.step(position, state, flags, evaluation)
        if not many and _is_same(tried, position):
            at_end = evaluation
        loss, gradient, finished = (np.atleast_1d(np.asarray(x)) for x in outcome)
        finite = np.isfinite(loss)
        losses.append(np.where(active, loss, np.nan))
        gradients.append(np.where(active, gradient, np.nan))
        diverged |= active & ~finite
        done |= active & finite & finished
        # Near the minimum rounding makes the loss go up and down without an end.
        without_gain = np.where(finite & (loss < lowest), 0, without_gain + 1)
        lowest = np.where(finite, np.fmin(lowest, loss), lowest)
        report(count, losses[-1], gradients[-1], position)
        if np.all(done | diverged | (without_gain > _MAX_STEPS_WITHOUT_GAIN)):
            break
    return Descent(
        position if many else as_device_array(np.asarray(position)[None]),
        np.array(losses),
        np.array(gradients),
        done,
        diverged,
        None if at_end is None else (np.asarray(at_end.value), np.asarray(at_end.jacobian)),
    )


def _is_same(a: jax.Array, b: jax.Array) -> bool:
    return np.array_equal(np.asarray(a), np.asarray(b))
