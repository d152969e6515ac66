"""The shallow-water equations on Arakawa's C grid."""

from dataclasses import KW_ONLY

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    ParameterError,
    Rate,
    ShapeError,
    State,
    get_component,
    param,
    recomputed,
    require_nonnegative,
    require_positive,
    static,
)
from physkit.geometry import Outflow, Periodic

from ..._field import Field
from ..._field_increment import FieldIncrement
from ...states._c_grid_shallow_water_state import CGridShallowWaterState
from .._requirements import local_wind, require_beta_plane


class ShallowWater(AbstractTendency):
    """A rotating layer of water of constant density, on a staggered grid, for `CGridShallowWaterState`.

        ∂u/∂t =  q V − ∂B/∂x − r u + τₓ/h + ν ∇²u
        ∂v/∂t = −q U − ∂B/∂y − r v + τ_y/h + ν ∇²v
        ∂h/∂t = −∂U/∂x − ∂V/∂y
        q = (f + βy + ∂v/∂x − ∂u/∂y)/h,  (U, V) = h(u, v),  B = g(h + b) + ½(u² + v²)

    Gravity and Rossby waves, geostrophic eddies, gyres. Second order. Mass is kept to rounding, water at
    rest over any ground stays at rest, and without friction the space discretization keeps the total
    energy (or, if asked, the potential enstrophy). For flows that fall dry or break, see `ShallowWaterFV`.

    **Arguments:**

    - `gravity`: g, length / time².
    - `coriolis`: f at y = `origin`, 1 / time.
    - `beta`: ∂f/∂y, 1 / (length · time); 0 where y repeats.
    - `bed`: b, height of the ground, at cell centers: a number or an array `[nx ny]`; length.
    - `drag`: r, linear friction at the ground, 1 / time.
    - `wind_x`, `wind_y`: τ/ρ, stress over density, length² / time²: numbers, or arrays that broadcast
      against the faces across x and across y (`[ny]` for a wind that changes with y).
    - `viscosity`: ν, length² / time.
    - `origin`: y where the Coriolis parameter is f.
    - `conserves`: `"energy"` or `"enstrophy"`.
    - `component`: the water's name, where the state has several components.

    **Good values:** `SSPRK3` or `RK4` with dt ≤ 1.4 / Σ_k (|u_k| + √(gh))/h_k (`CFLSubsteps` sees to that);
    `conserves="enstrophy"` for eddies at the size of a few cells.

    **Errors:** `ShapeError` for a bed or winds over other points, `ParameterError` for a β where y repeats.

    **Reference:** Sadourny, J. Atmos. Sci. 32, 680 (1975); Arakawa & Lamb, Mon. Weather Rev. 109, 18
    (1981).
    """

    gravity: Float[Array, ""] = param(9.81)
    _: KW_ONLY  # `ShallowWaterFV` has the same in another order
    coriolis: Float[Array, ""] = param(0.0)
    beta: Float[Array, ""] = param(0.0)
    bed: Float[Array, "..."] = param(0.0)
    drag: Float[Array, ""] = param(0.0)
    wind_x: Float[Array, "..."] | None = param(None)
    wind_y: Float[Array, "..."] | None = param(None)
    viscosity: Float[Array, ""] | None = param(None)
    origin: Float[Array, ""] = param(0.0)
    conserves: str = static(default="energy")
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "gravity")
        require_nonnegative(self, "drag", "viscosity")
        if self.conserves not in ("energy", "enstrophy"):
            raise ParameterError(f'conserves "energy" or "enstrophy"; got {self.conserves!r}')

    def check_state(self, state: State) -> None:
        require_beta_plane(self.beta, self._require_water(state).grid)

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        water = self._require_water(state)
        rates = dict(zip(water.parts(), recomputed(ShallowWater._rates)(self, water), strict=True))
        rates = {k: FieldIncrement(x, getattr(water, k).location) for k, x in rates.items()}
        return rates if self.component is None else {self.component: rates}

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""]:
        """max Σ_k (|u_k| + √(gh))/h_k, 1 / time: dt times it is the Courant number."""
        del clock
        water = self._require_water(state)
        grid = water.grid
        wave = jnp.sqrt(self.gravity * grid.max(water.depth.data))
        fast = [grid.max(jnp.abs(u.data)) + wave for u in (water.velocity_x, water.velocity_y)]
        return fast[0] / grid.spacing[0] + fast[1] / grid.spacing[1]

    def energy(self, state: State) -> Float[Array, ""]:
        """∫ ½h(u² + v²) + ½g((h + b)² − b²) dA, as the discretization keeps it."""
        water = self._require_water(state)
        grid, (h, u, v) = water.grid, _pad_parts(water)
        n, m = grid.local_shape
        U, V = _transports(h, u, v, n + 1, m + 1)
        # ½h(u² + v²) as ½Uu + ½Vv, half of each face's to either cell: this sum the rates keep.
        kinetic = _sum_pairs(_window(u, 1, n + 1, 1, m) * _window(U, 0, n + 1, 1, m), 0)
        kinetic = kinetic + _sum_pairs(_window(v, 1, n, 1, m + 1) * _window(V, 1, n, 0, m + 1), 1)
        depth = water.depth.data
        potential = self.gravity * (0.5 * depth**2 + depth * self._ground_height(water))
        return grid.sum(0.25 * kinetic + potential) * grid.cell_volume

    def potential_vorticity(self, state: State) -> Field:
        """q = (f + βy + ∂v/∂x − ∂u/∂y)/h at the corners of cells."""
        water = self._require_water(state)
        n, m = water.grid.local_shape_at(water.grid.node)
        q = _window(self._vorticity(water, *_pad_parts(water)), 0, n, 0, m)
        return water.depth.with_values(q, location=water.grid.node)

    # --- inside ---------------------------------------------------------------------------------

    def _rates(self, water: CGridShallowWaterState) -> tuple[Array, Array, Array]:
        """∂h/∂t, ∂u/∂t, ∂v/∂t, from one layer of ghost cells, which devices exchange once."""
        grid, (h, u, v) = water.grid, _pad_parts(water)
        hx, hy = grid.spacing[0], grid.spacing[1]
        n, m = grid.local_shape
        nu, nv = water.velocity_x.data.shape[0], water.velocity_y.data.shape[1]
        U, V = _transports(h, u, v, n + 1, m + 1)
        q = self._vorticity(water, h, u, v)
        B = self._bernoulli(water, h, u, v, nu + 1, nv + 1)
        # Which product is averaged decides what is conserved (Sadourny 1975): energy by mean(q · mean V),
        # potential enstrophy by mean(q) · mean(V).
        if self.conserves == "energy":
            transport_times_q = _mean_x(_window(V, 0, nu + 1, 0, m + 1)) * _window(
                q, 0, nu, 0, m + 1
            )
            rotation_x = _mean_y(transport_times_q)
            transport_times_q = _mean_y(_window(U, 0, n + 1, 0, nv + 1)) * _window(
                q, 0, n + 1, 0, nv
            )
            rotation_y = _mean_x(transport_times_q)
        else:
            rotation_x = _mean_y(_window(q, 0, nu, 0, m + 1)) * _mean_x(
                _mean_y(_window(V, 0, nu + 1, 0, m + 1))
            )
            rotation_y = _mean_x(_window(q, 0, n + 1, 0, nv)) * _mean_y(
                _mean_x(_window(U, 0, n + 1, 0, nv + 1))
            )
        # Bernoulli's function starts one cell before the domain, so that faces on walls have both sides.
        du = rotation_x - (_window(B, 1, nu, 1, m) - _window(B, 0, nu, 1, m)) * (1 / hx)
        dv = -rotation_y - (_window(B, 1, n, 1, nv) - _window(B, 1, n, 0, nv)) * (1 / hy)
        du = du - self.drag * water.velocity_x.data
        dv = dv - self.drag * water.velocity_y.data
        if self.wind_x is not None:
            du = du + local_wind(
                "wind_x", self.wind_x, water.grid, water.velocity_x.location
            ) / _mean_x(_window(h, 0, nu + 1, 1, m))
        if self.wind_y is not None:
            dv = dv + local_wind(
                "wind_y", self.wind_y, water.grid, water.velocity_y.location
            ) / _mean_y(_window(h, 1, n, 0, nv + 1))
        if self.viscosity is not None:
            du = du + self.viscosity * _laplacian(u, hx, hy)
            dv = dv + self.viscosity * _laplacian(v, hx, hy)
        # −∂U/∂x − ∂V/∂y: what leaves a cell enters the next, so that mass is kept to rounding.
        dh = (_window(U, 0, n, 1, m) - _window(U, 1, n, 1, m)) * (1 / hx) + (
            _window(V, 1, n, 0, m) - _window(V, 1, n, 1, m)
        ) * (1 / hy)
        return dh, du, dv

    def _vorticity(self, water: CGridShallowWaterState, h: Array, u: Array, v: Array) -> Array:
        """q at the nodes 0 … n, 0 … m."""
        grid = water.grid
        n, m = grid.local_shape
        dvdx = _window(v, 1, n + 1, 1, m + 1) - _window(v, 0, n + 1, 1, m + 1)
        dudy = _window(u, 1, n + 1, 1, m + 1) - _window(u, 1, n + 1, 0, m + 1)
        # Where y repeats, the corners on the last row are those on the first.
        y = grid.cell_edges(1).astype(h.dtype)
        planetary = (self.coriolis + self.beta * (y - self.origin))[None]
        # Depth at a corner: the mean of four cells.
        total = planetary + dvdx * (1 / grid.spacing[0]) - dudy * (1 / grid.spacing[1])
        return total / _mean_x(_mean_y(_window(h, 0, n + 2, 0, m + 2)))

    def _bernoulli(
        self, water: CGridShallowWaterState, h: Array, u: Array, v: Array, rows: int, columns: int
    ) -> Array:
        """B in the cells −1 …"""
        u2 = _window(u, 0, rows + 1, 0, columns) ** 2
        v2 = _window(v, 0, rows, 0, columns + 1) ** 2
        # A bed that is one number makes no slope: it is left out.
        surface = h
        if self.bed.ndim:
            ground = Field(self._ground_height(water), water.grid, None, _ground_boundary(water))
            surface = h + ground.padded(1)
        return self.gravity * _window(surface, 0, rows, 0, columns) + 0.5 * (
            _mean_x(u2) + _mean_y(v2)
        )

    def _ground_height(self, water: CGridShallowWaterState) -> Array:
        if self.bed.ndim and self.bed.shape != water.grid.shape:
            raise ShapeError(
                f"a bed of shape {self.bed.shape} under a grid of {water.grid.shape} cells"
            )
        return jnp.broadcast_to(water.grid.local(self.bed), water.grid.local_shape)

    def _require_water(self, state: State) -> CGridShallowWaterState:
        water = get_component(state, self.component)
        if not isinstance(water, CGridShallowWaterState):
            raise ShapeError(
                f"ShallowWater moves CGridShallowWaterState; got {type(water).__name__}: "
                "CGridShallowWaterState.of(grid, depth, …)"
            )
        return water


