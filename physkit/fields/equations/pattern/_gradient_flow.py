"""Fields that go downhill in a free energy: one equation for phases, rolls and crystals."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, ShapeError
from physkit.geometry import Mirror, Neumann, Periodic

from ..._equation import AbstractEquation
from ..._field import Field
from ..._spectrum import Spectrum
from ...elliptic import divide_waves
from ...operators import AbstractScheme, Central, Spectral, laplacian
from .._diffusion import symbol_of_laplacian


class AbstractGradientFlow(AbstractEquation):
    """A field φ that goes down a free energy, and how fast.

        ∂φ/∂t = −M δF/δφ                 as fast as it can        (`conserved = False`)
        ∂φ/∂t = M ∇² δF/δφ               and ∫φ dV stays          (`conserved = True`)
        F[φ] = ∫ ½ φ (a₀ − a₁∇² + a₂∇⁴) φ + f(φ) dV

    Write `stiffness`, the numbers a₀, a₁, a₂, and `bulk_energy`, the function f. The quadratic part is the
    linear part of the equation, `symbol`; with a `bulk_curvature` c it takes ½cφ² over from f, so that what
    is left for the explicit part is small where it would be stiff.

    On the grid F falls at the rate M⟨(δF/δφ)²⟩, or M⟨|∇δF/δφ|²⟩, exactly: products are not dealiased, because
    that would be another energy. Between walls F has no flux through them: give the field `Neumann(0.0)`
    and the equation `scheme=Central()`; `ARS222`, `ARS343` and `BackwardEuler` then solve for the quadratic
    part, wave by wave, so that dt is not bound by h⁴.
    """

    mobility: eqx.AbstractVar[Float[Array, ""]]
    scheme: eqx.AbstractVar[AbstractScheme]
    conserved: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def stiffness(self) -> tuple[Array | float, Array | float, Array | float]:
        """a₀, a₁, a₂ of the quadratic part ½ φ (a₀ − a₁∇² + a₂∇⁴) φ."""

    @abc.abstractmethod
    def bulk_energy(self, phi: Array) -> Array:
        """f, the rest of the energy density, point by point."""

    def bulk_curvature(self) -> Array | float:
        """c: what of f counts as ½cφ² of the quadratic part. About the largest f″ that occurs."""
        return 0.0

    def bulk_slope(self, phi: Array) -> Array:
        """f′, point by point."""
        value, pull_back = jax.vjp(self.bulk_energy, phi)
        return pull_back(jnp.ones_like(value))[0]

    def symbol(self, field: Field) -> Array:
        _require_scalar(field, self)
        return self._rate_of_wave(self._square_wavenumber(field), self.bulk_curvature())

    def linear(self, field: Field) -> Field | Spectrum:
        if isinstance(self.scheme, Spectral):
            return field.spectrum().multiply(self.symbol(field))
        return self._descend(self._quadratic_slope(field, self.bulk_curvature()))

    def nonlinear(self, clock: Clock, field: Field) -> Field | Spectrum:
        del clock
        _require_scalar(field, self)
        c = self.bulk_curvature()
        return self._descend(field.map(lambda phi: self.bulk_slope(phi) - c * phi))

    # Between walls the second difference has waves of its own, and L is a polynomial of it.

    def can_solve(self, field: Field) -> bool:
        sides = [side for pair in field.boundary for side in pair or ()]
        free = all(isinstance(side, Neumann | Mirror | Periodic) for side in sides)
        return self.scheme == Central(2) and not all(field.grid.periodic) and free

    def solve(self, field: Field, interval: Array) -> Field:
        # Only the change is solved for, (1 − dt L) δ = dt L φ: rounding is of it, so that ∫φ stays.
        change = self.linear(field) * interval
        grows = lambda bend: 1 - interval * self._rate_of_wave(-bend, self.bulk_curvature())
        return field.replace(data=field.data + divide_waves(field, change.data, grows))

    def chemical_potential(self, field: Field) -> Field:
        """δF/δφ."""
        return self._quadratic_slope(field, 0.0) + field.map(self.bulk_slope)

    def free_energy(self, field: Field) -> Float[Array, ""]:
        """F of a field."""
        _require_scalar(field, self)
        slope = self._quadratic_slope(field, 0.0).data
        return field.map(lambda phi: 0.5 * phi * slope + self.bulk_energy(phi)).integral()

    def _descend(self, potential: Field) -> Field | Spectrum:
        """−M μ, or M ∇²μ where the integral stays."""
        if not self.conserved:
            return potential * -self.mobility
        if isinstance(self.scheme, Spectral):
            k2 = self._square_wavenumber(potential)
            return potential.spectrum().multiply(-self.mobility * k2)
        return self._laplacian(potential) * self.mobility

    def _quadratic_slope(self, field: Field, curvature: Array | float) -> Field:
        """(a₀ + c − a₁∇² + a₂∇⁴) φ."""
        if isinstance(self.scheme, Spectral):
            k2 = self._square_wavenumber(field)
            return field.spectrum().multiply(self._stiffness_of_wave(k2, curvature)).field()
        a0, a1, a2 = self.stiffness()
        bent = laplacian(field, self.scheme)
        return field * (a0 + curvature) - bent * a1 + self._laplacian(bent) * a2

    def _rate_of_wave(self, k2: Array, curvature: Array | float) -> Array:
        """The symbol of the linear part, of the square wavenumber."""
        rate = self._stiffness_of_wave(k2, curvature) * -self.mobility
        return rate * k2 if self.conserved else rate

    def _stiffness_of_wave(self, k2: Array, curvature: Array | float) -> Array:
        a0, a1, a2 = self.stiffness()
        return (a0 + curvature) + k2 * (a1 + k2 * a2)

    def _square_wavenumber(self, field: Field) -> Array:
        return -symbol_of_laplacian(field, self.scheme)

    def _laplacian(self, inner: Field) -> Field:
        """∇² of what follows from φ: nothing flows through walls."""
        walls = None if all(inner.grid.periodic) else Neumann(0.0)
        return laplacian(inner.with_boundary(walls), self.scheme)


def _require_scalar(field: Field, equation: AbstractGradientFlow) -> None:
    if field.components or not field.is_real:
        raise ShapeError(
            f"{type(equation).__name__} moves one real number per point; got {field.data.dtype}, "
            f"components {field.components}"
        )
