"""Shallow water over ground that may fall dry."""

import math
from dataclasses import KW_ONLY
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    PyTree,
    Rate,
    ShapeError,
    State,
    concrete_value,
    get_component,
    param,
    recomputed,
    replace_fields,
    require_nonnegative,
    require_positive,
    safe_maximum,
    safe_minimum,
    safe_sqrt,
    static,
)
from physkit.geometry import AbstractBoundary, Mirror, Outflow
from physkit.native import (
    MapStencil,
    NotTranslatableError,
    map_on_gpus,
    map_stencil,
    native_or_xla,
)

from ..._field import Field
from ..._field_increment import FieldIncrement
from ..._ghost_widths import ghost_widths
from ...finite_volume import (
    HLLC,
    MUSCL,
    AbstractConservationLaw,
    AbstractReconstruction,
    AbstractRiemannSolver,
    Variables,
)
from ...finite_volume._faces import waves_are_local
from ...finite_volume._reconstruction import edges_to_faces
from ...finite_volume._variables import compute_once
from ...states._shallow_water_state import ShallowWaterState
from ...stencils._computed_once import computed_once
from ...stencils._map_faces import map_faces
from .._requirements import require_beta_plane

_DRY_FRACTION = 1e-6  # of the deepest water, where `dry` is left out


