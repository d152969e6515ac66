"""Whether a function treats every cell by itself."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import jax

from physkit.core import LINEAR_CALL, is_concrete, programs_of, trace_linear_call

# What computes each number from those in the same place.
_ELEMENTWISE = {
    "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh", "cbrt",
    "ceil", "clamp", "convert_element_type", "copy", "cos", "cosh", "digamma", "div", "eq", "erf",
    "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "integer_pow", "is_finite", "le", "lgamma",
    "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg", "nextafter", "not",
    "optimization_barrier", "or", "pow", "rem", "round", "rsqrt", "select_n", "sign", "sin", "sinh",
    "sqrt", "square", "stop_gradient",
    "sub", "tan", "tanh", "xor",
}  # fmt: skip
# What calls other programs once, or again and again, with the same arrays.
_CALLS = {
    "checkpoint", "closed_call", "cond", "core_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit",
    "remat", "remat2", "scan", "while",
}  # fmt: skip
# Sizes of axes that nothing else is likely to have.
_SIZES = (53, 59, 61)
Shape: TypeAlias = tuple[int, ...]


def trial_shape(dimension: int) -> Shape:
    """The shape of arrays to try a function with."""
    return _SIZES[:dimension]


def is_local(function: Callable, *arguments: Any, shape: Shape) -> bool:
    """Whether each number of the result depends on arguments in the same place alone, and on no other cell's.

    Not so are sums and largest values over all cells, shifts, random numbers of each cell, and what is stacked;
    nor, in doubt, what a function closes over while it is traced. True is certain.

    **Arguments:**

    - `arguments`: arrays or their shapes; those of cells have `shape`, a `trial_shape`. All others are the same
      for all cells.
    """
    closed = jax.make_jaxpr(function)(*arguments)
    return all(is_concrete(c) for c in closed.consts) and _is_local(closed.jaxpr, shape)


def _is_local(jaxpr: Any, shape: Shape) -> bool:
    # Constants of cells are not the same for all.
    if any(v.aval.shape == shape for v in jaxpr.constvars):
        return False
    return all(_is_local_operation(equation, shape) for equation in jaxpr.eqns)


def _is_local_operation(equation: Any, shape: Shape) -> bool:
    name, inputs, outputs = equation.primitive.name, equation.invars, equation.outvars
    of_cells = [v.aval.shape == shape for v in inputs]
    made = [v.aval.shape == shape for v in outputs]
    if name in _CALLS:
        programs = programs_of(equation)
        # A scan over the rows of an array has other shapes within; what it stacks has more axes.
        over_rows = name == "scan" and any(
            is_one and v.aval.shape != shape
            for is_one, v in zip(of_cells, programs[0].invars, strict=True)
        )
        is_stacked = any(len(v.aval.shape) > len(shape) for v in outputs)
        return not (over_rows or is_stacked) and all(_is_local(p, shape) for p in programs)
    if name == LINEAR_CALL:
        return _is_local(trace_linear_call(equation).jaxpr, shape)
    if not any(of_cells):
        # Arrays of cells from nothing: only of one number.
        of_one = name == "broadcast_in_dim" and math.prod(inputs[0].aval.shape) == 1
        return of_one or not any(made)
    is_copy = name in ("reshape", "broadcast_in_dim")
    return all(made) and (name in _ELEMENTWISE or is_copy)
