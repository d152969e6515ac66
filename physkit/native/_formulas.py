"""Operations on single numbers, in C."""

import math
from typing import Any

import jax
import numpy as np


class NotTranslatableError(Exception):
    """A function has an operation that has no counterpart here; the message names it."""


_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "bool": "_Bool",
}
# By primitive; `{0}`, `{1}` … are the arguments. `max` and `min` return NaN where one argument is NaN, as XLA's
# do: of this form GCC makes vector instructions, of others with `!=` it does not.
_FORMULAS = {
    "add": "{0} + {1}",
    "add_any": "{0} + {1}",
    "and": "{0} & {1}",
    "copy": "{0}",
    "div": "{0} / {1}",
    "eq": "{0} == {1}",
    "ge": "{0} >= {1}",
    "gt": "{0} > {1}",
    "is_finite": "({0} - {0} == 0)",
    "le": "{0} <= {1}",
    "lt": "{0} < {1}",
    "max": "({0} >= {1} ? {0} : ({1} > {0} ? {1} : {0} + {1}))",
    "min": "({0} <= {1} ? {0} : ({1} < {0} ? {1} : {0} + {1}))",
    "mul": "{0} * {1}",
    "ne": "{0} != {1}",
    "neg": "-{0}",
    "or": "{0} | {1}",
    "select_n": "({0} ? {2} : {1})",
    "sign": "({0} > 0 ? 1 : ({0} < 0 ? -1 : {0}))",
    "square": "{0} * {0}",
    "sub": "{0} - {1}",
    "xor": "{0} ^ {1}",
}
_FLOAT_FUNCTIONS = {
    "ceil": "ceil",
    "erfc": "erfc_f",
    "exp": "exp_f",
    "floor": "floor",
    "rsqrt": "1 / sqrt",
    "sqrt": "sqrt",
}
_OTHERS = {"abs", "convert_element_type", "integer_pow", "not", "round"}
ELEMENTWISE = {*_FORMULAS, *_FLOAT_FUNCTIONS, *_OTHERS}


def formula(name: str, params: dict, dtype: np.dtype, out: np.dtype) -> str:
    """One of `ELEMENTWISE`, with `{0}`, `{1}` … in the place of its arguments.

    **Errors:** `NotTranslatableError`.
    """
    suffix = "f" if dtype.itemsize == 4 else ""  # of C's functions for single precision
    if name in _FLOAT_FUNCTIONS and dtype.kind == "f":
        function = _FLOAT_FUNCTIONS[name]
        return f"{function}{8 * dtype.itemsize if function.endswith('_f') else suffix}({{0}})"
    if name == "abs":
        return f"fabs{suffix}({{0}})" if dtype.kind == "f" else "({0} < 0 ? -{0} : {0})"
    if name == "round":
        to_even = int(params["rounding_method"]) == int(jax.lax.RoundingMethod.TO_NEAREST_EVEN)
        return f"{'rint' if to_even else 'round'}{suffix}({{0}})"
    if name == "integer_pow":
        return _power(params["y"])
    if name == "convert_element_type":
        return _conversion(dtype, out)
    if name == "not":
        return "!{0}" if dtype.kind == "b" else "~{0}"
    if name not in _FORMULAS or (name == "div" and dtype.kind != "f"):
        raise NotTranslatableError(f"{name} of {dtype.name}")
    return _FORMULAS[name]


def c_type(dtype: Any) -> str:
    """**Errors:** `NotTranslatableError` for a type that C has not."""
    if dtype.name not in _C_TYPES:
        raise NotTranslatableError(f"numbers of type {dtype.name}")
    return _C_TYPES[dtype.name]


def literal(value: float | int | bool, dtype: np.dtype) -> str:
    """A number in C, to the last bit."""
    if dtype.kind != "f":
        text = f"{int(value)}{'u' if dtype.kind == 'u' else ''}"
        if value == -(2**63):  # C has no literal for it
            text = f"({value + 1} - 1)"
        return f"(({c_type(dtype)}){text})"
    suffix = "f" if dtype.itemsize == 4 else ""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = float(value).hex() + suffix
    return f"({text})" if text.startswith("-") else text


def _conversion(dtype: np.dtype, out: np.dtype) -> str:
    """To another type; floats as XLA does: to the nearest integer that there is, and NaN to 0."""
    if out.kind == "b":
        return "({0} != 0)"
    cast = f"({c_type(out)}){{0}}"
    if dtype.kind != "f" or out.kind == "f":
        return cast
    limits = np.iinfo(out)
    low, beyond = literal(float(limits.min), dtype), literal(float(limits.max + 1), dtype)
    least, most = literal(limits.min, out), literal(limits.max, out)
    # C leaves open what becomes of numbers that do not fit.
    return (
        f"({{0}} >= {beyond} ? {most} : ({{0}} >= {low} ? {cast} : ({{0}} < {low} ? {least} : 0)))"
    )


def _power(exponent: int) -> str:
    """{0} to an integer power, by squares."""
    if exponent < 0:
        return f"1 / ({_power(-exponent)})"
    if exponent == 0:
        return "1"
    if exponent == 1:
        return "{0}"
    half = _power(exponent // 2)
    return f"({half}) * ({half})" + (" * {0}" if exponent % 2 else "")
