"""Incompressible flow by its velocity, in two and three dimensions."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ParameterError,
    ShapeError,
    explain_call,
    param,
    require_nonnegative,
    scale_array,
    static,
    times_i,
)
from physkit.geometry import Grid

from ..._equation import AbstractEquation
from ..._field import Field
from ..._spectrum import Spectrum, derivative_symbol, square_wavenumber
from .._requirements import require_no_walls


class NavierStokes(AbstractEquation):
    """Incompressible Navier–Stokes equations, by the velocity.

        ∂u/∂t = −∇·(u u) − ∇p + ν ∇²u,   ∇·u = 0

    Vortices stretch in three dimensions and hand their energy down to small ones, where viscosity
    takes it; without ν energy is conserved by everything but the time step. Spectral (2/3 rule): the
    pressure is what keeps ∇·u = 0, mode by mode and to rounding. The trace of u u is pressure, too,
    so that 3 + 5 transforms of scalars do for an evaluation in three dimensions, 2 + 2 in two.

    **Arguments:**

    - `viscosity`: ν ≥ 0, length² / time.
    - `component`: the name of the velocity, a vector field, where the state has several components.
    - `truncation`: which modes are kept. `"cube"` |nᵢ| < Nᵢ/3 along every axis (2/3 rule): free of
      aliasing, conserves energy. `"sphere"` Σ (nᵢ/Nᵢ)² < 2/9: half as many modes again in three
      dimensions, √2 times as far along each axis; products still alias, along one axis at a time:
      little where the flow is nearly resolved, but to no end where it is not.

    **Errors:** `ShapeError` unless the field is a vector field on two or three axes;
    `ParameterError` on a box with walls, between which `IncompressibleFlow` moves, and for another truncation.

    **Good values:** `ETDRK2` or `ETDRK4` with max|u| dt < h. Resolved where the highest kept mode
    k = 2πN/(3L) is beyond 1.5 (ε/ν³)^(1/4), ε the rate at which energy is lost.

    **Notes:** start from ∇·u = 0 (`project_solenoidal`): exponential and IMEX methods take out what is not
    so, with explicit ones it stays and decays. Rates of other terms in the same integrator (forces,
    buoyancy, drag of particles) are projected like its own: their gradients are pressure. What another
    integrator of a splitting did to the velocity is projected before the next step of an exponential or IMEX
    method.
    In two dimensions `VorticityTransport` does the same with one field less.

    **Reference:** Basdevant, J. Comput. Phys. 50, 209 (1983); Orszag & Patterson, Phys. Rev. Lett.
    28, 76 (1972); Rogallo, NASA TM 81315 (1981), for the sphere.
    """

    viscosity: Float[Array, ""] = param()
    component: str | None = static(default=None)
    truncation: str = static(default="cube")

    def __check_init__(self):
        require_nonnegative(self, "viscosity")
        if self.truncation not in ("cube", "sphere"):
            raise ParameterError(f"truncation is 'cube' or 'sphere'; got {self.truncation!r}")

    @property
    def has_constraint(self) -> bool:
        return True

    def constrain_modes(self, field: Field, coefficients: Array) -> Array:
        _require_velocity(field)
        return _project(coefficients, field.grid)

    def symbol(self, field: Field) -> Array:
        _require_velocity(field)
        return -self.viscosity * square_wavenumber(field.grid)

    def nonlinear(self, clock: Clock, field: Field) -> Spectrum:
        del clock
        _require_velocity(field)
        grid, spectrum = field.grid, field.spectrum()
        kept = self._kept_modes(grid)
        # Truncated before the product and after it: (components, points) there, (entries, modes) back.
        u = spectrum.multiply(kept).field().data
        stress = _stress_matrix(grid.fft(_stress_entries(u)), grid.dimension)
        # By the derivative's symbol, not by the wavenumbers: of the shortest wave, whose sign is ambiguous,
        # it is 0.
        wavenumbers = [jnp.imag(derivative_symbol(grid, axis, 1)) for axis in range(grid.dimension)]
        stress_divergence = jnp.stack(
            [_divergence_of_row(row, wavenumbers, kept) for row in stress]
        )
        return spectrum.with_coefficients(-_project(stress_divergence, grid))

    def _kept_modes(self, grid: Grid) -> Array:
        if self.truncation == "cube":
            return grid.dealias_mask()

        # |n|/N < √2/3: products then alias at most along one axis at a time (Rogallo 1981). In whole numbers,
        # of at most 31 bits: modes on the edge do not depend on rounding.
        unit = min(math.lcm(*grid.shape), 2**14)

        def square(axis: int) -> Array | np.ndarray:
            size = unit / grid.shape[axis]
            return grid.map_modes(axis, lambda n: np.rint(9 * (n * size) ** 2).astype(np.int32))

        return jnp.asarray(sum(square(axis) for axis in range(grid.dimension)) < 2 * unit**2)


@explain_call
def project_solenoidal(velocity: Field) -> Field:
    """The part of a velocity that has no divergence: u − ∇∇⁻²∇·u, on axes that repeat."""
    _require_velocity(velocity)
    spectrum = velocity.spectrum()
    return spectrum.with_coefficients(_project(spectrum.coefficients, velocity.grid)).field()


def _stress_entries(u: Array) -> Array:
    """The entries of u u less its last diagonal entry times the unit matrix: the rest is pressure."""
    # A gradient drops out of the projection: u u − u_d² 1 has one entry less to transform (Basdevant
    # 1983). (a − b)(a + b) loses no digits where a² − b² would.
    if u.shape[0] == 2:
        return jnp.stack([(u[0] - u[1]) * (u[0] + u[1]), u[0] * u[1]])
    diagonal = [(u[i] - u[2]) * (u[i] + u[2]) for i in range(2)]
    return jnp.stack([*diagonal, u[0] * u[1], u[0] * u[2], u[1] * u[2]])


def _stress_matrix(products: Array, dimension: int) -> list[list[Array | None]]:
    """The same as a matrix; None for 0."""
    if dimension == 2:
        xx, xy = products[0], products[1]
        return [[xx, xy], [xy, None]]
    xx, yy, xy, xz, yz = (products[i] for i in range(5))
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, None]]


def _divergence_of_row(row: list[Array | None], wavenumbers: list[Array], kept: Array) -> Array:
    """Σ i kⱼ Tⱼ over the modes that are kept."""
    parts = [
        scale_array(part, jnp.where(kept, k, 0))
        for part, k in zip(row, wavenumbers, strict=True)
        if part is not None
    ]
    total = sum(parts[1:], parts[0])
    # Times i.
    return times_i(total)


def _project(v: Array, grid: Grid) -> Array:
    """v − k (k·v)/k²."""
    wavenumbers = [jnp.imag(derivative_symbol(grid, axis, 1)) for axis in range(grid.dimension)]
    first, *rest = (k**2 for k in wavenumbers)
    k2 = sum(rest, first)
    # The mean has no gradient part. The inner `where` keeps 1/0, and NaN with it, out of derivatives.
    inverse = jnp.where(k2 > 0, 1 / jnp.where(k2 > 0, k2, 1), 0)
    first, *rest = (scale_array(v[j], k) for j, k in enumerate(wavenumbers))
    along = scale_array(sum(rest, first), inverse)
    return jnp.stack([v[i] - scale_array(along, k) for i, k in enumerate(wavenumbers)])


def _require_velocity(field: Field) -> None:
    if not field.vector or field.grid.dimension < 2 or not field.is_real:
        raise ShapeError(
            "the Navier–Stokes equations move a real vector field on two or three axes (make one "
            f"with stack(…), or vector=True); got components {field.components} on "
            f"{field.grid.dimension}"
        )
    require_no_walls(field, "the Navier–Stokes equations")
