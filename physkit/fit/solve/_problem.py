"""The objective of a fit as a function of one vector z, with its derivatives."""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ObjectiveError,
    PyTree,
    array_bytes,
    as_device_array,
    call_user_function,
    describe,
    is_rectangular,
    replace_fields,
    static,
    warn,
)
from physkit.simulate import AbstractAdjoint, Direct, NestedCheckpoint, Simulation

from .._outer_difference import OuterDifference, find_outer_difference
from .._select import Selection
from ._coordinates import Coordinates
from ._methods import Kind

Mode = Literal["forward", "reverse", "twice"]  # twice: forward over reverse
_MAX_BATCH = 64  # tangents or cotangents side by side; more would fill the memory
_SMALL_BYTES = 20_000  # of a model and its tangents


class ObjectiveInputs(NamedTuple):
    """All arrays that the objective depends on, so that a program compiled once serves every restart.

    - `model`, `data`: their arrays, everything else being None.
    - `unit`: of residuals or loss: the solver sees them divided by it.
    """

    coordinates: Coordinates
    model: PyTree
    data: PyTree
    unit: Array


def is_small(inputs: ObjectiveInputs) -> bool:
    """Whether tangents of the model, side by side, are as few numbers as a small state."""
    num_tangents = min(inputs.coordinates.center.size, _MAX_BATCH)
    return num_tangents * array_bytes(inputs.model) < _SMALL_BYTES


