"""Compensated sums and moments, which do not lose precision over very many terms in float32."""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data, safe_divide


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

    - `count`: n. `center`: m. `sum_of_squares`: M₂, of deviations from the mean.

    **Reference:** Welford, Technometrics 4, 419 (1962).
    """

    count: Int[Array, "..."] = data()
    center: CompensatedSum
    sum_of_squares: CompensatedSum

    @staticmethod
    def zero(shape: tuple[int, ...], dtype: DTypeLike) -> "Moments":
        """The moments of no values."""
        zero = CompensatedSum.zero(shape, dtype)
        return Moments(jnp.zeros(shape, jnp.int32), zero, zero)

    def plus(self, x: Float[Array, "..."], where: Bool[Array, "..."]) -> "Moments":
        """These moments with one more value, for the elements of `where`."""
        count = self.count + where.astype(jnp.int32)
        # x − m in both words of m: subtracting the rounded mean would lose the digits of `low`.
        before = jnp.where(where, (x - self.center.high) - self.center.low, 0)
        center = self.center.plus(safe_divide(before, count.astype(x.dtype)))
        after = jnp.where(where, (x - center.high) - center.low, 0)
        square = before * after
        # That of an energy of 10⁻²² J is beyond float32: no number, rather than an error bar of 0.
        is_lost = (square == 0) & (before != 0) & (after != 0)
        square = jnp.where(is_lost, jnp.nan, square)
        return Moments(count, center, self.sum_of_squares.plus(square))

    @property
    def mean(self) -> Float[Array, "..."]:
        """The mean; NaN where there is no value yet."""
        return jnp.where(self.count > 0, self.center.value, jnp.nan)

    @property
    def variance(self) -> Float[Array, "..."]:
        """The unbiased variance of single values; NaN for fewer than two."""
        degrees = (self.count - 1).astype(self.sum_of_squares.high.dtype)
        is_defined = self.count > 1
        # The inner `where` keeps the division, and so its derivative, finite where the outer one drops it.
        variance = self.sum_of_squares.value / jnp.where(is_defined, degrees, 1)
        return jnp.where(is_defined, variance, jnp.nan)
