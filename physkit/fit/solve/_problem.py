"""The objective as a function of one vector, with its derivatives."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from physkit.core import Module, ObjectiveError, call_user_function, replace_fields, static
from physkit.simulate import AbstractAdjoint, Direct, NestedCheckpoint, Simulation

from .._select import Selection
from ._coordinates import Coordinates

Mode = Literal["forward", "reverse", "twice"]  # twice: forward over reverse
_AT_ONCE = 64  # tangents or cotangents side by side; more would fill the memory


class ObjectiveInputs(NamedTuple):
    """All arrays that the objective depends on, so that a program compiled once serves every round."""

    coordinates: Coordinates
    model: Any
    data: Any
    unit: Array


class Problem(Module):
    """An objective with what it is called with.

    - `kind`: "residuals" or "a loss"; `shape`: what the objective returns.
    - `mode`: of its derivatives.
    """

    objective: Callable = static()
    selection: Selection = static()
    rest: Any = static()  # of model and data: what is no array
    has_data: bool = static()
    kind: str = static()
    shape: Any = static()
    mode: Mode = static()

    def model(self, z: Float[Array, " p"], inputs: ObjectiveInputs) -> Any:
        """The model with its parameters at z."""
        whole = eqx.combine(inputs.model, self.rest.value[0])
        if self.mode == "forward":  # keeps nothing for a backward pass anyway
            whole = _with_adjoint(whole, Direct())
        if self.mode == "twice":
            whole = _with_adjoint(whole, NestedCheckpoint())
        return self.selection.put(whole, inputs.coordinates.values(z))

    def output(self, z: Float[Array, " p"], inputs: ObjectiveInputs) -> Any:
        """What the objective returns at z."""
        given = (self.model(z, inputs),)
        if self.has_data:
            given = (*given, eqx.combine(inputs.data, self.rest.value[1]))
        signature = "(model, data)" if self.has_data else "(model)"
        return call_user_function(self.objective, given, "an objective", signature)

    def value(self, z: Float[Array, " p"], inputs: ObjectiveInputs) -> Float[Array, "..."]:
        """Residuals as one vector, or the loss, over `inputs.unit`."""
        flat, _ = ravel_pytree(self.output(z, inputs))
        flat = flat.astype(z.dtype) / inputs.unit
        return flat if self.kind == "residuals" else flat[0]

    def with_jacobian(self, z: Float[Array, " p"], inputs: ObjectiveInputs) -> tuple[Array, Array]:
        """Value and Jacobian, `[r p]`; of a loss its gradient, `[p]`."""
        f = lambda x: self.value(x, inputs)
        if self.mode == "reverse":
            value, pull = jax.vjp(f, z)
            if value.ndim == 0:
                return value, pull(jnp.ones_like(value))[0]
            rows = _over(lambda w: pull(w)[0], jnp.eye(value.size, dtype=value.dtype))
            return value, rows
        values, columns = _over(lambda t: jax.jvp(f, (z,), (t,)), jnp.eye(z.size, dtype=z.dtype))
        return values[0], jnp.moveaxis(columns, 0, -1)

    @property
    def count(self) -> int:
        """How many numbers the objective returns."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.shape))


def make_problem(
    objective: Callable, selection: Selection, start: Coordinates, model: Any, data: Any, jac: Any
) -> tuple[Problem, ObjectiveInputs]:
    """The problem, and its inputs at the start.

    **Errors:** `ObjectiveError` for an objective that returns neither a number nor arrays of them.
    """
    if jac not in (None, "forward", "reverse"):
        raise ObjectiveError(f"jac must be 'forward' or 'reverse', or left out; got {jac!r}")
    model_arrays, model_rest = eqx.partition(model, eqx.is_array)
    data_arrays, data_rest = eqx.partition(data, eqx.is_array)
    one = jnp.ones((), start.center.dtype)
    inputs = ObjectiveInputs(start, model_arrays, data_arrays, one)
    rest = ComparedByIdentity((model_rest, data_rest))
    blank = Problem(objective, selection, rest, data is not None, "", None, "forward")
    z = jnp.zeros_like(start.center)
    shape = eqx.filter_eval_shape(blank.output, z, inputs)
    kind = _kind(shape)
    count = sum(leaf.size for leaf in jax.tree.leaves(shape))
    mode = jac or ("forward" if z.size <= count else "reverse")
    if kind == "residuals" and z.size > count:
        raise ObjectiveError(
            f"more parameters than data: {z.size} numbers to fit from {count} residuals. Fit fewer, or "
            "add residuals for what is known beforehand, (value − expected) / uncertainty"
        )
    return Problem(objective, selection, rest, data is not None, kind, shape, mode), inputs


class ComparedByIdentity:
    """Something that compares by identity, so that it may be static whatever it holds."""

    def __init__(self, value: Any):
        self.value = value


def _kind(shape: Any) -> str:
    leaves = jax.tree.leaves(shape)
    bad = [x for x in leaves if not jnp.issubdtype(getattr(x, "dtype", int), jnp.floating)]
    if not leaves or bad:
        got = shape if not leaves else bad[0]
        raise ObjectiveError(
            f"an objective returns one real number (a loss) or real arrays (residuals); got {got!r}"
        )
    is_scalar = len(leaves) == 1 and leaves[0].shape == ()
    return "a loss" if is_scalar else "residuals"


def _with_adjoint(model: Any, adjoint: AbstractAdjoint) -> Any:
    """`model`, its simulations with another adjoint."""
    is_simulation = lambda x: isinstance(x, Simulation)
    change = lambda x: replace_fields(x, {"adjoint": adjoint}) if is_simulation(x) else x
    return jax.tree.map(change, model, is_leaf=is_simulation)


def _over(function: Callable, rows: Array) -> Any:
    """`function` of every row, many at once."""
    if len(rows) <= _AT_ONCE:
        return jax.vmap(function)(rows)
    return jax.lax.map(function, rows, batch_size=_AT_ONCE)


def require_finite(problem: Problem, value: Any, jacobian: Any, labels: tuple[str, ...]) -> None:
    """Whether the objective and its derivatives are numbers at the start.

    **Errors:** `ObjectiveError` says how many are not, and derivatives by what.
    """
    broken = ~np.isfinite(value)
    if broken.any():
        many = f"{broken.sum()} of {broken.size} residuals" if broken.ndim else "the loss"
        raise ObjectiveError(
            f"the objective is not finite at the start: {many}. A simulation in it that diverges? Look "
            "at result.health, or start nearer"
        )
    broken = ~np.isfinite(jacobian).reshape(-1, len(labels)).all(axis=0)
    if broken.any():
        names = [label for label, bad in zip(labels, broken, strict=True) if bad]
        raise ObjectiveError(
            f"the objective is finite at the start, its derivative by {', '.join(names[:8])} is not "
            f"({problem.mode} mode): gradient_audit finds the step and the term"
        )
