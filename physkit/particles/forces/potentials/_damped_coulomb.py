"""The two parts of the Coulomb potential of an Ewald sum: damped, and smeared."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, ratio, require_nonnegative, require_positive, safe_minimum

from ._potential import AbstractPairPotential, absorb_charge_unit

_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
# erf(x)/x³ − (2/√π) exp(−x²)/x² as a ratio of polynomials in z = x², by an iterated least-squares fit with
# the weight z^(3/2): times x³ it is off by 4e-8 at most for x < 4. Beyond, less than 6e-7 of a force is left.
_NUMERATOR = (
    0.752253036,
    -0.0319366344,
    0.0179404164,
    -1.06819032e-4,
    5.03858889e-5,
    -9.84057314e-7,
    1.01362143e-8,
)
_DENOMINATOR = (1.0, 0.557553731, 0.144061817, 0.0224343318, 0.00220845498, 1.46988427e-4)
_LARGEST = 4.0


def _polynomial(coefficients: tuple[float, ...], z: Float[Array, "..."]) -> Float[Array, "..."]:
    """Σ cₖ zᵏ by Horner's rule."""
    *rest, value = coefficients
    out = jnp.full_like(z, value)
    for c in reversed(rest):
        out = out * z + c
    return out


class DampedCoulomb(AbstractPairPotential):
    """Coulomb energy of two charges, each screened by a Gaussian cloud of the opposite charge.

        U(r) = k qᵢ qⱼ erfc(α r) / r

    The short-ranged part of an Ewald sum. By itself, with `truncation="shifted-force"`, it is the *damped
    shifted force*: the cheap alternative to Ewald sums, of order n.

        Pairwise(DampedCoulomb(2.0), cutoff=1.2)

    **Arguments:**

    - `damping`: α, 1 / length. 0 is the bare 1/r.
    - `coulomb_constant`: k = 1/(4π ε₀ ε_r), energy · length / charge².

    **Good values:** as damped shifted force α = 0.2/Å and a cutoff of 9 to 12 Å for liquids; larger α damps
    the interaction itself.

    **Notes:** particles need `charge`. The damped shifted force leaves out the constant energy
    −k (erfc(α r_c)/(2 r_c) + α/√π) Σ q², which some codes add.

    **Reference:** Ewald, Ann. Phys. 369, 253 (1921); Fennell & Gezelter, J. Chem. Phys. 124, 234104 (2006),
    eq. 19.
    """

    charged: ClassVar[bool] = True

    damping: Float[Array, "..."] = param()
    coulomb_constant: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        require_nonnegative(self, "damping")
        require_positive(self, "coulomb_constant")

    def in_charge_unit(self, unit: Float[Array, ""]) -> "DampedCoulomb":
        return absorb_charge_unit(self, unit)

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        return ratio(self.coulomb_constant * jax.lax.erfc(self.damping * r), r)

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        if jnp.finfo(r2.dtype).nmant <= jnp.finfo(jnp.float32).nmant:
            return self._force_in_float32(r2)
        inverse = jax.lax.rsqrt(r2)
        x = self.damping * (r2 * inverse)
        gauss = _TWO_BY_ROOT_PI * self.damping * jnp.exp(-x * x)
        return self.coulomb_constant * (jax.lax.erfc(x) * inverse + gauss) * (inverse * inverse)

    def _force_in_float32(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        """The force to 6e-7 of the bare charges' force: 1 − x³ g(x²) of it, with a rational function g."""
        # What is selected, the compiler computes where it is used; a root alone it writes to memory.
        inverse = jnp.where(r2 == 0, jnp.inf, jax.lax.rsqrt(r2))
        x = safe_minimum(self.damping * (r2 * inverse), _LARGEST)
        z = x * x
        smooth = _polynomial(_NUMERATOR, z) / _polynomial(_DENOMINATOR, z)
        screened = jnp.where(x < _LARGEST, 1 - x * z * smooth, 0)
        return self.coulomb_constant * (screened * inverse) * (inverse * inverse)


class SmearedCoulomb(AbstractPairPotential):
    """Coulomb energy of two Gaussian clouds of charge: what `DampedCoulomb` leaves of 1/r.

        U(r) = k qᵢ qⱼ erf(α r) / r

    Finite where charges overlap, 2 α k qᵢ qⱼ/√π. Clouds of width σ (standard deviation) have α = 1/(2σ).

    **Arguments:**

    - `damping`: α, 1 / length.
    - `coulomb_constant`: k = 1/(4π ε₀ ε_r), energy · length / charge².

    **Notes:** particles need `charge`. Without finite range, as `Coulomb`: in a periodic box use it between
    given pairs (`SpecialPairs`).

    **Reference:** Frenkel & Smit, Understanding Molecular Simulation, 2nd ed., eq. 12.1.14.
    """

    charged: ClassVar[bool] = True

    damping: Float[Array, "..."] = param()
    coulomb_constant: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        require_nonnegative(self, "damping")
        require_positive(self, "coulomb_constant")

    def in_charge_unit(self, unit: Float[Array, ""]) -> "SmearedCoulomb":
        return absorb_charge_unit(self, unit)

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        separate = r > 0
        # Divide by 1 at 0: a NaN behind `where` would reach gradients.
        cloud = ratio(jax.lax.erf(self.damping * r), jnp.where(separate, r, 1))
        return self.coulomb_constant * jnp.where(separate, cloud, _TWO_BY_ROOT_PI * self.damping)