class ShallowWaterFV(AbstractConservationLaw):
    """Shallow water by finite volumes, with bores and moving shores, for `ShallowWaterState`.

        ∂h/∂t + ∇·(hu) = 0
        ∂(hu)/∂t + ∇·(huu + ½gh²) = −gh∇b − (f + βy) ẑ×hu − r hu + τ

    Depths stay positive, water at rest stays at rest over any ground, islands and shores included, and
    mass is kept to rounding. On a line (f = β = 0) or in a plane. For flows in balance with rotation, which
    never fall dry, `ShallowWater` is more accurate and faster.

    **Arguments:**

    - `gravity`: g, length / time².
    - `bed`: b, height of the ground at cell centers: a number or an array like the grid; length.
    - `coriolis`, `beta`: f at y = `origin`, and ∂f/∂y.
    - `drag`: r, linear friction, 1 / time.
    - `wind`: τ/ρ, stress over density, length² / time²: `[d]`, or an array `[d, *points]`; None for calm.
    - `dry`: depth below which water hardly moves, length; a millionth of the deepest water at each instant
      if left out.
    - `origin`: y where the Coriolis parameter is f.
    - `riemann`: `HLLC()`, `HLL()`, `Rusanov()`.
    - `reconstruction`: `MUSCL(limiter)` or `PiecewiseConstant()`.
    - `component`: the water's name, where the state has several components.

    **Good values:** `SSPRK2` with a Courant number of 0.25 in the plane, 0.45 on a line (`CFLSubsteps`); `dry`
    at most 10⁻⁴ of the depth.

    **Reference:** Audusse, Bouchut, Bristeau, Klein & Perthame, SIAM J. Sci. Comput. 25, 2050 (2004);
    velocities in thin layers: Kurganov & Petrova, Commun. Math. Sci. 5, 133 (2007), eq. 2.17.
    """

    gravity: Float[Array, ""] = param(9.81)
    _: KW_ONLY  # `ShallowWater` has the same in another order
    bed: Float[Array, "..."] = param(0.0)
    coriolis: Float[Array, ""] = param(0.0)
    beta: Float[Array, ""] = param(0.0)
    drag: Float[Array, ""] = param(0.0)
    wind: Float[Array, "..."] | None = param(None)
    dry: Float[Array, ""] | None = param(None)
    origin: Float[Array, ""] = param(0.0)
    riemann: AbstractRiemannSolver = HLLC()
    reconstruction: AbstractReconstruction = MUSCL()
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "gravity", "dry")
        require_nonnegative(self, "drag")
        scheme = self.reconstruction
        if scheme.is_high_order or scheme.of_points or not scheme.uses_primitive:
            raise ShapeError(
                f"{type(scheme).__name__} does not keep depths positive; take MUSCL() or "
                "PiecewiseConstant()"
            )

    # --- the law --------------------------------------------------------------------------------

    def primitive(self, conserved: Variables) -> Variables:
        depth, *momentum = conserved
        # m/h, without the division by nothing where h is below `dry` (Kurganov & Petrova, eq. 2.17).
        dry = self._dry_depth(jnp.max(depth)) if self.dry is None else self.dry
        deep = safe_maximum(depth, dry)
        # By the quotient of depths: fourth powers of thin layers themselves are 0 in single precision.
        part = depth / deep
        inverse_depth = math.sqrt(2) * part / (deep * jnp.sqrt(1 + part**4))
        return depth, *(m * inverse_depth.astype(m.dtype) for m in momentum)

    def conserved(self, primitive: Variables) -> Variables:
        depth, *velocity = primitive
        return depth, *(depth * u for u in velocity)

    def flux(self, values: Variables, axis: int) -> Variables:
        depth, *velocity = values
        mass = depth * velocity[axis]
        momentum = [mass * u for u in velocity]
        momentum[axis] = momentum[axis] + 0.5 * self.gravity * depth**2
        return mass, *momentum

    def wave_speeds(
        self, values: Variables, axis: int
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        u, c = values[1 + axis], safe_sqrt(self.gravity * values[0])
        return u - c, u + c

    def signal_speeds(
        self, left: Variables, right: Variables, axis: int
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        a, b = (safe_sqrt(self.gravity * side[0]) for side in (left, right))
        u, v = left[1 + axis], right[1 + axis]
        # Onto dry ground a front runs at u ± 2c.
        slow = jnp.where(left[0] > 0, safe_minimum(u - a, v - b), v - 2 * b)
        fast = jnp.where(right[0] > 0, safe_maximum(u + a, v + b), u + 2 * a)
        return jnp.where(right[0] > 0, slow, u - a), jnp.where(left[0] > 0, fast, v + b)

    def contact_fluxes(
        self, left: Variables, right: Variables, slow: Array, fast: Array, axis: int
    ) -> tuple[Array, Variables, Variables]:
        # Mass and normal momentum as in `HLL`: the contact of shallow water carries only the velocity along
        # the face. The sign of the mass flux says which side's.
        slow, fast = safe_minimum(slow, 0), safe_maximum(fast, 0)
        speed_range = fast - slow
        speed_range = jnp.where(speed_range > 0, speed_range, 1)
        drift, mixing = 0.5 * (fast + slow) / speed_range, slow * fast / speed_range
        f, g = self.flux(left, axis), self.flux(right, axis)
        u, v = self.conserved(left), self.conserved(right)

        def hll_flux(k: int) -> Array:
            return 0.5 * (f[k] + g[k]) - (drift * (g[k] - f[k]) - mixing * (v[k] - u[k]))

        mass, normal = hll_flux(0), hll_flux(1 + axis)

        def with_velocity_of(side: Variables) -> Variables:
            momentum = [mass * w for w in side[1:]]
            momentum[axis] = normal
            return mass, *momentum

        return mass, with_velocity_of(left), with_velocity_of(right)

    # --- its rate -------------------------------------------------------------------------------

    def check_state(self, state: State) -> None:
        super().check_state(state)
        water = self._require_water(state)
        numbers = [concrete_value(x) for x in (self.coriolis, self.beta)]
        turns = any(x is not None and np.any(x != 0) for x in numbers)
        if water.grid.dimension == 1 and turns:
            raise ShapeError("coriolis and beta turn water in the plane; on a line leave them out")
        if water.grid.dimension == 2:
            require_beta_plane(self.beta, water.grid)

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""]:
        law = self._with_dry_depth(self._require_water(state))
        return super(ShallowWaterFV, law).max_signal_rate(clock, state)

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        water = compute_once(self._require_water(state))
        return recomputed(ShallowWaterFV._rate)(self._with_dry_depth(water), water)

    def _rate(self, water: ShallowWaterState) -> Rate:
        total: list[Array] = []
        for axis in range(water.grid.dimension):
            parts = self._rates_along(water, axis)
            total = [a + b for a, b in zip(total, parts, strict=True)] if total else parts
        depth, *momentum = total
        m = water.momentum.data
        # (axes, points).
        momentum_rate = jnp.stack(momentum) - self.drag * m
        if water.grid.dimension == 2:
            y = water.grid.coordinates()[1]
            f = self.coriolis + self.beta * (y - self.origin)
            momentum_rate = momentum_rate + jnp.stack([f * m[1], -f * m[0]])
        if self.wind is not None:
            h = water.depth.data
            wind = self.wind.reshape(self.wind.shape + (1,) * (m.ndim - self.wind.ndim))
            wind = water.grid.local(wind)
            # The wind finds no hold where there is no water.
            momentum_rate = momentum_rate + wind * (h / (h + self.dry))[None]
        place = water.depth.location
        rates = {
            "depth": FieldIncrement(depth, place),
            "momentum": FieldIncrement(momentum_rate, place),
        }
        return rates if self.component is None else {self.component: rates}

    def _with_dry_depth(self, water: ShallowWaterState) -> "ShallowWaterFV":
        """This law with a `dry` that every device takes the same."""
        if self.dry is not None:
            return self
        deepest = water.grid.max(water.depth.data)
        return replace_fields(self, {"dry": self._dry_depth(deepest)})

    @staticmethod
    def _dry_depth(deepest: Float[Array, ""]) -> Float[Array, ""]:
        # Without any water any depth will do; and a threshold is no physics to differentiate.
        return _DRY_FRACTION * lax.stop_gradient(jnp.where(deepest > 0, deepest, 1))

    def _rates_along(self, water: ShallowWaterState, axis: int) -> list[Array]:
        """−∂F/∂x and the slope of the ground along one axis, so that they balance at rest."""
        grid = water.grid
        width = ghost_widths(axis, grid.dimension, self.reconstruction.width)
        h = water.depth.padded(width)
        m = water.momentum.padded(width)
        ground = self._ground_field(water).padded(width)
        _, *u = self.primitive((h, *(m[k] for k in range(grid.dimension))))
        # Depth h and surface s = h + b are reconstructed, and the ground is their difference: water at rest
        # has a flat surface at every edge, and limited depths stay positive (Audusse et al. 2004).
        native, cuda = (
            partial(self._faces_in_one_pass, by, axis) for by in (map_stencil, map_on_gpus)
        )
        by_xla = partial(self._faces_by_xla, axis)
        values = h, h + ground, *u
        if waves_are_local(self, grid.dimension, (h, *m), 0, None):
            out = native_or_xla(native, by_xla, values, cuda=cuda)
        else:
            out = by_xla(values)
        *fluxes, step_l, step_r, slope = out
        n = grid.local_shape[axis]

        def window(x: Array, j: int) -> Array:
            """Of n + 1 faces those below (0) or above (1) each cell."""
            return lax.slice_in_dim(x, j, j + n, axis=axis)

        out = [window(f, 0) - window(f, 1) for f in fluxes]
        # At rest the steps, the slope and the fluxes balance.
        inner = window(slope, 0)
        out[1 + axis] = out[1 + axis] + ((window(step_r, 0) - window(step_l, 1)) + inner)
        return [x * (1 / grid.spacing[axis]) for x in out]

    def _faces_by_xla(self, axis: int, values: Variables) -> Variables:
        """Fluxes and steps as of `_meet`, and `_slope` of the cell above, for all faces across an axis.

        `values`: depth, surface and velocities with their ghosts.
        """
        scheme = self.reconstruction
        edges = [scheme.edges(*scheme.stencil(x, axis)) for x in values]
        pairs = [edges_to_faces(low, high, axis) for low, high in edges]
        below, above = (tuple(pair[side] for pair in pairs) for side in (0, 1))
        *fluxes, step_l, step_r = self._meet(below, above, axis)
        slope = self._slope(*edges[:2])
        slope = lax.slice_in_dim(slope, 1, slope.shape[axis], axis=axis)
        # Computed once, not again in each of the two cells that they flow between.
        return *computed_once(fluxes), step_l, step_r, slope

    def _faces_in_one_pass(self, by: MapStencil, axis: int, values: Variables) -> Variables:
        """The same by native code, or by a kernel of a GPU."""
        # Only what faces depend on, of a few numbers.
        law = replace_fields(self, {"bed": jnp.zeros_like(self.gravity), "wind": None})
        counts = [2 * self.reconstruction.width] * len(values)
        try:
            return map_faces(_faces_of_cells, values, counts, (law, axis), axis, by)
        except NotTranslatableError:
            return self._faces_by_xla(axis, values)

    def _meet(self, below: Variables, above: Variables, axis: int) -> Variables:
        """Fluxes, and what the water that the ground's step holds back presses, below and above faces.

        `below`, `above`: depth, surface and velocities.
        """
        (hl, sl, *ul), (hr, sr, *ur) = below, above
        # Hydrostatic reconstruction: the ground at a face is its higher side.
        sill = safe_maximum(sl - hl, sr - hr)
        # What stands above the higher side of the step is what meets.
        over_l, over_r = safe_maximum(sl - sill, 0), safe_maximum(sr - sill, 0)
        fluxes = self.riemann.flux(self, (over_l, *ul), (over_r, *ur), axis)
        half = 0.5 * self.gravity
        return *fluxes, half * (hl**2 - over_l**2), half * (hr**2 - over_r**2)

    def _slope(self, depth: tuple[Array, Array], surface: tuple[Array, Array]) -> Array:
        """What the ground's slope inside of cells presses, from the values at their two edges."""
        (h_low, h_high), (s_low, s_high) = depth, surface
        return 0.5 * self.gravity * (h_low + h_high) * ((s_low - h_low) - (s_high - h_high))

    def _ground_field(self, water: ShallowWaterState) -> Field:
        grid = water.grid
        if self.bed.ndim and self.bed.shape != grid.shape:
            raise ShapeError(f"a bed of shape {self.bed.shape} under a grid of {grid.shape} cells")

        # Beyond a wall the ground is its mirror image, as the water is; beyond an open side it goes on level.
        def bed_boundary(side: AbstractBoundary) -> AbstractBoundary:
            return Mirror() if isinstance(side, Mirror) else Outflow()

        walls = {
            axis: tuple(bed_boundary(side) for side in sides)
            for axis, sides in enumerate(water.depth.boundary)
            if sides is not None and not grid.periodic[axis]
        }
        return Field(jnp.broadcast_to(grid.local(self.bed), grid.local_shape), grid, None, walls)

    def _require_water(self, state: State) -> ShallowWaterState:
        water = get_component(state, self.component)
        if not isinstance(water, ShallowWaterState):
            raise ShapeError(
                f"ShallowWaterFV moves a ShallowWaterState; got {type(water).__name__}. Make one with "
                "ShallowWaterState.of(grid, depth, …)"
            )
        return water


def _faces_of_cells(cells: list[list[Array]], context: PyTree) -> Variables:
    """Fluxes and steps as of `_meet`, and `_slope` of the cell above, from the cells around a face."""
    law, axis = context
    scheme = law.reconstruction
    below = tuple(scheme.edges(*x[:-1])[1] for x in cells)
    edges = [scheme.edges(*x[1:]) for x in cells]
    above = tuple(low for low, _ in edges)
    return *law._meet(below, above, axis), law._slope(*edges[:2])
