"""How far an Ewald sum is split and cut for an error of the force.

N charges with Q = Σ q² that are spread at random over a volume V have the errors (Kolafa & Perram; the second
with its sum over waves as an integral)

    pairs beyond r_c:   δF = 2 Q k /√(N V r_c) · exp(−α² r_c²)
    waves beyond k_c:   δF = Q k α √(8/(N V k_c)) · exp(−k_c²/4α²)

in the root mean square of the force. In units of F₀ = k (Q/N) (N/V)^(2/3), the force between two charges at
their mean distance a = (V/N)^(1/3), these are 2 √(a/r_c) exp(−α² r_c²) and 2 √(a/r_c) exp(−k_c²/4α²) for
k_c = 2 α² r_c. Both together are below δ/2, for all cutoffs beyond a, with

    α r_c = x,   k_c = 2 α x,   x = √(ln 6/δ)

The other half is for charges that are not spread at random.

Reference: Kolafa & Perram, Mol. Simul. 9, 351 (1992).
"""

import math

import numpy as np


def decay(tolerance: float) -> float:
    """x, at which both sums end: there their terms have fallen to exp(−x²)."""
    return math.sqrt(math.log(6 / tolerance))


def splitting(cutoff: float, tolerance: float) -> float:
    """α, 1 / length."""
    return decay(tolerance) / cutoff


def wave_numbers(cell: np.ndarray, damping: float, tolerance: float) -> tuple[float, float, float]:
    """The largest mode number along each axis of the cell with the rows of `cell`, as real numbers.

    All modes m with Σ (mᵢ/rᵢ)² ≤ 1 for these r contain all waves with |k| ≤ k_c; for a rectangular cell they
    are the same.
    """
    largest = 2 * damping * decay(tolerance)
    lengths = np.linalg.norm(cell, axis=1)
    # m = A k/2π. For unit vectors along the rows, |A k|/|k| is at most the largest singular value.
    tilt = np.linalg.norm(cell / lengths[:, None], ord=2)
    first, second, third = largest / (2 * np.pi) * tilt * lengths * (1 + 1e-9)
    return float(first), float(second), float(third)
