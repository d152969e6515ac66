"""The Buckingham potential."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, require_nonnegative, require_positive

from ._potential import AbstractPairPotential


class Buckingham(AbstractPairPotential):
    """Buckingham exp–6 potential: Born–Mayer repulsion and dispersion, for ionic solids.

        U(r) = A e^(−r/ρ) − C/r⁶

    **Arguments:**

    - `amplitude`: A, energy. Scalar, or `[s s]` per pair of species.
    - `length`: ρ, length. Same shape.
    - `dispersion`: C, energy · length⁶. Same shape.

    **Good values:** silica (BKS) O–O: A = 1388.773 eV, ρ = 0.36232 Å, C = 175 eV Å⁶. A well of depth ε
    at r_m with α = r_m/ρ: A = 6ε e^α/(α − 6), C = ε α r_m⁶/(α − 6); α from 12 to 15 for molecules.

    **Notes:** falls to −∞ below a barrier at small r: particles that pass it never come back, and
    no energy minimization of overlaps can work.

    **Reference:** Buckingham, Proc. R. Soc. Lond. A 168, 264 (1938).
    """

    amplitude: Float[Array, "..."] = param()
    length: Float[Array, "..."] = param()
    dispersion: Float[Array, "..."] = param()

    def __check_init__(self):
        require_nonnegative(self, "amplitude", "dispersion")
        require_positive(self, "length")

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.amplitude * jnp.exp(-r / self.length) - self.dispersion / r**3 / r**3

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        r = jnp.sqrt(r2)
        repulsion = self.amplitude / self.length * jnp.exp(-r / self.length) / r
        # In two steps: r⁸ is 0 in single precision where r is below 10⁻⁵, as in micrometers written in meters.
        return repulsion - 6 * (self.dispersion / r2**2) / r2**2
