"""How fine a mesh must be for an error of the force, and what B-splines make of a wave.

On a mesh of spacing h a spline of order p makes of exp(ikx) also waves k ± 2π/h, of amplitudes (kh/2π)^p, whose
gradients count 2π/h instead of k. Summed over random charges as by Kolafa & Perram, over waves as an integral,
and in units of F₀ = k (Q/N) (N/V)^(2/3), these give the force the error δ_r; and each charge acts on itself,
at even orders in proportion to the same power of h (δ_s; at odd orders waves k and −k cancel):

    δ_r² = 24/(2p + 1) · Γ(p − ½) 2^(p−½) a α · (hα/2π)^(2p−2),   a = (V/N)^(1/3)
    δ_s² = 9/2 · (2/(π(p + 1)) · Γ((p + 1)/2) (2aα)² · (hα/π)^(p−1))²   for normally distributed charges

The mesh is as fine as √(δ_r² + δ_s²) = δ/2 asks for.

Reference: the method of Kolafa & Perram, Mol. Simul. 9, 351 (1992), on the splines of Essmann et al., J. Chem.
Phys. 103, 8577 (1995).
"""

import math

import numpy as np

_SMALLEST = 8


def mesh_points(
    cell: np.ndarray, damping: float, tolerance: float, order: int, num_charges: int
) -> tuple[int, int, int]:
    """Points along each axis of the cell with the rows of `cell`: products of 4 and small primes."""
    p, spread = order, abs(np.linalg.det(cell)) ** (1 / 3) / max(num_charges, 1) ** (1 / 3)
    x = spread * damping
    random = (
        24 / (2 * p + 1) * math.gamma(p - 0.5) * 2 ** (p - 0.5) * x / (2 * math.pi) ** (2 * p - 2)
    )
    own = 0.0
    if p % 2 == 0:
        own = 2 / (math.pi * (p + 1)) * math.gamma((p + 1) / 2) * (2 * x) ** 2 / math.pi ** (p - 1)
    error = math.sqrt(random + 4.5 * own**2)  # for h = 1/α
    spacing = (tolerance / 2 / error) ** (1 / (p - 1)) / damping
    lengths = np.linalg.norm(cell, axis=1)
    tilt = np.linalg.norm(cell / lengths[:, None], ord=2)
    a, b, c = (_round_up(float(n)) for n in tilt * lengths / spacing)
    return a, b, c


def _round_up(count: float) -> int:
    """The next multiple of 4 with no prime factor above 5: what Fourier transforms are fast for, and 2 or 4
    devices divide.
    """
    n = 4 * math.ceil(max(count, _SMALLEST) / 4)
    while not _is_smooth(n):
        n += 4
    return n


def _is_smooth(n: int) -> bool:
    for prime in (2, 3, 5):
        while n % prime == 0:
            n //= prime
    return n == 1


def spline_of_wave(phase: np.ndarray, order: int) -> np.ndarray:
    """Σ_j M(j) cos(j kh) over the mesh, at kh = `phase`: by which interpolants of exp(ikx) are divided."""
    # Points at which a centered spline is not 0.
    places = np.arange(-(order // 2), order // 2 + 1)
    samples = [_spline(j + order / 2, order) for j in places]
    return sum(w * np.cos(phase * j) for w, j in zip(samples, places, strict=True))


def _spline(u: float, order: int) -> float:
    """The B-spline on [0, order]."""
    terms = (
        (-1) ** k * math.comb(order, k) * max(u - k, 0) ** (order - 1) for k in range(order + 1)
    )
    return sum(terms) / math.factorial(order - 1)
