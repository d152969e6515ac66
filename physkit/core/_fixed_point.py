"""Fixed-point numbers of 64 bits: additions to them are exact, so that subtractions undo them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt

from ._faults import Fault, Faults
from ._module import Module, data
from .numerics._products import power_of_two

_WORD = 2.0**32


class FixedPoint(Module):
    """y = n · 2⁻⁶⁴ with an integer n and −½ ≤ y < ½.

    n is one int64 for float64, and two words of 32 bits for float32. Sums wrap around, as positions in a
    periodic box do, and round nothing: y + δ − δ is y to the last bit, for every δ.

    - `high`: n, or its upper word, int32.
    - `low`: the lower word, uint32; None where `high` is int64.
    """

    high: Int[Array, "..."] = data()
    low: UInt[Array, "..."] | None = data(None)

    @staticmethod
    def from_float(y: Float[Array, "..."]) -> "FixedPoint":
        """The fixed-point number nearest to `y`, which is wrapped into −½ … ½."""
        wrapped = y - jnp.floor(y + 0.5)
        # Rounding may give ½ itself, which is out of range; one turn further it is −½.
        wrapped = jnp.where(wrapped >= 0.5, -0.5, wrapped)
        # Numbers in range are not wrapped: the subtraction above would round them.
        return _round_to_integers(jnp.where(jnp.abs(y) < 0.5, y, wrapped))

    def to_float(self) -> Float[Array, "..."]:
        """y, rounded to a float."""
        if self.low is None:
            return self.high.astype(jnp.float64) * 2.0**-64
        # Products with powers of two are exact, so that there is nothing to fuse.
        return self.high.astype(jnp.float32) / _WORD + self.low.astype(jnp.float32) / _WORD / _WORD

    def add(self, dy: Float[Array, "..."]) -> tuple["FixedPoint", Int[Array, "..."]]:
        """Add `dy`, |dy| < ½, rounded to a multiple of 2⁻⁶⁴.

        dy and −dy are rounded to opposite numbers, so that adding −dy undoes adding dy.

        **Returns:** the sum, and 1 or −1 where it wrapped around at ½ or at −½, else 0.
        """
        step = _round_to_integers(dy)
        if self.low is None:
            total = FixedPoint(self.high + step.high)
        else:
            low = self.low + step.low
            # An unsigned sum that is smaller than a summand has overflowed into the high word.
            carry = (low < self.low).astype(self.high.dtype)
            total = FixedPoint(self.high + step.high + carry, low)
        # As for two's complement: summands of one sign, and a sum of the other.
        up = (self.high >= 0) & (step.high >= 0) & (total.high < 0)
        down = (self.high < 0) & (step.high < 0) & (total.high >= 0)
        return total, up.astype(jnp.int32) - down.astype(jnp.int32)


def _round_to_integers(y: Float[Array, "..."]) -> FixedPoint:
    """n = round(2⁶⁴ y), |y| ≤ ½."""
    if y.dtype == jnp.float64:
        return FixedPoint(jnp.round(y * 2.0**64).astype(jnp.int64))
    # Products with powers of two are exact, and so is the fraction of a number: only `round` rounds.
    magnitude = jnp.abs(y) * _WORD
    whole = jnp.floor(magnitude)
    high, low = whole.astype(jnp.uint32), jnp.round((magnitude - whole) * _WORD).astype(jnp.uint32)
    # The sign goes in last, as two's complement of both words together: |y| was rounded, so that y and −y
    # give opposite integers.
    negative = y < 0
    high = jnp.where(negative, ~high + (low == 0).astype(jnp.uint32), high)
    low = jnp.where(negative, ~low + jnp.uint32(1), low)
    return FixedPoint(jax.lax.bitcast_convert_type(high, jnp.int32), low)


class ScaledFixedPoint(Module):
    """Fixed-point numbers with a range of their own, x = scale · y, and sticky faults.

    **Arguments:**

    - `fixed_point`: y as integers.
    - `scale`: twice the largest number that fits, in units of x; a power of two, so that x / scale is exact.
    - `faults`: whether a number has ever left the range, or an increment was not finite.
    """

    fixed_point: FixedPoint
    scale: Float[Array, ""] = data()
    faults: Faults

    @staticmethod
    def from_float(x: Float[Array, "..."], largest: Float[Array, ""]) -> "ScaledFixedPoint":
        """`x` with a range for numbers up to `largest` at least."""
        scale = power_of_two_above(2 * largest)
        inside = jnp.all(jnp.abs(x) < 0.5 * scale)
        fixed_point = FixedPoint.from_float(x / scale)
        faults = Faults.none().set_if(Fault.FIXED_POINT_RANGE, ~inside)
        return ScaledFixedPoint(fixed_point, scale, faults)

    def to_float(self) -> Float[Array, "..."]:
        """x, rounded to floats; NaN after a fault."""
        # Optimization barrier, so that forward and backward pass round identically.
        x = jax.lax.optimization_barrier(self.fixed_point.to_float() * self.scale)
        return jnp.where(self.faults.bits == 0, x, jnp.nan)

    def add(self, dx: Float[Array, "..."]) -> "ScaledFixedPoint":
        """x + dx, dx rounded to a multiple of 2⁻⁶⁴ · scale."""
        dy, faults = zero_out_of_range(jax.lax.optimization_barrier(dx) / self.scale, self.faults)
        total, wrapped = self.fixed_point.add(dy)
        faults = faults.set_if(Fault.FIXED_POINT_RANGE, jnp.any(wrapped != 0))
        return ScaledFixedPoint(total, self.scale, faults)


def zero_out_of_range(
    dy: Float[Array, "..."], faults: Faults
) -> tuple[Float[Array, "..."], Faults]:
    """`dy` where |dy| < ½, as `FixedPoint.add` needs it; elsewhere 0, with a fault."""
    fits = jnp.abs(dy) < 0.5
    finite = jnp.all(jnp.isfinite(dy))
    faults = faults.set_if(Fault.NOT_FINITE, ~finite)
    # NaN and infinity are another fault, although they do not fit either.
    faults = faults.set_if(Fault.FIXED_POINT_RANGE, finite & ~jnp.all(fits))
    return jax.lax.optimization_barrier(jnp.where(fits, dy, 0)), faults


def power_of_two_above(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The smallest power of two above |x|, 1 for 0 and for what is not finite; no derivative."""
    # `frexp` has none, and a range is a choice, not a function that physics depends on.
    x = jax.lax.stop_gradient(x)
    _, exponent = jnp.frexp(jnp.where(jnp.isfinite(x) & (x != 0), x, 0.5))
    return power_of_two(exponent, x.dtype)
