"""The larger and the smaller of numbers, whose derivatives survive a compiler.

JAX before 0.12, and every JAX for reductions, finds out which argument was chosen by looking for one that
*equals* the result. A compiler may compute an argument once for the result and once more for the comparison,
with products and sums fused in one place and not in the other: the two then differ by rounding, none is equal,
and the derivative is 0 (of a reduction, NaN) without a word. Here arguments are compared with each other, which
rounding decides only where they are nearly equal. Equal ones share the derivative, as in JAX. NaN stays NaN.
"""

import functools

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

Pair = tuple[Array, Array]


def safe_maximum(a: ArrayLike, b: ArrayLike) -> Float[Array, "..."]:
    """The larger of a and b, element by element."""
    return _maximum(*_of_one_dtype(a, b))


def safe_minimum(a: ArrayLike, b: ArrayLike) -> Float[Array, "..."]:
    """The smaller of a and b, element by element."""
    return _minimum(*_of_one_dtype(a, b))


def safe_clip(x: ArrayLike, low: ArrayLike, high: ArrayLike) -> Float[Array, "..."]:
    """x within [low, high], element by element."""
    return safe_minimum(safe_maximum(x, low), high)


def safe_max(x: Array, axis: int | tuple[int, ...] | None = None) -> Array:
    """The largest element of x, of all or along `axis`; whole numbers and bools have no derivative."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.max(x, axis=axis)
    if axis is None:
        axis = tuple(range(x.ndim))
    return _max(x, axis if isinstance(axis, tuple) else (axis,))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _max(x: Array, axes: tuple[int, ...]) -> Array:
    return jnp.max(x, axis=axes)


@_max.defjvp
def _(axes: tuple[int, ...], primals: tuple[Array], tangents: tuple[Array]) -> Pair:
    x, dx = (_as_rows(y, axes) for y in (*primals, *tangents))
    place = jnp.argmax(x, axis=-1, keepdims=True)
    # At least the one that was found, however its equals are rounded.
    number = jax.lax.broadcasted_iota(place.dtype, x.shape, x.ndim - 1)
    is_largest = (x >= jnp.take_along_axis(x, place, axis=-1)) | (number == place)
    count = jnp.sum(is_largest, axis=-1).astype(x.dtype)
    return _max(primals[0], axes), jnp.sum(jnp.where(is_largest, dx, 0), axis=-1) / count


def _as_rows(x: Array, axes: tuple[int, ...]) -> Array:
    """The axes `axes` as one, the last."""
    last = jnp.moveaxis(x, axes, range(-len(axes), 0))
    return last.reshape(*last.shape[: x.ndim - len(axes)], -1)


@jax.custom_jvp
def _maximum(a: Array, b: Array) -> Array:
    return jnp.maximum(a, b)


@_maximum.defjvp
def _(primals: Pair, tangents: Pair) -> Pair:
    a, b = primals
    return _maximum(a, b), _tangent_of_choice(a > b, a < b, *tangents)


@jax.custom_jvp
def _minimum(a: Array, b: Array) -> Array:
    return jnp.minimum(a, b)


@_minimum.defjvp
def _(primals: Pair, tangents: Pair) -> Pair:
    a, b = primals
    return _minimum(a, b), _tangent_of_choice(a < b, a > b, *tangents)


def _tangent_of_choice(is_first: Array, is_second: Array, first: Array, second: Array) -> Array:
    half = 0.5 * (first + second)
    return jnp.where(is_first, first, jnp.where(is_second, second, half))


def _of_one_dtype(a: ArrayLike, b: ArrayLike) -> Pair:
    # Whole numbers such as 0 have no derivative that one could add.
    dtype = jnp.result_type(a, b)
    return jnp.asarray(a, dtype), jnp.asarray(b, dtype)
