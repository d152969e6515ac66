"""Whether a function treats every cell by itself."""

from collections.abc import Callable
from typing import Any

import jax

from physkit.core import LINEAR_CALL, programs_of

# What computes each number from those in the same place.
_ELEMENTWISE = {
    "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh", "cbrt",
    "ceil", "clamp", "convert_element_type", "copy", "copy_p", "cos", "cosh", "digamma", "div", "eq", "erf",
    "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "integer_pow", "is_finite", "le", "lgamma",
    "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg", "nextafter", "not",
    "optimization_barrier", "or", "pow", "rem", "round", "rsqrt", "select_n", "sign", "sin", "sinh",
    "sqrt", "square", "stop_gradient",
    "sub", "tan", "tanh", "xor",
}  # fmt: skip
# Sizes of axes that nothing else is likely to have.
_SIZES = (5, 7, 11)


def trial_shape(dimension: int) -> tuple[int, ...]:
    """The shape of arrays to try a function with."""
    return _SIZES[:dimension]


def is_local(function: Callable, *arguments: Any, shape: tuple[int, ...]) -> bool:
    """Whether each number of the result depends on arguments in the same place alone, and on no other cell's.

    Not so are sums and largest values over all cells, shifts, and what is stacked. Arrays of other shapes than
    `shape` are the same for all cells.

    **Arguments:**

    - `arguments`: arrays or their shapes; those of cells have `shape`.
    """
    return _is_local(jax.make_jaxpr(function)(*arguments).jaxpr, shape)


def _is_local(jaxpr: Any, shape: tuple[int, ...]) -> bool:
    for equation in jaxpr.eqns:
        if not any(v.aval.shape == shape for v in equation.invars):
            continue
        name = equation.primitive.name
        inner = programs_of(equation)
        if name == LINEAR_CALL:
            inner = [
                jax.make_jaxpr(lambda *x, e=equation: e.primitive.impl(*x, **e.params))(
                    *(v.aval for v in equation.invars)
                ).jaxpr
            ]
        same_shape = all(v.aval.shape == shape for v in equation.outvars)
        is_copy = name in ("reshape", "broadcast_in_dim") and same_shape
        if not (name in _ELEMENTWISE or is_copy or inner):
            return False
        if not all(_is_local(each, shape) for each in inner):
            return False
    return True
