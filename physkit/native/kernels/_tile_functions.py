"""Operations on tiles of numbers within a kernel for GPUs, of which Triton has all."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from .._formulas import ELEMENTWISE, NotTranslatableError

Tile = Array | np.generic  # `[r 1]`, `[1 k]`, `[r k]` or a number

_ERFC_32 = (
    0.510791357, 0.343580319, 0.139735734, 0.0182216694, -0.0107516262, -0.00324345192, 0.00152915716,
    0.000430670488, -0.000299382712, -3.66018769e-05, 4.21611972e-05,
)  # fmt: skip
_ERFC_64 = (
    0.5107913526210115, 0.3435803422069064, 0.13973604627801745, 0.01822111575332442,
    -0.01075533094418072, -0.0032395925303738984, 0.0015453060170934592, 0.00041864798221605905,
    -0.0003315366085734571, -1.7185335303957162e-05, 7.223438764921457e-05, -1.7076279211724264e-05,
    -1.0843771591809916e-05, 8.066090936677083e-06, -5.756102609676646e-07, -1.833203680786026e-06,
    1.027080978101725e-06, 1.3471591634054075e-08, -3.22304778781442e-07, 1.5140241599244526e-07,
    3.3187447257731815e-08, -5.2176220258425604e-08, 7.670244014679028e-09, 6.730460549174447e-09,
    -2.116116379331678e-09,
)  # fmt: skip


def _erfc(x: Tile) -> Tile:
    """As `functions.h` has it, with the same numbers."""
    size, t = lax.abs(x), lax.div(_like(x, 2), lax.add(_like(x, 2), lax.abs(x)))
    s = lax.sub(lax.mul(_like(x, 2), t), _like(x, 1))
    *lower, top = _ERFC_32 if x.dtype == jnp.float32 else _ERFC_64
    p = _like(x, top)
    for coefficient in reversed(lower):
        p = lax.add(lax.mul(p, s), _like(x, coefficient))
    e = lax.mul(lax.mul(lax.exp(lax.neg(lax.mul(size, size))), t), p)
    return lax.select(lax.lt(x, _like(x, 0)), lax.sub(_like(x, 2), e), e)


def _round(x: Tile) -> Tile:
    """To the nearest integer, half to even; from 2^(nmant − 1) on as it is, with no fraction but one half."""
    # Adding 1.5·2^nmant rounds.
    digits = int(jnp.finfo(x.dtype).nmant)
    large, is_small = _like(x, 1.5 * 2.0**digits), lax.lt(lax.abs(x), _like(x, 2.0 ** (digits - 1)))
    # The difference of two choices: XLA, which evaluates kernels in tests, sees through (x + a) − a.
    shifted = lax.select(is_small, lax.add(x, large), x)
    return lax.sub(shifted, lax.select(is_small, large, _like(x, 0)))


def _power(x: Tile, exponent: int) -> Tile:
    if exponent < 0:
        return lax.div(_like(x, 1), _power(x, -exponent))
    if exponent == 0:
        return _like(x, 1)
    if exponent == 1:
        return x
    half = _power(x, exponent // 2)
    square = lax.mul(half, half)
    return lax.mul(square, x) if exponent % 2 else square


def _convert(x: Tile, dtype: np.dtype) -> Tile:
    return lax.ne(x, _like(x, 0)) if dtype.kind == "b" else lax.convert_element_type(x, dtype)


def _like(x: Tile, value: float | int) -> Tile:
    return lax.full(x.shape, value, x.dtype)


_FUNCTIONS: dict[str, Callable[..., Tile]] = {
    "abs": lax.abs,
    "add": lax.add,
    "add_any": lax.add,
    "and": lax.bitwise_and,
    "ceil": lax.ceil,
    "copy": lambda x: x,
    "cos": lax.cos,
    "cosh": lax.cosh,
    "div": lax.div,
    "eq": lax.eq,
    "erfc": _erfc,
    "exp": lax.exp,
    "expm1": lax.expm1,
    "floor": lax.floor,
    "ge": lax.ge,
    "gt": lax.gt,
    "is_finite": lax.is_finite,
    "le": lax.le,
    "log": lax.log,
    "log1p": lax.log1p,
    "logistic": lax.logistic,
    "lt": lax.lt,
    "max": lax.max,
    "min": lax.min,
    "mul": lax.mul,
    "ne": lax.ne,
    "neg": lax.neg,
    "not": lax.bitwise_not,
    "or": lax.bitwise_or,
    "pow": lax.pow,
    "round": _round,
    "rsqrt": lax.rsqrt,
    "select_n": lax.select_n,
    "sign": lax.sign,
    "sin": lax.sin,
    "sinh": lax.sinh,
    "sqrt": lax.sqrt,
    "square": lambda x: lax.mul(x, x),
    "sub": lax.sub,
    "tanh": lax.tanh,
    "xor": lax.bitwise_xor,
}
ON_TILES = {*_FUNCTIONS, "convert_element_type", "integer_pow"}
assert ELEMENTWISE <= ON_TILES


def tile_function(name: str, params: dict, dtype: np.dtype, out: np.dtype) -> Callable[..., Any]:
    """One of `ON_TILES`, of tiles of one shape.

    **Errors:** `NotTranslatableError`.
    """
    if name == "integer_pow":
        return lambda x: _power(x, params["y"])
    if name == "convert_element_type":
        return lambda x: _convert(x, out)
    to_even = lax.RoundingMethod.TO_NEAREST_EVEN
    if (
        (name == "round" and params["rounding_method"] != to_even)
        or (name in ("div", "pow") and dtype.kind != "f")
        or (name == "not" and dtype == np.uint64)  # which JAX cannot lower
    ):
        raise NotTranslatableError(f"{name} of {dtype.name}")
    return _FUNCTIONS[name]
