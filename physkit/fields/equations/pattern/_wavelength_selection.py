"""The free energy of patterns with a wavelength of their own."""

import equinox as eqx
from jaxtyping import Array, Float

from physkit.core import require_nonnegative, require_positive

from ._gradient_flow import AbstractGradientFlow


class AbstractWavelengthSelection(AbstractGradientFlow):
    """Gradient flows where waves of wavenumber q are cheapest.

    F[u] = ∫ ½ u [(q² + ∇²)² − r] u − ⅓ g u³ + ¼ u⁴ dV
    """

    drive: eqx.AbstractVar[Float[Array, ""]]
    asymmetry: eqx.AbstractVar[Float[Array, ""]]
    wavenumber: eqx.AbstractVar[Float[Array, ""]]

    def __check_init__(self):
        require_positive(self, "wavenumber")
        require_nonnegative(self, "mobility")

    def stiffness(self):
        q2 = self.wavenumber**2
        return q2 * q2 - self.drive, -2 * q2, 1.0

    def bulk_energy(self, phi):
        return phi**3 * (0.25 * phi - self.asymmetry / 3)

    def bulk_slope(self, phi):
        return phi * phi * (phi - self.asymmetry)
