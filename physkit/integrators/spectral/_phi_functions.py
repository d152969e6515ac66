"""The φ functions of exponential integrators."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Inexact

_SERIES_RADIUS = 1.5  # |z| below which the series is used
_TERMS = {4: 12, 8: 22}  # of the series, by bytes of a real number


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
