"""The Coulomb potential, bare or screened."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, ratio, require_positive

from ._potential import AbstractPairPotential, absorb_charge_unit


class Coulomb(AbstractPairPotential):
    """Coulomb (or Debye–Hückel) energy of two charges; `energy` is per product of the charges.

        U(r) = k qᵢ qⱼ e^(−r/λ) / r

    **Arguments:**

    - `coulomb_constant`: k = 1/(4π ε₀ ε_r), energy · length / charge².
    - `screening`: Debye length λ, length; infinite (the bare 1/r) if left out.

    **Good values:** k = 1 in Gaussian and most reduced units, 14.399645 eV Å / e², 138.935458
    kJ/mol nm / e². Screened: cutoff 8 λ and more.

    **Notes:** particles need `charge`. The bare 1/r has no finite range: cut off in a periodic box
    it is an approximation whose error does not vanish (that is what Ewald sums are for), and
    `"shifted-force"` is the least bad cut. Keep opposite charges apart by a repulsive potential. In SI units,
    float32 is as good as in any others.

    **Reference:** Debye & Hückel, Phys. Z. 24, 185 (1923); for the shifted-force cut, Fennell &
    Gezelter, J. Chem. Phys. 124, 234104 (2006).
    """

    charged: ClassVar[bool] = True

    coulomb_constant: Float[Array, "..."] = param(1.0)
    screening: Float[Array, "..."] = param(float("inf"))

    def __check_init__(self):
        require_positive(self, "coulomb_constant", "screening")

    def in_charge_unit(self, unit: Float[Array, ""]) -> "Coulomb":
        return absorb_charge_unit(self, unit)

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        # With an infinite Debye length, −r/λ is −0, and so is its derivative by λ: the bare 1/r.
        return ratio(self.coulomb_constant * jnp.exp(-r / self.screening), r)

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        r = jnp.sqrt(r2)
        decay = self.coulomb_constant * jnp.exp(-r / self.screening)
        return ratio(decay * (1 / r + 1 / self.screening), r2)
