"""Products of complex numbers with real ones and with i; powers of two, and products with them."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Inexact, Int

from ._linear_call import linear_call

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
    # Part by part: JAX would promote the factor to complex numbers, and multiply by their zeros.
    factor = jnp.asarray(factor, x.real.dtype)
    return jax.lax.complex(x.real * factor, x.imag * factor)


def scale_arrays(
    arrays: Sequence[Inexact[Array, "..."]], factor: ArrayLike
) -> list[Inexact[Array, "..."]]:
    """x · factor of each array. The cotangent of the factor is one sum over all of them.

    Derivatives by JAX make a sum for each array, and thus a few kernels of a GPU for each of them.
    """
    factor = jnp.asarray(factor)
    alike = [k for k, x in enumerate(arrays) if x.real.dtype == factor.dtype and x.ndim]
    if factor.ndim or not isinstance(factor, jax.core.Tracer) or len(alike) < 2:
        return [scale_array(x, factor) for x in arrays]
    shapes = [jax.ShapeDtypeStruct(arrays[k].shape, factor.dtype) for k in alike]
    spread = _Spread(tuple(s.shape for s in shapes))
    filled = linear_call(spread, _sum_all, (), factor, result=shapes)
    factors = dict(zip(alike, filled, strict=True))
    return [scale_array(x, factors.get(k, factor)) for k, x in enumerate(arrays)]


@dataclass(frozen=True)
class _Spread:
    shapes: tuple[tuple[int, ...], ...]

    def __call__(self, _: tuple, factor: Array) -> list[Array]:
        return [jnp.broadcast_to(factor, shape) for shape in self.shapes]


def _sum_all(_: tuple, arrays: list[Array]) -> Array:
    """The sum of all elements, added up array by array before it is taken."""
    last = min((x.shape for x in arrays), key=len)
    totals: dict[tuple[int, ...], Array] = {}
    for x in arrays:
        # Components of vectors, which come first, are added as arrays of their own.
        lead = x.shape[: x.ndim - len(last)]
        is_few = x.shape[len(lead) :] == last and math.prod(lead) <= _FEW_COMPONENTS
        for part in x.reshape(-1, *last) if is_few else [x]:
            before = totals.get(part.shape)
            totals[part.shape] = part if before is None else before + part
    return functools.reduce(jnp.add, [jnp.sum(x) for x in totals.values()])


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
    third = exponent // 3
    for part in (third, third, exponent - 2 * third):
        power = power_of_two(part, x.dtype)
        x = x * power.reshape((1,) * (x.ndim - power.ndim) + power.shape)
    return x
