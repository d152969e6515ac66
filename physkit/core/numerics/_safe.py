"""Mathematical functions whose value *and derivative* stay finite where the plain form gives 0 · ∞ = NaN.

Each selects twice: `jnp.where` on the argument, so that the plain form never sees the bad point, and on the
result. The derivative of a NaN that a `where` discards is still NaN.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from ._custom_jvp import custom_jvp


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
