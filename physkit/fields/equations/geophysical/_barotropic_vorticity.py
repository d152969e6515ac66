"""Flow without divergence on a rotating sphere."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, param, static

from ..._field import Field
from ..._spectrum import Spectrum
from ._spherical_flow import AbstractSphericalFlow, require_sphere


class BarotropicVorticity(AbstractSphericalFlow):
    """Flow without divergence on a sphere that turns.

        ∂ζ/∂t = −∇·[(ζ + 2Ω sin φ) u] − ν [(−∇²)ᵖ − (2/a²)ᵖ] ζ,   u = k × ∇ψ, ∇²ψ = ζ

    Energy ½∫u² dA and enstrophy ½∫(ζ + f)² dA are conserved where ν = 0. Rossby–Haurwitz waves, any harmonics
    of one degree l beside a rotation of the whole, travel unchanged.

    **Arguments:**

    - `rotation`: Ω, 1 / time.
    - `viscosity`: ν ≥ 0, length²ᵖ / time.
    - `order`: p ≥ 1.
    - `component`: the name of ζ, a scalar field on a `SphericalGrid`, where the state has several components.

    **Errors:** `ShapeError` unless the field is a scalar on a `SphericalGrid`.

    **Good values:** `ETDRK4` with max|u| dt < a/L; with p = 4 a ν that damps the last degree in some steps.

    **Reference:** Haurwitz, J. Mar. Res. 3, 254 (1940); Orszag, J. Atmos. Sci. 27, 890 (1970).
    """

    rotation: Float[Array, ""] = param(0.0)
    viscosity: Float[Array, ""] = param(0.0)
    order: int = static(default=1)
    component: str | None = static(default=None)

    def symbol(self, field: Field) -> Array:
        require_sphere(field, (), type(self).__name__)
        return self.damping(field)

    def nonlinear(self, clock: Clock, field: Field) -> Spectrum:
        del clock
        require_sphere(field, (), type(self).__name__)
        spectrum = field.spectrum()
        flow = _velocity(spectrum)
        _, divergence = field.grid.vorticity_and_divergence(
            (field.data + self.coriolis(field))[None] * flow
        )
        return spectrum.with_coefficients(-divergence)

    def velocity(self, field: Field) -> Field:
        """u, eastward and northward, `[2, longitude, latitude]`."""
        require_sphere(field, (), type(self).__name__)
        return field.with_values(_velocity(field.spectrum()), vector=True)

    def energy(self, field: Field) -> Float[Array, ""]:
        """½ ∫ u² dA."""
        flow = self.velocity(field)
        return 0.5 * field.with_values(jnp.sum(flow.data**2, axis=0)).integral()


def _velocity(vorticity: Spectrum) -> Array:
    zeta = vorticity.coefficients
    return vorticity.grid.velocity(zeta, jnp.zeros_like(zeta))
