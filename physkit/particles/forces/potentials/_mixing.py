"""Mixing rules: tables for pairs of species from values per species."""

from functools import partial

import equinox as eqx
from jaxtyping import Array, Float

from physkit.core import ShapeError, as_parameter, explain_call, safe_sqrt

from ..._arguments import Numbers


@explain_call
def lorentz_berthelot(*, epsilon: Numbers, sigma: Numbers) -> dict[str, Float[Array, "s s"]]:
    """Lorentz–Berthelot rule: arithmetic mean of diameters, geometric mean of energies.

        σᵢⱼ = (σᵢ + σⱼ)/2,   εᵢⱼ = √(εᵢ εⱼ)

    **Arguments:** `epsilon`, `sigma`: one value per species, `[s]`; by name only.

    **Returns:** tables by argument name: `LennardJones(**lorentz_berthelot(epsilon=…, sigma=…))`.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., eq. 1.36.
    """
    sigma, epsilon = _per_species(sigma, epsilon)
    return {"sigma": _arithmetic(sigma), "epsilon": _geometric(epsilon)}


@explain_call
def geometric(*, epsilon: Numbers, sigma: Numbers) -> dict[str, Float[Array, "s s"]]:
    """Geometric means of diameters and of energies (the OPLS rule).

        σᵢⱼ = √(σᵢ σⱼ),   εᵢⱼ = √(εᵢ εⱼ)

    **Arguments** and what it returns: as `lorentz_berthelot`.

    **Reference:** Jorgensen, Maxwell & Tirado-Rives, J. Am. Chem. Soc. 118, 11225 (1996).
    """
    sigma, epsilon = _per_species(sigma, epsilon)
    return {"sigma": _geometric(sigma), "epsilon": _geometric(epsilon)}


@partial(eqx.filter_jit, inline=True)
def _arithmetic(x: Float[Array, " s"]) -> Float[Array, "s s"]:
    return (x[:, None] + x[None, :]) / 2


@partial(eqx.filter_jit, inline=True)
def _geometric(x: Float[Array, " s"]) -> Float[Array, "s s"]:
    # The product of the roots would round εᵢᵢ; a zero must not give an infinite derivative.
    return safe_sqrt(x[:, None] * x[None, :])


def _per_species(sigma: Numbers, epsilon: Numbers) -> tuple[Array, Array]:
    sigma, epsilon = as_parameter(sigma), as_parameter(epsilon)
    if sigma.ndim != 1 or sigma.shape != epsilon.shape:
        raise ShapeError(
            "a mixing rule needs one sigma and one epsilon per species; got shapes "
            f"{sigma.shape} and {epsilon.shape}"
        )
    return sigma, epsilon
