"""The larger and the smaller of numbers, whose derivatives survive a compiler.

JAX before 0.12, and every JAX for reductions, finds out which argument was chosen by looking for one that
*equals* the result. A compiler may compute an argument once for the result and once more for the comparison,
with products and sums fused in one place and not in the other: the two then differ by rounding, none is equal,
and the derivative is 0 (of a reduction, NaN) without a word. Here arguments are compared with each other, which
rounding decides only where they are nearly equal. Equal ones share the derivative, as in JAX. NaN stays NaN.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool as BoolArray, Float

from ._custom_jvp import custom_jvp

Pair = tuple[ArrayLike, ArrayLike]
Bool = BoolArray[Array, "..."] | bool


def safe_maximum(a: ArrayLike, b: ArrayLike) -> Array:
    """The larger of a and b, element by element; whole numbers have no derivative."""
    if not _is_floating(a, b):
        return jnp.maximum(a, b)
    a, b = _as_floating(a, b)
    return _choose(a > b, a < b, a, b) if _are_weak(a, b) else _maximum(a, b)


def safe_minimum(a: ArrayLike, b: ArrayLike) -> Array:
    """The smaller of a and b, element by element; whole numbers have no derivative."""
    if not _is_floating(a, b):
        return jnp.minimum(a, b)
    a, b = _as_floating(a, b)
    return _choose(a < b, a > b, a, b) if _are_weak(a, b) else _minimum(a, b)


def safe_clip(x: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """x within [low, high], element by element."""
    return safe_minimum(safe_maximum(x, low), high)


def safe_max(x: Array, axis: int | tuple[int, ...] | None = None) -> Array:
    """The largest element of x, of all or along `axis`; whole numbers and bools have no derivative."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.max(x, axis=axis)
    if axis is None:
        axis = tuple(range(x.ndim))
    return _max(x, axis if isinstance(axis, tuple) else (axis,))


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _max(x: Array, axes: tuple[int, ...]) -> Array:
    return jnp.max(x, axis=axes)


@_max.defjvp
def _(axes: tuple[int, ...], primals: tuple[Array], tangents: tuple[Array]) -> Pair:
    x, dx = (_flatten_axes(y, axes) for y in (*primals, *tangents))
    largest = jnp.max(x, axis=-1, keepdims=True)
    first = jnp.argmax(x, axis=-1, keepdims=True)
    index = jax.lax.broadcasted_iota(first.dtype, x.shape, x.ndim - 1)
    # At least the one that was found, however its equals are rounded.
    is_largest = (x >= largest) | (index == first)
    count = jnp.sum(is_largest, axis=-1).astype(x.dtype)
    # The derivative of a NaN is a NaN.
    count = jnp.where(jnp.isnan(largest[..., 0]), jnp.nan, count)
    return _max(primals[0], axes), jnp.sum(jnp.where(is_largest, dx, 0), axis=-1) / count


def _flatten_axes(x: Array, axes: tuple[int, ...]) -> Array:
    """The axes `axes` as one, the last."""
    last = jnp.moveaxis(x, axes, range(-len(axes), 0))
    others = last.shape[: x.ndim - len(axes)]
    return last.reshape(*others, math.prod(last.shape[len(others) :]))


@custom_jvp
def _maximum(a: ArrayLike, b: ArrayLike) -> Array:
    return jnp.maximum(a, b)


@_maximum.defjvp
def _(primals: Pair, tangents: Pair) -> Pair:
    a, b = primals
    return _maximum(a, b), _choose(a > b, a < b, *tangents)


@custom_jvp
def _minimum(a: ArrayLike, b: ArrayLike) -> Array:
    return jnp.minimum(a, b)


@_minimum.defjvp
def _(primals: Pair, tangents: Pair) -> Pair:
    a, b = primals
    return _minimum(a, b), _choose(a < b, a > b, *tangents)


def _choose(
    is_first: Bool, is_second: Bool, first: ArrayLike, second: ArrayLike
) -> Float[Array, "..."]:
    """One of the two, and half of both where neither is chosen; NaN of NaN."""
    half = 0.5 * (first + second)
    return jnp.where(is_first, first, jnp.where(is_second, second, half))


def _are_weak(*numbers: ArrayLike) -> bool:
    """Whether all are numbers of Python, traced or not, whose precision JAX forgets where a rule is its own."""
    return all(jax.typeof(x).weak_type for x in numbers)


def _as_floating(a: ArrayLike, b: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Both, whole numbers such as 0 as floating ones: they have no derivative that one could add."""
    dtype = jnp.result_type(a, b)

    def as_floating(x: ArrayLike) -> ArrayLike:
        if _is_floating(x):
            return x
        # Numbers of Python take the precision of what they meet, later, too.
        return x * 1.0 if _are_weak(x) else jnp.asarray(x, dtype)

    return as_floating(a), as_floating(b)


def _is_floating(*numbers: ArrayLike) -> bool:
    return jnp.issubdtype(jnp.result_type(*numbers), jnp.floating)
