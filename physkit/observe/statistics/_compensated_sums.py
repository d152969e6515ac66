"""Compensated sums and moments, which do not lose precision over very many terms in float32."""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data, power_of_two_above, safe_divide, safe_sqrt


class CompensatedSum(Module):
    """A running sum in two words, `high + low`: about twice the precision of its dtype.

    A plain float32 sum of ones stops growing at 2²⁴; this one does not.

    **Reference:** Knuth, The Art of Computer Programming, vol. 2, 4.2.2, theorem B (two-sum).
    """

    high: Float[Array, "..."] = data()
    low: Float[Array, "..."] = data()

    @staticmethod
    def zero(shape: tuple[int, ...], dtype: DTypeLike) -> "CompensatedSum":
        """The empty sum."""
        return CompensatedSum(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))

    def plus(self, x: Float[Array, "..."]) -> "CompensatedSum":
        """This sum plus `x`."""
        total, rest = two_sum(self.high, x)
        # The second two_sum moves what `low` has gathered into `high`, so that `low` stays below its last bit.
        return CompensatedSum(*two_sum(total, rest + self.low))

    def times(self, factor: Float[Array, "..."]) -> "CompensatedSum":
        """This sum times powers of two."""
        return CompensatedSum(self.high * factor, self.low * factor)

    @property
    def value(self) -> Float[Array, "..."]:
        """The sum, rounded to its dtype."""
        return self.high + self.low


def two_sum(
    a: Float[Array, "..."], b: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """a + b rounded, and the exact error of that rounding."""
    # XLA does not reassociate floating-point sums: it does not simplify (a + b) − a to b.
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


class Moments(Module):
    """Count, mean and variance of a stream, element by element, in constant memory.

        δ = x − m,   m ← m + δ/n,   M₂ ← M₂ + δ (x − m)

    - `count`: n. `center`: m. `sum_of_squares`: M₂ / `unit`², of deviations from the mean.
    - `unit`: a power of two above the largest deviation, since float32 cannot hold the square of 10⁻²² J.
      While the sum is 0, it means nothing.

    **Reference:** Welford, Technometrics 4, 419 (1962).
    """

    count: Int[Array, "..."] = data()
    center: CompensatedSum
    sum_of_squares: CompensatedSum
    unit: Float[Array, "..."] = data()

    @staticmethod
    def zero(shape: tuple[int, ...], dtype: DTypeLike) -> "Moments":
        """The moments of no values."""
        zero = CompensatedSum.zero(shape, dtype)
        # A unit of 1 is that of the sums in checkpoints of earlier versions, which have none.
        return Moments(jnp.zeros(shape, jnp.int32), zero, zero, jnp.ones(shape, dtype))

    def plus(self, x: Float[Array, "..."], where: Bool[Array, "..."]) -> "Moments":
        """These moments with one more value, for the elements of `where`."""
        count = self.count + where.astype(jnp.int32)
        # x − m in both words of m: subtracting the rounded mean would lose the digits of `low`.
        before = jnp.where(where, (x - self.center.high) - self.center.low, 0)
        center = self.center.plus(safe_divide(before, count.astype(x.dtype)))
        after = jnp.where(where, (x - center.high) - center.low, 0)
        # The least unit where there is nothing to measure: a greater one replaces it, exactly.
        tiny = jnp.finfo(x.dtype).tiny
        so_far = jnp.where(self.sum_of_squares.high == 0, tiny, self.unit)
        unit = jnp.maximum(so_far, jnp.where(before == 0, tiny, power_of_two_above(before)))
        change = so_far / unit
        squares = self.sum_of_squares.times(change**2).plus((before / unit) * (after / unit))
        return Moments(count, center, squares, unit)

    @property
    def mean(self) -> Float[Array, "..."]:
        """The mean; NaN where there is no value yet."""
        return jnp.where(self.count > 0, self.center.value, jnp.nan)

    @property
    def deviation(self) -> Float[Array, "..."]:
        """The root of the variance, in range wherever the values are."""
        return safe_sqrt(self._variance_in_units) * self.unit

    @property
    def variance(self) -> Float[Array, "..."]:
        """The unbiased variance of single values; NaN for fewer than two, and where it is out of range."""
        variance = self._variance_in_units
        square = variance * self.unit * self.unit
        # That of energies of 10⁻²² J in float32: no number, rather than 0.
        return jnp.where((square == 0) & (variance != 0), jnp.nan, square)

    @property
    def _variance_in_units(self) -> Float[Array, "..."]:
        degrees = (self.count - 1).astype(self.sum_of_squares.high.dtype)
        is_defined = self.count > 1
        # The inner `where` keeps the division, and so its derivative, finite where the outer one drops it.
        variance = self.sum_of_squares.value / jnp.where(is_defined, degrees, 1)
        return jnp.where(is_defined, variance, jnp.nan)
