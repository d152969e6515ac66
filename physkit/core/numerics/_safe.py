"""Mathematical functions whose value *and derivative* stay finite where the plain form gives 0 · ∞ = NaN.

Each selects twice: `jnp.where` on the argument, so that the plain form never sees the bad point, and on the
result. The derivative of a NaN that a `where` discards is still NaN.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Inexact

from ._custom_jvp import custom_jvp

_SERIES_RADIUS = 1.5  # |z| below which the φ functions are series
_TERMS = {4: 12, 8: 22}  # of such a series, by bytes of a real number


def safe_sqrt(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """√x for x > 0, and 0 with derivative 0 for x ≤ 0; NaN stays NaN."""
    positive = ~(x <= 0)  # not `x > 0`, which is False for NaN
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1)), 0)


def safe_norm(
    x: Float[Array, "..."], axis: int = -1, keepdims: bool = False
) -> Float[Array, "..."]:
    """|x| along `axis`; its derivative at x = 0 is 0."""
    return safe_sqrt(jnp.sum(x * x, axis=axis, keepdims=keepdims))


@custom_jvp
def ratio(a: ArrayLike, b: Float[Array, "..."]) -> Float[Array, "..."]:
    """a / b, whose derivative is right wherever a / b is: JAX's has b², beyond float32 in SI units."""
    return a / b


@partial(ratio.defjvp, symbolic_zeros=True)
def _(primals: tuple[ArrayLike, Array], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
    (a, b), (da, db) = primals, tangents
    # Of values that have such derivatives, too, so that higher ones have no powers of b either.
    q, inverse = ratio(a, b), _inverse(b)
    # Without its zeros, for on the way back each keeps an array alive.
    if isinstance(db, SymbolicZero):
        return q, da * inverse
    if isinstance(da, SymbolicZero):
        return q, -q * db * inverse
    return q, (da - q * db) * inverse


@custom_jvp
def _inverse(b: Float[Array, "..."]) -> Float[Array, "..."]:
    return 1 / b


@_inverse.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    inverse = _inverse(*primals)
    return inverse, -(tangents[0] * inverse) * inverse


def safe_divide(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """a / b, and 0 with derivative 0 where b = 0."""
    nonzero = b != 0
    return jnp.where(nonzero, ratio(a, jnp.where(nonzero, b, 1)), 0)


def safe_power(x: Float[Array, "..."], exponent: float | Float[Array, ""]) -> Float[Array, "..."]:
    """xᵖ for x > 0, and 0 with derivative 0 for x ≤ 0; NaN stays NaN."""
    positive = ~(x <= 0)
    return jnp.where(positive, jnp.where(positive, x, 1) ** exponent, 0)


def safe_arctan2(y: Float[Array, "..."], x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The angle of (x, y) from the x axis, and 0 with derivative 0 at the origin."""
    known = (x != 0) | (y != 0)
    return jnp.where(known, jnp.arctan2(jnp.where(known, y, 0), jnp.where(known, x, 1)), 0)


def where_safe(
    mask: Bool[Array, "..."],
    function: Callable[[Float[Array, "..."]], Float[Array, "..."]],
    x: Float[Array, "..."],
    inside: float | Array = 1.0,
) -> Float[Array, "..."]:
    """function(x) where `mask` holds, else 0; where it does not, `function` gets `inside`.

    `inside` is any number at which `function` and its derivative are finite.
    """
    return jnp.where(mask, function(jnp.where(mask, x, inside)), 0)


def phi_functions(z: Inexact[Array, "..."]) -> tuple[Array, Array, Array]:
    """φ₁ = (eᶻ − 1)/z, φ₂ = (eᶻ − 1 − z)/z², φ₃ = (eᶻ − 1 − z − z²/2)/z³.

    To a few units in the last place for every z, real or complex, with derivatives; 1, 1/2, 1/6 at
    z = 0. Near 0 the recursion φₖ = 1/k! + z φₖ₊₁ is run downwards from the series of φ₃, elsewhere
    upwards: contour means (Kassam & Trefethen, SIAM J. Sci. Comput. 26, 1214 (2005)) come close to 0
    for |z| near their radius, where float32 loses half its digits, and cost 32 exponentials.
    """
    near = jnp.abs(z) < _SERIES_RADIUS
    # Each branch gets an argument that it can take: both are evaluated everywhere, and a NaN in the one
    # that `where` leaves out would still reach the derivatives.
    low, high = jnp.where(near, z, 0), jnp.where(near, 1, z)
    # finfo of a complex type is that of its real and imaginary parts.
    count = _TERMS[jnp.finfo(z.dtype).dtype.itemsize]
    # φ₃ = Σ zʲ/(j + 3)!, by Horner's rule.
    series = jnp.full_like(low, 1 / math.factorial(count + 3))
    for j in reversed(range(count)):
        series = 1 / math.factorial(j + 3) + low * series
    two = 1 / 2 + low * series
    near_zero = (1 + low * two, two, series)
    # Upwards each division by z amplifies rounding by 1/|z|, which is harmless beyond the radius.
    one = jnp.expm1(high) / high
    two = (one - 1) / high
    elsewhere = (one, two, (two - 1 / 2) / high)
    return tuple(jnp.where(near, a, b) for a, b in zip(near_zero, elsewhere, strict=True))
