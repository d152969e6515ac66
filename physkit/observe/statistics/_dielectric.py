"""The dielectric constant from the fluctuations of a cell's dipole moment."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import ParameterError, ShapeError, explain_call, ratio

from ._transport import Estimate

_NUM_BLOCKS = 8


@explain_call
def dielectric_constant(
    dipoles: ArrayLike,
    volume: ArrayLike,
    temperature: ArrayLike,
    coulomb_constant: ArrayLike = 1.0,
) -> Estimate:
    """The static dielectric constant of a liquid whose Ewald sum has a conducting boundary.

        ε = 1 + 4π k/(d V k_B T) (⟨M²⟩ − ⟨M⟩²)

    The error bar comes from the scatter of the same formula over eight blocks of the run.

    **Arguments:**

    - `dipoles`: `[m d]`, frames of `DipoleMoment` in the order of time.
    - `volume`: V of the cell. `temperature`: k_B T. `coulomb_constant`: k = 1/(4π ε₀), that of the Ewald sum.

    **Returns:** `Estimate(value, error)`; differentiable.

    **Errors:** `ShapeError` for other frames; `ParameterError` for fewer than 16.

    **Good values:** water needs a nanosecond at least: its dipole moment takes 10 ps to turn.

    **Notes:** ⟨M⟩ is 0 for a liquid; it is taken out for what a short run leaves of it, which makes ε of blocks
    a little low: its error bar is good to about a quarter.

    **Reference:** Neumann, Mol. Phys. 50, 841 (1983), eq. 32 with ε_RF = ∞.
    """
    moments = jnp.asarray(dipoles)
    if moments.ndim != 2:
        raise ShapeError(f"dipoles are frames [m d]; got {moments.shape}")
    if len(moments) < 2 * _NUM_BLOCKS:
        raise ParameterError(
            f"error bars need {2 * _NUM_BLOCKS} frames or more; got {len(moments)}"
        )
    # Roots: neither the square of a moment of 10⁻²⁹ C m nor what it is multiplied by is in float32.
    unit = jnp.sqrt(jnp.asarray(volume)) * jnp.sqrt(jnp.asarray(temperature))
    scale = jnp.sqrt(4 * jnp.pi * jnp.asarray(coulomb_constant))

    def of(part: Float[Array, "k d"]) -> Float[Array, ""]:
        from_mean = part - jnp.mean(part, axis=0, keepdims=True)
        return 1 + jnp.mean((scale * ratio(from_mean, unit)) ** 2)

    blocks = jnp.stack([of(part) for part in jnp.array_split(moments, _NUM_BLOCKS)])
    return Estimate(of(moments), jnp.std(blocks, ddof=1) / jnp.sqrt(_NUM_BLOCKS))
