"""Associated Legendre functions at Gauss latitudes: what spherical harmonics are along a meridian."""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class LegendreTables:
    """Functions P̄ₗᵐ(μ) with ∫ P̄² dμ = 1, at the nodes μ = sin φ of Gauss's rule, from south to north.

    Arrays `[m, l, latitude]` with 0 ≤ m, l ≤ L, double precision; 0 where l < m.

    - `sines`, `weights`: nodes μ and weights of Gauss's rule, which add up to 2.
    - `values`: P̄ₗᵐ.
    - `zonal`: m P̄ₗᵐ / cos φ, the derivative along a circle of latitude, but for the factor i.
    - `meridional`: dP̄ₗᵐ/dφ.
    """

    sines: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    zonal: np.ndarray
    meridional: np.ndarray


@functools.lru_cache(maxsize=8)
def legendre_tables(truncation: int, latitudes: int) -> LegendreTables:
    """The tables of harmonics up to degree L = `truncation`.

    **Reference:** Holmes & Featherstone, J. Geod. 76, 279 (2002), eq. 11–13, of the recursion in l, stable
    where sectoral functions do not underflow: L < 1900.
    """
    sines, weights = np.polynomial.legendre.leggauss(latitudes)
    cosines = np.sqrt((1 - sines) * (1 + sines))
    m = np.arange(truncation + 1)
    # One degree more than asked for, of which derivatives are made.
    values = np.zeros((truncation + 1, truncation + 2, latitudes))
    values[0, 0] = np.sqrt(0.5)
    for k in m[1:]:
        values[k, k] = np.sqrt((2 * k + 1) / (2 * k)) * cosines * values[k - 1, k - 1]
    degrees = np.arange(truncation + 2)
    # ε: μ P̄ₗ = εₗ₊₁ P̄ₗ₊₁ + εₗ P̄ₗ₋₁
    square = np.maximum(degrees[None] ** 2 - m[:, None] ** 2, 0) / (4 * degrees[None] ** 2 - 1)
    epsilon = np.sqrt(np.where(degrees[None] > 0, square, 0))[..., None]
    for l in range(truncation + 1):
        known = m <= l
        next_one = sines * values[known, l]
        if l > 0:
            next_one = next_one - epsilon[known, l] * values[known, l - 1]
        values[known, l + 1] = next_one / epsilon[known, l + 1]
    # cos φ dP̄ₗ/dφ = (l + 1) εₗ P̄ₗ₋₁ − l εₗ₊₁ P̄ₗ₊₁
    l = degrees[None, :-1, None]
    below = np.concatenate([np.zeros_like(values[:, :1]), values[:, :-2]], axis=1)
    slope = (l + 1) * epsilon[:, :-1] * below - l * epsilon[:, 1:] * values[:, 1:]
    inside = values[:, :-1]
    return LegendreTables(
        sines, weights, inside, m[:, None, None] * inside / cosines, slope / cosines
    )
