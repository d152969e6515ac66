"""Products of complex numbers with real ones and with i; powers of two, and products with them."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, ArrayLike, Float, Inexact, Int

from ._linear_call import linear_call
from ._tangents import recomputed

_FEW_COMPONENTS = 8


def scale_array(x: Inexact[Array, "..."], factor: ArrayLike) -> Inexact[Array, "..."]:
    """x · factor in the precision of `x`.

    A real factor (or mask) times a complex number costs half of what a complex factor does. A factor with
    fewer axes than `x` belongs to the last axes of `x`.
    """
    factor = jnp.asarray(factor)
    if factor.ndim:
        factor = factor.reshape((1,) * (x.ndim - factor.ndim) + factor.shape)
        factor = _for_each_component(factor, x.shape)
    if not jnp.iscomplexobj(x) or jnp.iscomplexobj(factor):
        return x * factor
    # For a derivative by the factor x is kept as it is, not its real and its imaginary part.
    return recomputed(_scale_parts)(x, jnp.asarray(factor, x.real.dtype))


def _scale_parts(x: Array, factor: Array) -> Array:
    """Part by part: JAX would promote the factor to complex numbers, and multiply by their zeros."""
    return jax.lax.complex(x.real * factor, x.imag * factor)


def scale_arrays(arrays: Sequence[ArrayLike], factor: ArrayLike) -> list[Inexact[Array, "..."]]:
    """x · factor of each array. The cotangent of a factor is one sum over all arrays of one shape.

    Derivatives by JAX make a sum for each array, and thus a few kernels of a GPU for each of them.
    """
    if not isinstance(factor, jax.core.Tracer) or factor.ndim:
        return [_scale(x, factor) for x in arrays]  # without a cotangent, or one for each array
    # What would be cast, as complex numbers are, or has one element is left to JAX.
    alike = [k for k, x in enumerate(arrays) if _is_of(factor.dtype, x)]
    if len(alike) < 2:
        return [_scale(x, factor) for x in arrays]
    scaled = linear_call(_scale_each, _sum_products, [arrays[k] for k in alike], factor)
    known = dict(zip(alike, scaled, strict=True))
    return [known[k] if k in known else _scale(x, factor) for k, x in enumerate(arrays)]


def _scale(x: ArrayLike, factor: ArrayLike) -> Array:
    # A number of Python's is a rate, too.
    return scale_array(x, factor) if hasattr(x, "dtype") else x * factor


def _is_of(dtype: DTypeLike, x: ArrayLike) -> bool:
    return jnp.result_type(x) == dtype and jnp.ndim(x) > 0 and jnp.size(x) > 0


def _scale_each(arrays: list[Array], factor: ArrayLike) -> list[Array]:
    return [x * factor for x in arrays]


def _sum_products(arrays: list[Array], cotangents: list[Array]) -> Array:
    """Σ x · c over all elements: products of one shape are added up before they are summed.

    Components of vectors are arrays of their own: of a density `[x y]` and a momentum `[2 x y]`, three products
    are added up to one array `[x y]`.
    """
    shortest = min((x.shape for x in arrays), key=len)
    totals: dict[tuple[int, ...], Array] = {}
    for x, c in zip(arrays, cotangents, strict=True):
        product, components = x * c, x.shape[: x.ndim - len(shortest)]
        has_few = (
            math.prod(components) <= _FEW_COMPONENTS and x.shape[len(components) :] == shortest
        )
        for part in product.reshape(-1, *shortest) if has_few else [product]:
            before = totals.get(part.shape)
            totals[part.shape] = part if before is None else before + part
    return functools.reduce(jnp.add, [jnp.sum(total) for total in totals.values()])


def _for_each_component(factor: Array, shape: tuple[int, ...]) -> Array:
    """`factor`, repeated along the first axes of `shape`, in which it is one.

    Its cotangent is added up slice by slice: the sum over a few components that JAX would make is many times
    slower on CPUs, where XLA fuses it with the products before it.
    """
    if factor.ndim != len(shape):
        return factor
    count = 0
    while count < len(shape) and factor.shape[count] == 1:
        count += 1
    repeats = shape[:count]
    is_few = 1 < math.prod(repeats) <= _FEW_COMPONENTS
    if not is_few or not jnp.issubdtype(factor.dtype, jnp.floating):
        return factor
    return linear_call(_Repeat(repeats), _AddUp(repeats), (), factor)


@dataclass(frozen=True)
class _Repeat:
    repeats: tuple[int, ...]

    def __call__(self, _: tuple, factor: Array) -> Array:
        return jnp.broadcast_to(factor, (*self.repeats, *factor.shape[len(self.repeats) :]))


@dataclass(frozen=True)
class _AddUp:
    repeats: tuple[int, ...]

    def __call__(self, _: tuple, cotangent: Array) -> Array:
        rest = cotangent.shape[len(self.repeats) :]
        parts = cotangent.reshape(-1, *rest)
        total = parts[0]
        for k in range(1, len(parts)):
            total = total + parts[k]
        return total.reshape(*(1 for _ in self.repeats), *rest)


def times_i(x: Inexact[Array, "..."]) -> Inexact[Array, "..."]:
    """i · x of complex numbers, without a multiplication."""
    return jax.lax.complex(-x.imag, x.real)


def power_of_two(exponent: Int[Array, "..."], dtype: np.dtype) -> Float[Array, "..."]:
    """2^exponent, exact on every platform: `jnp.ldexp` multiplies by `2 ** e`, which a GPU rounds.

    Beyond the range of normal numbers it is the least or the largest of them. There is no derivative.
    """
    limits = jnp.finfo(dtype)
    kind = {16: jnp.int16, 32: jnp.int32, 64: jnp.int64}[int(limits.bits)]
    # The largest exponent is that of infinity.
    normal = jnp.clip(exponent, int(limits.minexp), int(limits.maxexp) - 1).astype(kind)
    bits = (normal + (int(limits.maxexp) - 1)) << int(limits.nmant)
    return jax.lax.bitcast_convert_type(bits, dtype)


def multiply_by_power_of_two(
    x: Float[Array, "..."], exponent: Int[Array, "..."]
) -> Float[Array, "..."]:
    """x 2^exponent, rounded only where it is no normal number; `exponent` broadcasts against the last axes."""
    # In three steps, since two powers may still be beyond the range.
    third = jax.lax.div(exponent, jnp.asarray(3, exponent.dtype))  # `//` would be a kernel on a GPU
    for part in (third, third, exponent - 2 * third):
        power = power_of_two(part, x.dtype)
        x = x * power.reshape((1,) * (x.ndim - power.ndim) + power.shape)
    return x