def _pad_parts(water: CGridShallowWaterState) -> tuple[Array, Array, Array]:
    return tuple(part.padded(1) for part in water.parts().values())


def _transports(h: Array, u: Array, v: Array, nu: int, nv: int) -> tuple[Array, Array]:
    """U on the faces 0 … nu − 1 (all rows with ghosts), V on the faces 0 … nv − 1."""
    U = _mean_x(_window(h, 0, nu + 1, 0, h.shape[1])) * _window(u, 1, nu, 0, h.shape[1])
    V = _mean_y(_window(h, 0, h.shape[0], 0, nv + 1)) * _window(v, 0, h.shape[0], 1, nv)
    return U, V


def _window(x: Array, i: int, rows: int, j: int, columns: int) -> Array:
    return lax.slice(x, (i, j), (i + rows, j + columns))


def _mean_x(x: Array) -> Array:
    n, m = x.shape
    return 0.5 * (_window(x, 0, n - 1, 0, m) + _window(x, 1, n - 1, 0, m))


def _mean_y(x: Array) -> Array:
    n, m = x.shape
    return 0.5 * (_window(x, 0, n, 0, m - 1) + _window(x, 0, n, 1, m - 1))


def _sum_pairs(x: Array, axis: int) -> Array:
    n = x.shape[axis] - 1
    return lax.slice_in_dim(x, 0, n, axis=axis) + lax.slice_in_dim(x, 1, n + 1, axis=axis)


def _laplacian(x: Array, hx: Array, hy: Array) -> Array:
    n, m = x.shape[0] - 2, x.shape[1] - 2
    middle = 2 * _window(x, 1, n, 1, m)
    along_x = _window(x, 0, n, 1, m) - middle + _window(x, 2, n, 1, m)
    along_y = _window(x, 1, n, 0, m) - middle + _window(x, 1, n, 2, m)
    return along_x * (1 / hx**2) + along_y * (1 / hy**2)


def _ground_boundary(water: CGridShallowWaterState) -> dict[int, Outflow]:
    return {
        axis: Outflow()
        for axis, sides in enumerate(water.depth.boundary)
        if sides is None or not isinstance(sides[0], Periodic)
    }
