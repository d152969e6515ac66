"""The shallow-water equations on Arakawa's C grid."""

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
    static,
)
from physkit.geometry import Outflow, Periodic

from ..._field import Field
from ..._field_increment import FieldIncrement
from ...states._c_grid_shallow_water_state import CGridShallowWaterState


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
    - `beta`: ∂f/∂y, 1 / (length · time).
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

    **Reference:** Sadourny, J. Atmos. Sci. 32, 680 (1975); Arakawa & Lamb, Mon. Weather Rev. 109, 18
    (1981).
    """

    gravity: Float[Array, ""] = param(9.81)
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
        if self.conserves not in ("energy", "enstrophy"):
            raise ParameterError(f'conserves "energy" or "enstrophy"; got {self.conserves!r}')

    def rate(self, clock: Clock, state: State) -> Rate:
        water = self._water(state).at_time(clock.t)
        rates = dict(zip(water.parts(), self._rates(water), strict=True))
        rates = {k: FieldIncrement(x, getattr(water, k).location) for k, x in rates.items()}
        return rates if self.component is None else {self.component: rates}

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""]:
        """max Σ_k (|u_k| + √(gh))/h_k, 1 / time: dt times it is the Courant number."""
        del clock
        water = self._water(state)
        grid = water.grid
        wave = jnp.sqrt(self.gravity * grid.max(water.depth.data))
        fast = [grid.max(jnp.abs(u.data)) + wave for u in (water.velocity_x, water.velocity_y)]
        return fast[0] / grid.spacing[0] + fast[1] / grid.spacing[1]

    def energy(self, state: State) -> Float[Array, ""]:
        """∫ ½h(u² + v²) + ½g((h + b)² − b²) dA, as the discretization keeps it."""
        water = self._water(state)
        grid, (h, u, v) = water.grid, _padded(water)
        n, m = grid.local_shape
        U, V = _transports(h, u, v, n + 1, m + 1)
        kinetic = _sum(_cut(u, 1, n + 1, 1, m) * _cut(U, 0, n + 1, 1, m), 0)
        kinetic = kinetic + _sum(_cut(v, 1, n, 1, m + 1) * _cut(V, 1, n, 0, m + 1), 1)
        depth = water.depth.data
        potential = self.gravity * (0.5 * depth**2 + depth * self._ground(water))
        return grid.sum(0.25 * kinetic + potential) * grid.cell_volume

    def potential_vorticity(self, state: State) -> Field:
        """q = (f + βy + ∂v/∂x − ∂u/∂y)/h at the corners of cells."""
        water = self._water(state)
        n, m = water.grid.local_shape_at(water.grid.node)
        q = _cut(self._vorticity(water, *_padded(water)), 0, n, 0, m)
        return water.depth.with_values(q).replace(location=water.grid.node)

    # --- inside ---------------------------------------------------------------------------------

    def _rates(self, water: CGridShallowWaterState) -> tuple[Array, Array, Array]:
        """∂h/∂t, ∂u/∂t, ∂v/∂t; all of it from one layer of ghosts, laid once."""
        grid, (h, u, v) = water.grid, _padded(water)
        hx, hy = grid.spacing[0], grid.spacing[1]
        n, m = grid.local_shape
        nu, nv = water.velocity_x.data.shape[0], water.velocity_y.data.shape[1]
        U, V = _transports(h, u, v, n + 1, m + 1)
        q = self._vorticity(water, h, u, v)
        B = self._head(water, h, u, v, nu + 1, nv + 1)
        if self.conserves == "energy":
            at_nodes = _along_x(_cut(V, 0, nu + 1, 0, m + 1)) * _cut(q, 0, nu, 0, m + 1)
            turn_x = _along_y(at_nodes)
            at_nodes = _along_y(_cut(U, 0, n + 1, 0, nv + 1)) * _cut(q, 0, n + 1, 0, nv)
            turn_y = _along_x(at_nodes)
        else:
            turn_x = _along_y(_cut(q, 0, nu, 0, m + 1)) * _along_x(
                _along_y(_cut(V, 0, nu + 1, 0, m + 1))
            )
            turn_y = _along_x(_cut(q, 0, n + 1, 0, nv)) * _along_y(
                _along_x(_cut(U, 0, n + 1, 0, nv + 1))
            )
        du = turn_x - (_cut(B, 1, nu, 1, m) - _cut(B, 0, nu, 1, m)) * (1 / hx)
        dv = -turn_y - (_cut(B, 1, n, 1, nv) - _cut(B, 1, n, 0, nv)) * (1 / hy)
        du = du - self.drag * water.velocity_x.data
        dv = dv - self.drag * water.velocity_y.data
        if self.wind_x is not None:
            du = du + _stress(self.wind_x, du, water.velocity_x) / _along_x(
                _cut(h, 0, nu + 1, 1, m)
            )
        if self.wind_y is not None:
            dv = dv + _stress(self.wind_y, dv, water.velocity_y) / _along_y(
                _cut(h, 1, n, 0, nv + 1)
            )
        if self.viscosity is not None:
            du = du + self.viscosity * _laplacian(u, hx, hy)
            dv = dv + self.viscosity * _laplacian(v, hx, hy)
        dh = (_cut(U, 0, n, 1, m) - _cut(U, 1, n, 1, m)) * (1 / hx) + (
            _cut(V, 1, n, 0, m) - _cut(V, 1, n, 1, m)
        ) * (1 / hy)
        return dh, du, dv

    def _vorticity(self, water: CGridShallowWaterState, h: Array, u: Array, v: Array) -> Array:
        """q at the nodes 0 … n, 0 … m."""
        grid = water.grid
        n, m = grid.local_shape
        dvdx = _cut(v, 1, n + 1, 1, m + 1) - _cut(v, 0, n + 1, 1, m + 1)
        dudy = _cut(u, 1, n + 1, 1, m + 1) - _cut(u, 1, n + 1, 0, m + 1)
        # Where y repeats, the corners on the last row are those on the first.
        y = grid.cell_edges(1).astype(h.dtype)
        planetary = (self.coriolis + self.beta * (y - self.origin))[None]
        total = planetary + dvdx * (1 / grid.spacing[0]) - dudy * (1 / grid.spacing[1])
        return total / _along_x(_along_y(_cut(h, 0, n + 2, 0, m + 2)))

    def _head(
        self, water: CGridShallowWaterState, h: Array, u: Array, v: Array, rows: int, columns: int
    ) -> Array:
        """B in the cells −1 …"""
        u2 = _cut(u, 0, rows + 1, 0, columns) ** 2
        v2 = _cut(v, 0, rows, 0, columns + 1) ** 2
        surface = h
        if self.bed.ndim:
            ground = Field(self._ground(water), water.grid, None, _edges(water))
            surface = h + ground.padded(1)
        return self.gravity * _cut(surface, 0, rows, 0, columns) + 0.5 * (
            _along_x(u2) + _along_y(v2)
        )

    def _ground(self, water: CGridShallowWaterState) -> Array:
        if self.bed.ndim and self.bed.shape != water.grid.shape:
            raise ShapeError(
                f"a bed of shape {self.bed.shape} under a grid of {water.grid.shape} cells"
            )
        return jnp.broadcast_to(water.grid.local(self.bed), water.grid.local_shape)

    def _water(self, state: State) -> CGridShallowWaterState:
        water = get_component(state, self.component)
        if not isinstance(water, CGridShallowWaterState):
            raise ShapeError(
                f"ShallowWater moves CGridShallowWaterState; got {type(water).__name__}: "
                "CGridShallowWaterState.of(grid, depth, …)"
            )
        return water


def _padded(water: CGridShallowWaterState) -> tuple[Array, Array, Array]:
    return tuple(part.padded(1) for part in water.parts().values())


def _transports(h: Array, u: Array, v: Array, nu: int, nv: int) -> tuple[Array, Array]:
    """U on the faces 0 … nu − 1 (all rows with ghosts), V on the faces 0 … nv − 1."""
    U = _along_x(_cut(h, 0, nu + 1, 0, h.shape[1])) * _cut(u, 1, nu, 0, h.shape[1])
    V = _along_y(_cut(h, 0, h.shape[0], 0, nv + 1)) * _cut(v, 0, h.shape[0], 1, nv)
    return U, V


def _cut(x: Array, i: int, rows: int, j: int, columns: int) -> Array:
    return lax.slice(x, (i, j), (i + rows, j + columns))


def _along_x(x: Array) -> Array:
    n, m = x.shape
    return 0.5 * (_cut(x, 0, n - 1, 0, m) + _cut(x, 1, n - 1, 0, m))


def _along_y(x: Array) -> Array:
    n, m = x.shape
    return 0.5 * (_cut(x, 0, n, 0, m - 1) + _cut(x, 0, n, 1, m - 1))


def _sum(x: Array, axis: int) -> Array:
    n = x.shape[axis] - 1
    return lax.slice_in_dim(x, 0, n, axis=axis) + lax.slice_in_dim(x, 1, n + 1, axis=axis)


def _laplacian(x: Array, hx: Array, hy: Array) -> Array:
    n, m = x.shape[0] - 2, x.shape[1] - 2
    middle = 2 * _cut(x, 1, n, 1, m)
    along_x = _cut(x, 0, n, 1, m) - middle + _cut(x, 2, n, 1, m)
    along_y = _cut(x, 1, n, 0, m) - middle + _cut(x, 1, n, 2, m)
    return along_x * (1 / hx**2) + along_y * (1 / hy**2)


def _stress(stress: Array, like: Array, velocity: Field) -> Array:
    stress = velocity.grid.local(stress, velocity.location)
    return stress.reshape((1,) * (like.ndim - stress.ndim) + stress.shape)


def _edges(water: CGridShallowWaterState) -> dict[int, Outflow]:
    return {
        axis: Outflow()
        for axis, sides in enumerate(water.depth.boundary)
        if sides is None or not isinstance(sides[0], Periodic)
    }