class Problem(Module):
    """An objective and what is static of its arguments.

    - `kind`: what the objective returns; `shape`: its shapes and dtypes.
    - `mode`: of its derivatives.
    - `traced`: its output in forward mode, if that has been traced.
    """

    objective: Callable = static()
    selection: Selection = static()
    rest: "ComparedByIdentity" = static()  # of model and data: what is no array
    has_data: bool = static()
    kind: Kind | None = static()
    shape: PyTree = static()
    mode: Mode = static()
    traced: "_TracedOutput | None" = static(default=None)

    def model(self, z: Float[Array, " p"], inputs: ObjectiveInputs) -> PyTree:
        """The model with its parameters at z."""
        model = eqx.combine(inputs.model, self.rest.value[0])
        if self.mode == "forward":  # keeps nothing for a backward pass anyway
            model = _with_adjoint(model, Direct())
        if self.mode == "twice":
            model = _with_adjoint(model, NestedCheckpoint())
        return self.selection.put(model, inputs.coordinates.values(z))

    def output(self, z: Float[Array, " p"], inputs: ObjectiveInputs) -> PyTree:
        """What the objective returns at z."""
        if self.traced is not None and self.mode == "forward":
            return self.traced(z, inputs)
        arguments = (self.model(z, inputs),)
        if self.has_data:
            arguments = (*arguments, eqx.combine(inputs.data, self.rest.value[1]))
        signature = "(model, data)" if self.has_data else "(model)"
        return call_user_function(self.objective, arguments, "an objective", signature)

    def value(self, z: Float[Array, " p"], inputs: ObjectiveInputs) -> Float[Array, "..."]:
        """Residuals as one vector, or the loss, over `inputs.unit`."""
        # Whatever tree of arrays the objective returns, a solver sees one vector.
        flat, _ = ravel_pytree(self.output(z, inputs))
        flat = flat.astype(z.dtype) / inputs.unit
        return flat if self.kind == "residuals" else flat[0]

    def with_jacobian(self, z: Float[Array, " p"], inputs: ObjectiveInputs) -> tuple[Array, Array]:
        """Value and Jacobian, `[r p]`; of a loss its gradient, `[p]`."""

        def value_at(z: Float[Array, " p"]) -> Array:
            return self.value(z, inputs)

        if self.mode == "reverse":
            value, pull_back = jax.vjp(value_at, z)
            if value.ndim == 0:
                return value, pull_back(jnp.ones_like(value))[0]
            unit_cotangents = jnp.eye(value.size, dtype=value.dtype)
            return value, _map_rows(lambda cotangent: pull_back(cotangent)[0], unit_cotangents)
        # A run for each column. The value comes with every one of them: the first will do.
        unit_tangents = jnp.eye(z.size, dtype=z.dtype)
        values, columns = _map_rows(
            lambda tangent: jax.jvp(value_at, (z,), (tangent,)), unit_tangents
        )
        return values[0], jnp.moveaxis(columns, 0, -1)

    @property
    def count(self) -> int:
        """How many numbers the objective returns."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.shape))


def make_problem(
    objective: Callable[..., Any],
    selection: Selection,
    start: Coordinates,
    model: PyTree,
    data: PyTree,
    jac: str | None,
    *,
    has_priors: bool = False,
    needs_derivatives: bool = True,
) -> tuple[Problem, ObjectiveInputs]:
    """The problem, and its inputs at the start.

    `has_priors`: data need not determine the parameters alone, so that these may be more.
    `needs_derivatives`: of the objective, which whole numbers do not have.

    **Errors:** `ObjectiveError` for an objective that returns neither a number nor arrays of them.
    """
    if jac not in (None, "forward", "reverse"):
        raise ObjectiveError(f"jac must be 'forward' or 'reverse', or left out; got {jac!r}")
    # Arrays are inputs of the compiled program, everything else is part of it.
    model_arrays, model_rest = eqx.partition(model, eqx.is_array)
    data_arrays, data_rest = eqx.partition(_as_numbers(data), eqx.is_array)
    unit = as_device_array(np.ones((), start.center.dtype))
    inputs = ObjectiveInputs(start, model_arrays, data_arrays, unit)
    rest = ComparedByIdentity((model_rest, data_rest))
    # What the objective returns is not known before it has been traced once.
    untraced = Problem(objective, selection, rest, data is not None, None, None, "forward")
    z = start.origin
    traced = _TracedOutput(untraced.output, z, inputs)
    shape = traced.shape
    kind = _kind_of(shape, needs_derivatives)
    if (outer := traced.outer_difference(len(jax.tree.leaves(data_arrays)))) is not None:
        warn(
            f"the objective takes every one of {math.prod(outer.data)} data from every one of "
            f"{math.prod(outer.prediction)} predictions, which makes {list(outer.difference)}: shapes such as "
            "[n, 1] and [n] meet so. Give both one shape, as in prediction[:, 0] - data"
        )
    count = sum(leaf.size for leaf in jax.tree.leaves(shape))
    # Forward mode costs a run for each parameter, reverse mode one for each residual, and memory.
    mode = jac or ("forward" if z.size <= count else "reverse")
    if kind == "residuals" and z.size > count and not has_priors:
        raise ObjectiveError(
            f"more parameters than data: {z.size} numbers to fit from {count} residuals. Fit fewer, or "
            "add residuals for what is known beforehand, (value − expected) / uncertainty"
        )
    if kind == "residuals" and count == 1 and not has_priors:
        raise ObjectiveError(
            "an objective of one number in an array may be a loss or a residual: return a number for a loss, "
            "loss.sum(); for one residual its square, residual.sum() ** 2"
        )
    # Forward mode differentiates what has been traced; others ask for other adjoints of simulations.
    reused = traced if mode == "forward" else None
    return Problem(objective, selection, rest, data is not None, kind, shape, mode, reused), inputs


class _TracedOutput:
    """`Problem.output`, traced once: its program stands for it in all that is derived from it."""

    def __init__(
        self, output: Callable[..., PyTree], z: Float[Array, " p"], inputs: ObjectiveInputs
    ):
        self._closed, arrays, self._static = eqx.filter_make_jaxpr(output)(z, inputs)
        self._form = jax.tree.structure(arrays)
        self.shape = eqx.combine(arrays, self._static)

    def outer_difference(self, num_data: int) -> OuterDifference | None:
        """Where shapes of data and predictions do not go together; `num_data` arrays are data."""
        jaxpr = self._closed.jaxpr
        end = len(jaxpr.invars) - 1  # the last input is the unit
        is_data = [end - num_data <= k < end for k in range(len(jaxpr.invars))]
        return find_outer_difference(jaxpr, is_data)

    def __call__(self, z: Float[Array, " p"], inputs: ObjectiveInputs) -> PyTree:
        leaves = jax.tree.leaves(eqx.filter((z, inputs), eqx.is_array))
        flat = jax.core.eval_jaxpr(self._closed.jaxpr, self._closed.consts, *leaves)
        arrays = jax.tree.unflatten(self._form, flat)
        return eqx.combine(arrays, self._static)


class ComparedByIdentity:
    """Holds a value and compares by identity, so that it may be static whatever it holds.

    A static field must be hashable; models also hold functions and dicts, which need not be.
    """

    def __init__(self, value: Any):
        self.value = value


def _kind_of(shape: PyTree, needs_derivatives: bool) -> Kind:
    leaves = jax.tree.leaves(shape)
    allowed = (jnp.floating,) if needs_derivatives else (jnp.floating, jnp.integer, jnp.bool_)
    bad = [
        leaf
        for leaf in leaves
        if not any(jnp.issubdtype(getattr(leaf, "dtype", object), kind) for kind in allowed)
    ]
    if not leaves or bad:
        message = "an objective returns one real number (a loss) or real arrays (residuals)"
        raise ObjectiveError(f"{message}; got {_describe_output(bad[0] if bad else shape)}")
    is_scalar = len(leaves) == 1 and leaves[0].shape == ()
    return "loss" if is_scalar else "residuals"


def _describe_output(output: Any) -> str:
    """What an objective returns that it should not, and what to return instead."""
    if not hasattr(output, "dtype"):
        return describe(output)
    text = f"{output.dtype}{list(output.shape)}"
    if not jnp.issubdtype(output.dtype, jnp.integer) and output.dtype != jnp.bool_:
        return text
    return (
        f"{text}, which has no derivative: return it as a float where it has one; searches, method=CMAES() "
        "and its kin, take a whole number as a loss"
    )


def _with_adjoint(model: PyTree, adjoint: AbstractAdjoint) -> PyTree:
    """`model`, its simulations with another adjoint."""

    def is_simulation(node: PyTree) -> bool:
        return isinstance(node, Simulation)

    def change(node: PyTree) -> PyTree:
        return replace_fields(node, {"adjoint": adjoint}) if is_simulation(node) else node

    return jax.tree.map(change, model, is_leaf=is_simulation)


def _map_rows(function: Callable[[Array], PyTree], rows: Array) -> PyTree:
    """`function` of every row, many side by side."""
    if len(rows) <= _MAX_BATCH:
        return jax.vmap(function)(rows)
    # Batches one after the other: memory for all at once would grow with the number of parameters.
    return jax.lax.map(function, rows, batch_size=_MAX_BATCH)


def require_finite(
    problem: Problem,
    value: np.ndarray,
    jacobian: np.ndarray,
    labels: tuple[str, ...],
    data: PyTree = None,
) -> None:
    """Raise where the objective or its derivatives are not finite at the start.

    **Errors:** `ObjectiveError` says how many are not, and derivatives by what; whether data are missing.
    """
    broken = ~np.isfinite(value)
    if broken.any():
        many = f"{broken.sum()} of {broken.size} residuals" if broken.ndim else "the loss"
        missing = _count_missing(data)
        advice = (
            f"{missing} numbers of the data are not finite: leave these out, or give them no weight, "
            "jnp.where(jnp.isnan(data), 0, …)"
            if missing
            else "A simulation in it that diverges? Check result.health, or start nearer"
        )
        raise ObjectiveError(f"the objective is not finite at the start: {many}. {advice}")
    broken = ~np.isfinite(jacobian).reshape(-1, len(labels)).all(axis=0)
    if broken.any():
        names = [label for label, bad in zip(labels, broken, strict=True) if bad]
        raise ObjectiveError(
            f"the objective is finite at the start, its derivative by {', '.join(names[:8])} is not "
            f"({problem.mode} mode): gradient_audit finds the step and the term"
        )


def _as_numbers(data: PyTree) -> PyTree:
    """`data` with lists of numbers, columns of pandas, and whatever else can be an array as arrays of NumPy.

    **Errors:** `ObjectiveError` for an array of objects that are no numbers.
    """

    def is_list(x: PyTree) -> bool:
        return isinstance(x, list) and is_rectangular(x)

    def convert(x: Any) -> Any:
        is_objects = isinstance(x, np.ndarray) and x.dtype == object
        if not (is_list(x) or is_objects or (hasattr(x, "__array__") and not eqx.is_array_like(x))):
            return x
        numbers = np.asarray(x)
        try:
            numbers = numbers.astype(float) if is_objects else numbers
        except (TypeError, ValueError):
            raise ObjectiveError(
                f"data hold an array of what is no number: {describe(x)}"
            ) from None
        return numbers if numbers.dtype.kind in "biufc" else x

    return jax.tree.map(convert, data, is_leaf=is_list)


def _count_missing(data: PyTree) -> int:
    leaves = [x for x in jax.tree.leaves(_as_numbers(data)) if eqx.is_inexact_array_like(x)]
    return sum(int(np.sum(~np.isfinite(x))) for x in leaves)
