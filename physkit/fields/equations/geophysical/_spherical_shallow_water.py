"""Shallow water on a rotating sphere: one layer of an atmosphere or an ocean."""

from collections.abc import Callable
from dataclasses import KW_ONLY

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ParameterError,
    ShapeError,
    concrete_value,
    param,
    require_positive,
    scale_array,
    static,
)
from physkit.geometry import SphericalGrid

from ..._field import Field
from ..._spectrum import Spectrum, square_wavenumber
from ._spherical_flow import AbstractSphericalFlow, require_sphere

OfPlace = Callable[[Array, Array], ArrayLike]  # of longitude and latitude
FlowOfPlace = Callable[[Array, Array], tuple[ArrayLike, ArrayLike]]


class SphericalShallowWater(AbstractSphericalFlow):
    """Shallow water on a sphere that turns.

        ∂ζ/∂t = −∇·[(ζ + f) u],   f = 2Ω sin φ
        ∂δ/∂t = k·∇×[(ζ + f) u] − ∇²[½u² + g(h + b)]
        ∂h/∂t = −∇·(h u)

    with vorticity ζ, divergence δ and depth h: a field `[3, longitude, latitude]` on a `SphericalGrid`, which
    `state` makes of a flow and a depth. ζ, δ and the surface h + b are damped by −ν[(−∇²)ᵖ − (2/a²)ᵖ]: water at
    rest over mountains stays at rest. Mass ∫h dA is conserved to rounding, energy up to damping and truncation.

    **Arguments:**

    - `gravity`: g > 0, length / time².
    - `rotation`: Ω, 1 / time.
    - `viscosity`: ν ≥ 0, length²ᵖ / time.
    - `topography`: b, a scalar field on the same grid, length; None for a plain.
    - `order`: p ≥ 1.
    - `component`: the field's name, where the state has several components.

    **Errors:** `ShapeError` unless field and topography fit; `ParameterError` for g ≤ 0, ν < 0, p < 1.

    **Good values:** `ETDRK4` with √(g h) L dt/a < 2: 900 s for the Earth at L = 42, of which the explicit part
    follows gravity waves; ν = 10¹⁶ m⁴/s at L = 42 with p = 2, 16 times less at twice the L.

    **Reference:** Williamson, Drake, Hack, Jakob & Swarztrauber, J. Comput. Phys. 102, 211 (1992), eq.
    4–6; Hack & Jakob, NCAR/TN-343+STR (1992).
    """

    gravity: Float[Array, ""] = param()
    rotation: Float[Array, ""] = param(0.0)
    viscosity: Float[Array, ""] = param(0.0)
    _: KW_ONLY
    topography: Field | None = None
    order: int = static(default=2)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "gravity")
        if self.topography is not None:
            require_sphere(self.topography, (), "topography of SphericalShallowWater")

    def symbol(self, field: Field) -> Array:
        self._require(field)
        return self.damping(field)

    def nonlinear(self, clock: Clock, field: Field) -> Spectrum:
        del clock
        self._require(field)
        grid, spectrum = field.grid, field.spectrum()
        zeta, delta, depth = spectrum.coefficients
        flow = grid.velocity(zeta, delta)
        carried = jnp.stack([field.data[0] + self.coriolis(field), field.data[2]])
        # [east or north, what is carried, longitude, latitude]: both fluxes by one transform.
        curl, divergence = grid.vorticity_and_divergence(flow[:, None] * carried[None])
        head = grid.fft(0.5 * jnp.sum(flow**2, axis=0)) + scale_array(depth, self.gravity)
        rising = curl[0] + scale_array(head, square_wavenumber(grid))
        return spectrum.with_coefficients(jnp.stack([-divergence[0], rising, -divergence[1]]))

    def steady(self, field: Field) -> Spectrum | None:
        if self.topography is None:
            return None
        self._require(field)
        ground = field.grid.fft(self.topography.data)
        rising = scale_array(ground, self.gravity * square_wavenumber(field.grid))
        # The symbol damps h alone, which would let it sink along slopes: the rest of h + b.
        filling = scale_array(ground, self.damping(field))
        parts = jnp.stack([jnp.zeros_like(rising), rising, filling])
        return field.spectrum().with_coefficients(parts)

    # --- what flows -----------------------------------------------------------------------------

    @staticmethod
    def state(grid: SphericalGrid, velocity: FlowOfPlace, depth: OfPlace) -> Field:
        """The field `[3, longitude, latitude]` of a flow and a depth.

        **Arguments:**

        - `grid`: a `SphericalGrid`.
        - `velocity`: `(longitude, latitude) → (u, v)`, eastward and northward.
        - `depth`: `(longitude, latitude) → h`.

        **Errors:** `ParameterError` for a depth that is not positive.
        """
        flow = Field.from_function(grid, velocity)
        surface = Field.from_function(grid, depth)
        numbers = concrete_value(surface.data)
        if numbers is not None and not numbers.min() > 0:
            raise ParameterError(f"the depth of water must be positive; got {numbers.min():g}")
        curl, divergence = grid.vorticity_and_divergence(flow.data)
        return Field(jnp.stack([grid.ifft(curl), grid.ifft(divergence), surface.data]), grid)

    def balance(self, field: Field) -> Field:
        """`field` with the depth that holds its flow in place, at the same mean depth.

            ∇²[½u² + g(h + b)] = k·∇×[(ζ + f) u]

        A zonal flow then stays as it is; of others gravity waves are left out at the start.
        """
        self._require(field)
        grid, spectrum = field.grid, field.spectrum()
        flow = self.velocity(field).data
        absolute = field.data[0] + self.coriolis(field)
        curl, _ = grid.vorticity_and_divergence(absolute[None] * flow)
        head = spectrum[0].with_coefficients(curl).inverse_laplacian().field().data
        surface = (head - 0.5 * jnp.sum(flow**2, axis=0)) / self.gravity
        depth = field.with_values(surface - self._height())
        depth = depth + (field[2].mean() - depth.mean())
        return field.replace(data=field.data.at[2].set(depth.data))

    def velocity(self, field: Field) -> Field:
        """u, eastward and northward, `[2, longitude, latitude]`."""
        self._require(field)
        spectrum = field.spectrum().coefficients
        return field.with_values(field.grid.velocity(spectrum[0], spectrum[1]), vector=True)

    def energy(self, field: Field) -> Float[Array, ""]:
        """½ ∫ h u² + g [(h + b)² − b²] dA."""
        flow, depth, ground = self.velocity(field).data, field.data[2], self._height()
        kinetic = depth * jnp.sum(flow**2, axis=0)
        potential = self.gravity * depth * (depth + 2 * ground)
        return 0.5 * field.with_values(kinetic + potential).integral()

    def potential_vorticity(self, field: Field) -> Field:
        """(ζ + f)/h, which the flow carries."""
        self._require(field)
        return field.with_values((field.data[0] + self.coriolis(field)) / field.data[2])

    # --- inside ---------------------------------------------------------------------------------

    def _height(self) -> Array:
        return (
            jnp.zeros((), self.gravity.dtype) if self.topography is None else self.topography.data
        )

    def _require(self, field: Field) -> None:
        require_sphere(field, (3,), type(self).__name__)
        if self.topography is not None and self.topography.grid.shape != field.grid.shape:
            raise ShapeError(
                f"topography is on a sphere of {self.topography.grid.shape} points, the flow on one of "
                f"{field.grid.shape}"
            )
