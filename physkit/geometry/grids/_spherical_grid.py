"""The sphere: points on circles of latitude, and spherical harmonics as modes."""

from typing import Any, Literal, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from physkit.core import (
    ParameterError,
    as_count,
    as_parameter,
    concrete_value,
    describe,
    einsum,
    scale_array,
    static,
    times_i,
)

from ..boundaries._parse_boundaries import Boundaries
from ..spaces._abstract_grid import AbstractGrid
from ..spaces._box import Box
from ..spaces._location import Location
from ..transforms._cosine_sine import Parities
from ..transforms._legendre import LegendreTables, legendre_tables
from ..transforms._orders import (
    first_order,
    from_orders,
    local_orders,
    num_local_orders,
    to_orders,
)
from ._grid import Grid, Width

Table = Literal["values", "zonal", "meridional"]


class SphericalGrid(AbstractGrid):
    """The surface of a sphere: Gauss latitudes, equal longitudes, spherical harmonics up to degree L.

        grid = SphericalGrid(6.371e6, 42)
        Field.from_function(grid, lambda longitude, latitude: jnp.sin(latitude))

        f(λ, φ) = Re Σₘ (2 − δₘ₀) Σₗ fₗᵐ P̄ₗᵐ(sin φ) e^{imλ},   0 ≤ m ≤ l ≤ L,   ∫ P̄² dμ = 1

    The first axis is longitude 0 ≤ λ < 2π, the second latitude −π/2 < φ < π/2, south first. There are no
    walls. Whatever works by the symbol of the Laplacian alone, −l(l + 1)/a², works as in the plane: diffusion,
    patterns, reactions, by exponential and implicit–explicit integrators. Products of two fields are free of
    aliasing. `velocity` and `vorticity_and_divergence` are the derivatives of flows.

    **Arguments:**

    - `radius`: a > 0, length.
    - `truncation`: L ≥ 1, the largest degree: waves as short as 2πa/L.

    The grid has N = (3L + 1)/2 latitudes, rounded up to an even number, and 2N longitudes.

    **Errors:** `ParameterError` for a radius that is not positive, a truncation below 1, and where derivatives
    along an axis, ghost cells or complex fields are asked for.

    **Notes:** harmonics reach everywhere, so that over devices transforms exchange parts of all of them: an
    order m lies on one device, with all of its latitudes. Cut latitudes, `devices=(1, n)`, for one exchange
    each way; three where longitudes are cut, too. The devices divide 2N and N.

    **Good values:** 42 (2.8°), 85 (1.4°), 170 (0.7°); transforms cost L³.

    **Reference:** Orszag, J. Atmos. Sci. 27, 890 (1970); Hack & Jakob, NCAR/TN-343+STR (1992).
    """

    space: Box
    shape: tuple[int, ...] = static()
    truncation: int = static()

    def __init__(self, radius: ArrayLike = 1.0, truncation: int = 42):
        truncation = as_count(truncation, "truncation", ParameterError)
        a = as_parameter(radius)
        known = concrete_value(a)
        if a.ndim or (known is not None and not known > 0):
            raise ParameterError(f"radius must be one positive number; got {describe(radius)}")
        latitudes = 2 * -(-(3 * truncation + 1) // 4)
        # Lambert's map: areas on the sphere are those of this box, 2πa · 2a = 4πa².
        box = Box((a if known is None else known) * np.asarray([2 * np.pi, 2.0], a.dtype))
        self.space, self.shape = box, (2 * latitudes, latitudes)
        self.truncation = truncation

    @property
    def radius(self) -> Float[Array, ""]:
        """a, length."""
        return self.space.lengths[1] / 2

    # --- points ---------------------------------------------------------------------------------

    @property
    def latitudes(self) -> Float[Array, " latitudes"]:
        """φ of this device's points, from south to north, radians."""
        return self.local(self._constant(np.arcsin(self._tables.sines))[None])[0]

    @property
    def longitudes(self) -> Float[Array, " longitudes"]:
        """λ of this device's points, radians."""
        angles = 2 * np.pi / self.shape[0] * np.arange(self.shape[0])
        return self.local(self._constant(angles)[:, None])[:, 0]

    @property
    def cell_volume(self) -> Float[Array, "1 latitudes"]:
        """Area of the cell around each point, by the weights of Gauss's rule: sums are exact."""
        share = self._constant(2 * np.pi / self.shape[0] * self._tables.weights)[None]
        return self.local(share) * self.radius**2

    def integrate(self, x: Array) -> Array:
        return self.sum(x * self.cell_volume.reshape([1] * (x.ndim - 2) + [1, -1]))

    def _coordinates_at(self, location: Location | None) -> tuple[Float[Array, "..."], ...]:
        self._require_points(location)
        return self.longitudes[:, None], self.latitudes[None]

    def cell_edges(self, axis: int) -> Float[Array, " corners"]:
        """Longitudes or latitudes of the cells' edges; between latitudes lie the cells' areas."""
        if axis == 0:
            edges = 2 * np.pi / self.shape[0] * (np.arange(self.shape[0] + 1) - 0.5)
        else:
            sines = np.concatenate([[-1.0], np.cumsum(self._tables.weights) - 1])
            edges = np.arcsin(np.clip(sines, -1, 1))
        count = self.local_shape[axis] + 1
        first = self.space.comm.axis_index(axis) * (count - 1)
        return jax.lax.dynamic_slice_in_dim(self._constant(edges), first, count)

    def image_spacing(self) -> np.ndarray:
        """Distances between longitudes and, on average, between latitudes: in images they are even."""
        return np.pi / np.asarray([self.shape[0] / 2, self.shape[1]])

    # --- harmonics ------------------------------------------------------------------------------

    def fft(self, x: Array) -> Array:
        """Coefficients fₗᵐ `[*components, m, l]` of real values `[*components, longitude, latitude]`.

        What is beyond degree L is left out. Over several devices each has some of the orders m, see `modes`.
        """
        self._require_real(not jnp.iscomplexobj(x))
        return self._analyze(self._fourier(x), "values")

    def ifft(self, coefficients: Array, *, real: bool = True) -> Array:
        """The values of these coefficients."""
        self._require_real(real)
        return self._from_fourier(self._synthesize(coefficients, "values"))

    def velocity(self, vorticity: Array, divergence: Array) -> Array:
        """The flow `[2, longitude, latitude]`, eastward and northward, of coefficients ζₗᵐ and δₗᵐ.

        u = (1/cos φ ∂χ/∂λ − ∂ψ/∂φ)/a,   v = (∂χ/∂φ + 1/cos φ ∂ψ/∂λ)/a,   ∇²ψ = ζ, ∇²χ = δ
        """
        # k² = l(l + 1)/a², and one derivative, which divides by a. The mean of ζ and δ is 0.
        k2 = self.square_wavenumber()
        inverse = jnp.where(k2 > 0, -1 / jnp.where(k2 > 0, k2, 1), 0) / self.radius
        potentials = scale_array(jnp.stack([vorticity, divergence]), inverse)
        zonal, meridional = (
            self._synthesize(potentials, "zonal"),
            self._synthesize(potentials, "meridional"),
        )
        u = times_i(zonal[1]) - meridional[0]
        v = meridional[1] + times_i(zonal[0])
        return self._from_fourier(jnp.stack([u, v]))

    def vorticity_and_divergence(self, velocity: Array) -> tuple[Array, Array]:
        """Coefficients ζₗᵐ and δₗᵐ of flows `[2, *components, longitude, latitude]`, eastward and northward.

            ζ = (∂v/∂λ − ∂(u cos φ)/∂φ)/(a cos φ),   δ = (∂u/∂λ + ∂(v cos φ)/∂φ)/(a cos φ)

        The derivatives are those of the harmonics: no value is divided by cos φ.
        """
        modes = scale_array(self._fourier(velocity), 1 / self.radius)
        zonal, meridional = self._analyze(modes, "zonal"), self._analyze(modes, "meridional")
        return times_i(zonal[1]) + meridional[0], times_i(zonal[0]) - meridional[1]

    def square_wavenumber(self, *, real: bool = True) -> Float[Array, "1 degrees"]:
        """l(l + 1)/a²: what −∇² makes of each harmonic."""
        degree = np.arange(self.truncation + 1)
        return self._constant(degree * (degree + 1))[None] / self.radius**2

    def modes(self, *, real: bool = True) -> tuple[Any, ...]:
        """m `[m, 1]` of this device's coefficients and l `[1, l]`; what fills up the last device has m > L."""
        comm, degrees = self.space.comm, np.arange(self.truncation + 1, dtype=np.int32)
        count = num_local_orders(comm, self.truncation)
        orders = first_order(comm, self.truncation) + np.arange(count, dtype=np.int32)
        return orders[:, None], degrees[None]

    def map_modes(self, axis: int, function: Any, *, real: bool = True) -> NoReturn:
        self._refuse("waves along one axis")

    def wavenumbers(self, *, real: bool = True) -> NoReturn:
        self._refuse("wavenumbers along an axis")

    def dealias_mask(self, *, real: bool = True) -> Bool[Array, "m l"]:
        """Whether a coefficient is kept: m ≤ l. Products of two fields are free of aliasing in all of them."""
        m, l = self.modes()
        return jnp.asarray(m <= l)

    def mode_multiplicity(self, *, real: bool = True) -> Any:
        m, l = self.modes()
        where = np.where if self.space.comm.size == 1 else jnp.where
        return where(m <= l, where(m > 0, 2, 1), 0)

    def psum_modes(self, x: Array) -> Array:
        """Σ over devices of `x`, which each has summed over its modes."""
        return self.space.comm.psum(x)

    def hermitian_symmetrize(self, coefficients: Array) -> Array:
        """Coefficients of real values: those with m = 0 are real, those with l < m are 0."""
        m, l = self.modes()
        real = jnp.where(m <= l, coefficients.real, 0)
        return jax.lax.complex(real, jnp.where((m <= l) & (m > 0), coefficients.imag, 0))

    # --- what a sphere does not have --------------------------------------------------------------

    @property
    def spacing(self) -> NoReturn:
        self._refuse("distances of points along an axis")

    def pad(
        self,
        x: Array,
        width: Width,
        boundary: Boundaries,
        location: Location | None = None,
        *,
        vector: bool = False,
    ) -> NoReturn:
        self._refuse("ghost cells for differences and interpolation")

    def transform(self, x: Array, parities: Parities) -> NoReturn:
        self._refuse("waves along one axis")

    def mode_phases(self, parities: Parities, function: Any = None) -> NoReturn:
        self._refuse("waves along one axis")

    def boundaries_at(
        self, t: ArrayLike, boundary: Boundaries, location: Location, parts: int = 0
    ) -> Boundaries:
        """`boundary`: a sphere has no walls."""
        del t, location, parts
        return boundary

    # --- inside ---------------------------------------------------------------------------------

    @property
    def _tables(self) -> LegendreTables:
        return legendre_tables(self.truncation, self.shape[1])

    def _constant(self, x: np.ndarray) -> Array:
        return jnp.asarray(x, self.space.lengths.dtype)

    def _fourier(self, x: Array) -> Array:
        """e^{imλ} coefficients `[…, m, latitude]` for m ≤ L, times 1/number of longitudes."""
        return to_orders(self.space.comm, x, self.truncation)

    def _from_fourier(self, modes: Array) -> Array:
        return from_orders(
            self.space.comm, modes, self.truncation, self.shape[0], self.local_shape[1]
        )

    def _analyze(self, modes: Array, table: Table) -> Array:
        """Σⱼ wⱼ tableₗᵐ(φⱼ) fᵐ(φⱼ): `[…, m, latitude]` → `[…, m, l]`."""
        weighted = getattr(self._tables, table) * self._tables.weights
        return self._contract("bmj,mlj->bml", modes, weighted)

    def _synthesize(self, coefficients: Array, table: Table) -> Array:
        """Σₗ tableₗᵐ(φⱼ) fₗᵐ: `[…, m, l]` → `[…, m, latitude]`."""
        return self._contract("bml,mlj->bmj", coefficients, getattr(self._tables, table))

    def _contract(self, subscripts: str, x: Array, table: np.ndarray) -> Array:
        """A product of complex numbers `[…, m, n]` with a real table, as one of real numbers."""
        parts = jnp.stack([x.real, x.imag])
        flat = parts.reshape(-1, *x.shape[-2:])
        # Rounded before a device takes its part: else programs in single precision would hold doubles.
        orders = local_orders(self.space.comm, table.astype(flat.dtype))
        out = einsum(subscripts, flat, jnp.asarray(orders))
        real, imaginary = out.reshape(2, *x.shape[:-2], *out.shape[1:])
        return jax.lax.complex(real, imaginary)

    def _require_points(self, location: Location | None) -> None:
        if location is not None and location != self.cell:
            self._refuse("points between those of the grid")

    def _require_real(self, real: bool) -> None:
        if not real:
            raise ParameterError("fields on a sphere are real: transform real and imaginary parts")

    def _refuse(self, what: str) -> NoReturn:
        raise ParameterError(
            f"a sphere has no {what}: take the Laplacian, field.spectrum().laplacian(), or grid.velocity and "
            "grid.vorticity_and_divergence"
        )


# What a field may lie on.
AnyGrid: TypeAlias = Grid | SphericalGrid
