"""The free energy of two phases: a double well, and a price on interfaces."""

import equinox as eqx
from jaxtyping import Array, Float

from physkit.core import require_nonnegative, require_positive

from ._gradient_flow import AbstractGradientFlow


class AbstractDoubleWell(AbstractGradientFlow):
    """Gradient flows of F[φ] = ∫ ½κ|∇φ|² + ¼W (φ² − 1)² dV: the phases are φ = ±1.

    A flat interface is φ = tanh(x/√(2κ/W)) and costs σ = (2√2/3) √(κW) per area.
    """

    gradient_energy: eqx.AbstractVar[Float[Array, ""]]
    barrier: eqx.AbstractVar[Float[Array, ""]]

    def __check_init__(self):
        require_positive(self, "gradient_energy")
        require_nonnegative(self, "mobility", "barrier")

    def stiffness(self):
        return 0.0, self.gradient_energy, 0.0

    def bulk_energy(self, phi):
        return 0.25 * self.barrier * (phi * phi - 1) ** 2

    def bulk_slope(self, phi):
        return self.barrier * phi * (phi * phi - 1)

    def bulk_curvature(self):
        # f″ of the pure phases: implicit there, where most of the volume is.
        return 2 * self.barrier
