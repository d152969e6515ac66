"""Numbers as integers of 64 bits, to which increments add exactly, and so can be taken back."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt

from ._faults import Fault, Faults
from ._module import Module, data

_WORD = 2.0**32


class FixedPoint(Module):
    """y = n · 2⁻⁶⁴ with −½ ≤ y < ½ and an integer n: int64 beside float64, two words beside float32.

    Sums wrap around, as positions in a periodic box do, and round nothing: y + δ − δ is y to the last
    bit, whatever δ.
    """

    high: Int[Array, "..."] = data()
    low: UInt[Array, "..."] | None = data(None)

    @staticmethod
    def of(y: Float[Array, "..."]) -> "FixedPoint":
        """The nearest point of the lattice to `y`, which is folded into −½ … ½."""
        folded = y - jnp.floor(y + 0.5)
        folded = jnp.where(folded >= 0.5, -0.5, folded)
        return _integers(jnp.where(jnp.abs(y) < 0.5, y, folded))

    @property
    def value(self) -> Float[Array, "..."]:
        """y, rounded to a float."""
        if self.low is None:
            return self.high.astype(jnp.float64) * 2.0**-64
        # Products with powers of two are exact, so that there is nothing to fuse.
        return self.high.astype(jnp.float32) / _WORD + self.low.astype(jnp.float32) / _WORD / _WORD

    def plus(self, dy: Float[Array, "..."]) -> tuple["FixedPoint", Int[Array, "..."]]:
        """y + dy for |dy| < ½, dy rounded; and 1 or −1 where the sum wrapped around, upwards or down.

        dy and −dy are rounded alike.
        """
        step = _integers(dy)
        if self.low is None:
            made = FixedPoint(self.high + step.high)
        else:
            low = self.low + step.low
            carry = (low < self.low).astype(self.high.dtype)
            made = FixedPoint(self.high + step.high + carry, low)
        up = (self.high >= 0) & (step.high >= 0) & (made.high < 0)
        down = (self.high < 0) & (step.high < 0) & (made.high >= 0)
        return made, up.astype(jnp.int32) - down.astype(jnp.int32)


def _integers(y: Float[Array, "..."]) -> FixedPoint:
    if y.dtype == jnp.float64:
        return FixedPoint(jnp.round(y * 2.0**64).astype(jnp.int64))
    size = jnp.abs(y) * _WORD
    whole = jnp.floor(size)
    high, low = whole.astype(jnp.uint32), jnp.round((size - whole) * _WORD).astype(jnp.uint32)
    # Two's complement of both words together, so that y and −y are rounded alike.
    negative = y < 0
    high = jnp.where(negative, ~high + (low == 0).astype(jnp.uint32), high)
    low = jnp.where(negative, ~low + jnp.uint32(1), low)
    return FixedPoint(jax.lax.bitcast_convert_type(high, jnp.int32), low)


class ScaledFixedPoint(Module):
    """Numbers on a lattice of their own: x = scale · y, with faults that stay.

    **Arguments:**

    - `lattice`: y as integers.
    - `scale`: twice the largest number that has room; a power of two.
    - `faults`: whether a number ever left the range, or an increment was not finite.
    """

    fixed_point: FixedPoint
    scale: Float[Array, ""] = data()
    faults: Faults

    @staticmethod
    def of(x: Float[Array, "..."], largest: Float[Array, ""]) -> "ScaledFixedPoint":
        """`x` with room for numbers up to `largest`, about."""
        scale = power_of_two_above(2 * largest)
        inside = jnp.all(jnp.abs(x) < 0.5 * scale)
        return ScaledFixedPoint(
            FixedPoint.of(x / scale), scale, Faults.none().set_if(Fault.FIXED_POINT_RANGE, ~inside)
        )

    @property
    def value(self) -> Float[Array, "..."]:
        """x, rounded to floats; NaN after a fault."""
        x = jax.lax.optimization_barrier(self.fixed_point.value * self.scale)
        return jnp.where(self.faults.bits == 0, x, jnp.nan)

    def plus(self, dx: Float[Array, "..."]) -> "ScaledFixedPoint":
        """x + dx, dx rounded to the lattice."""
        dy, faults = zero_out_of_range(jax.lax.optimization_barrier(dx) / self.scale, self.faults)
        lattice, wrapped = self.fixed_point.plus(dy)
        return ScaledFixedPoint(
            lattice, self.scale, faults.set_if(Fault.FIXED_POINT_RANGE, jnp.any(wrapped != 0))
        )


def zero_out_of_range(
    dy: Float[Array, "..."], faults: Faults
) -> tuple[Float[Array, "..."], Faults]:
    """`dy` where |dy| < ½, as `Lattice.plus` needs it, else 0 and a fault."""
    fits = jnp.abs(dy) < 0.5
    finite = jnp.all(jnp.isfinite(dy))
    faults = faults.set_if(Fault.NOT_FINITE, ~finite).set_if(
        Fault.FIXED_POINT_RANGE, finite & ~jnp.all(fits)
    )
    return jax.lax.optimization_barrier(jnp.where(fits, dy, 0)), faults


def power_of_two_above(x: Float[Array, ""]) -> Float[Array, ""]:
    """The power of two above |x|, 1 for 0; no derivative."""
    x = jax.lax.stop_gradient(x)
    _, exponent = jnp.frexp(jnp.where(jnp.isfinite(x) & (x != 0), x, 0.5))
    return jnp.ldexp(jnp.ones((), x.dtype), exponent)


@jax.custom_jvp
def with_tangent_of(value: Float[Array, "..."], moving: Float[Array, "..."]) -> Float[Array, "..."]:
    """`value` with the derivative of `moving`, which is the same number before it was rounded."""
    del moving
    return value


@with_tangent_of.defjvp
def _(primals, tangents):
    return with_tangent_of(*primals), tangents[1]  # which has derivatives in its turn


def call_isolated(function, *arguments):
    """`function(*arguments)`, compiled by itself: its bits depend on nothing in the program around it.

    For forces that must come out the same in a program and in the one that takes it back.
    """
    return _walled(function(*_walled(arguments)))


def _walled(tree):
    plain = lambda x: hasattr(x, "dtype") and not jnp.issubdtype(x.dtype, jax.dtypes.extended)
    leaves, structure = jax.tree.flatten(tree)
    chosen = [x for x in leaves if plain(x)]
    walled = iter(jax.lax.optimization_barrier(tuple(chosen)) if chosen else ())
    return structure.unflatten([next(walled) if plain(x) else x for x in leaves])
