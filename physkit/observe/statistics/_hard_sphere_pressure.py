"""The pressure of hard disks and spheres, from how often they touch."""

import math
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from physkit.core import ParameterError, concrete_value, explain_call


class HardSpherePressure(NamedTuple):
    """`value`: P/(ρ k_B T). `error`: its standard error. `contact`: g(σ⁺)."""

    value: float
    error: float
    contact: float


@explain_call
def hard_sphere_pressure(
    radial_distribution: dict[str, Any],
    density: ArrayLike,
    *,
    diameter: ArrayLike = 1.0,
    dimension: int = 3,
    reach: float = 0.15,
) -> HardSpherePressure:
    """The compressibility factor of hard rods, disks or spheres, from g(r) at contact.

        P/(ρ k_B T) = 1 + (v_d/2) ρ σᵈ g(σ⁺),   v_d = 2, π, 4π/3

    g(σ⁺) is the value at σ of a cubic fitted to g between σ and (1 + reach) σ.

    **Arguments:**

    - `radial_distribution`: the summary of a `RadialDistribution`, `run.summary["radial_distribution"]`.
    - `density`: ρ, length^−d: of the N − 1 others around a particle, (N − 1)/V. `diameter`: σ, length.
    - `dimension`: d.
    - `reach`: of the fit.

    **Returns:** `value` and `error`, from the blocks of time, and `contact`.

    **Errors:** `ParameterError` for fewer than eight bins within reach.

    **Good values:** bins of 0.01 σ, with an edge at σ: a bin that contacts divide does not count.

    **Reference:** Hansen & McDonald, Theory of Simple Liquids, 4th ed., eq. 2.5.26.
    """
    if dimension not in (1, 2, 3):
        raise ParameterError(f"rods, disks or spheres have dimension 1, 2 or 3; got {dimension}")
    sigma, rho = (float(np.asarray(concrete_value(x))) for x in (diameter, density))
    r = np.asarray(radial_distribution["r"], np.float64)
    half = (r[1] - r[0]) / 2 if len(r) > 1 else 0.0
    near = (r - half > sigma * (1 - 1e-5)) & (r + half < sigma * (1 + reach))
    if near.sum() < 8:
        raise ParameterError(
            f"{near.sum()} bins of g(r) lie between σ = {sigma:g} and {1 + reach:g} σ; a fit to contact needs "
            "eight: give RadialDistribution more bins"
        )
    volume = {1: 2.0, 2: math.pi, 3: 4 * math.pi / 3}[dimension]
    factor = volume / 2 * rho * sigma**dimension

    def contact(g: np.ndarray) -> float:
        return float(np.polynomial.polynomial.polyfit(r[near] / sigma - 1, g[near], 3)[0])

    weights = np.asarray(radial_distribution["weights"], np.float64)[:, near].mean(axis=1)
    blocks = np.asarray(radial_distribution["blocks"], np.float64)[weights > 0]
    weights = weights[weights > 0] / weights.sum()
    value = contact(np.asarray(radial_distribution["value"], np.float64))
    scatter = np.array([contact(block) for block in blocks]) - value
    error = math.sqrt(np.sum(weights * scatter**2) / max(len(blocks) - 1, 1))
    return HardSpherePressure(
        1 + factor * value, factor * error if len(blocks) > 1 else math.nan, value
    )
