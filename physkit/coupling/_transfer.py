"""Interpolation and deposit: linear maps from fields to particles and back, each the other's transpose."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Inexact

from physkit.core import (
    DeclarationError,
    ParameterError,
    ShapeError,
    barrier_on_the_way_forward,
    explain_call,
    is_concrete,
    poison_where,
)
from physkit.fields import Field
from physkit.geometry import AXES, AbstractSpace, Boundaries, Box, Grid, Location, Mirror, Periodic
from physkit.particles import Particles

from ._exact_scatter import exact_scatter
from ._kernels import CIC, AbstractKernel
from ._stencil import (
    Gather,
    Layout,
    Scatter,
    grid_coordinates,
    require_same_precision,
)

# Lengths that differ by less, relatively, are those of one box; traced ones by more, since finite differences
# move the one without the other.
_SAME_BOX, _SAME_TRACED_BOX = 1e-5, 1e-3


@explain_call
def interpolate(
    field: Field, at: Float[Array, "n d"] | Particles, kernel: AbstractKernel | None = None
) -> Inexact[Array, "n ..."]:
    """A field's values at the positions of particles.

        u(x) = Σ_i W((x − x_i)/h) u_i

    Beyond walls the sum runs over the ghost points of the field's boundary; particles beyond a wall
    read the values on it. Derivatives with respect to positions are those of the kernel.

    **Arguments:**

    - `field`: of any location; its boundary must be known where there are walls.
    - `at`: particles; or positions, `[n d]`, length, while the grid is on one device. Folded where the grid
      repeats.
    - `kernel`: `Nearest()`, `CIC()` (if left out), `TSC()` or `PCS()`.

    **Returns:** `[n, *components]`; over devices 0 in rows that hold no particle.

    **Errors:** `ShapeError` for positions of another dimension; `ParameterError` for another precision,
    or for a field without boundary at a wall; `DeclarationError` for bare positions over devices.
    """
    points = Points.of(at, field.grid, "interpolate(field, particles)")
    return points.mask_empty(interpolate_at(field, points, kernel))


def interpolate_at(
    field: Field, points: "Points", kernel: AbstractKernel | None = None
) -> Inexact[Array, "n ..."]:
    """`interpolate`, where rows without a particle read some value."""
    position, kernel = points.position, kernel or CIC()
    require_same_precision(position, field.data, "the field's values")
    grid = field.grid
    x = grid_coordinates(grid, field.location, kernel, position)
    layout = Layout.of(grid, field.location, kernel, points.margin)
    # Computed once: else a GPU would choose between the field and its ghosts at every point that is read.
    padded = barrier_on_the_way_forward(_padded(field, layout.ghosts))
    # (components, *points with ghosts)
    padded = padded.reshape(-1, *layout.points)
    gather = Gather(layout)
    # Weights are real: real and imaginary parts are gathered by themselves.
    if field.is_real:
        values = gather(x, padded)
    else:
        values = jax.lax.complex(gather(x, padded.real), gather(x, padded.imag))
    return values.T.reshape(position.shape[0], *field.components)


def _padded(field: Field, ghosts: Sequence[tuple[int, int]]) -> Array:
    """`field.padded(ghosts)`; where all axes repeat on one device as one kernel of a GPU, not one a side."""
    grid = field.grid
    lead = field.data.ndim - grid.dimension
    sizes = zip(ghosts, field.data.shape[lead:], strict=True)
    if grid.space.comm.size > 1 or not all(grid.periodic) or any(max(w) > n for w, n in sizes):
        return field.padded(tuple(ghosts))
    return jnp.pad(field.data, [(0, 0)] * lead + list(ghosts), mode="wrap")


@explain_call
def deposit(
    values: ArrayLike,
    at: Float[Array, "n d"] | Particles,
    on: Grid | Field,
    kernel: AbstractKernel | None = None,
    *,
    location: Location | None = None,
    exact: bool = False,
) -> Field:
    """Deposit values of particles on a grid, as a density.

        ρ_i = Σ_p q_p W((x_p − x_i)/h) / V_i,   ∫ ρ dV = Σ_p q_p

    V_i is a cell's volume, half of it for points on a wall. What would fall beyond a wall is added to its
    mirror image inside, so that the sum is kept. For every field u that is periodic or mirrored at its
    walls (`Mirror`, `Neumann(0)`)

        ∫ u ρ dV = Σ_p q_p u(x_p),   u(x) = interpolate(u, x, kernel)

    **Arguments:**

    - `values`: q, `[n, *components]`: charges, masses, momenta; or one number for all. Over devices, what
      stands in rows that hold no particle is left out.
    - `at`: particles; or positions, `[n d]`, length, while the grid is on one device. Folded where the grid
      repeats, on the wall where beyond it.
    - `on`: a grid, or a field that says grid and location.
    - `kernel`: `Nearest()`, `CIC()` (if left out), `TSC()` or `PCS()`.
    - `location`: where on a grid; cell centers if left out.
    - `exact`: the same bits in any order of the particles (on a single device), at several times the cost.

    **Returns:** a field without a boundary of its own (`with_boundary` gives it one); a vector field where
    there are d components.

    **Errors:** `ShapeError` where values and positions disagree; `ParameterError` for two precisions;
    `DeclarationError` for bare positions over devices.
    """
    grid = on.grid if isinstance(on, Field) else on
    if location is None:
        location = on.location if isinstance(on, Field) else grid.cell
    points = Points.of(at, grid, "deposit(values, particles, grid)")
    return deposit_at(values, points, grid, location, kernel or CIC(), exact)


def deposit_at(
    values: ArrayLike,
    points: "Points",
    grid: Grid,
    location: Location,
    kernel: AbstractKernel,
    exact: bool,
) -> Field:
    """`deposit`, whose arguments are known to fit; empty rows of `values` may hold anything."""
    position = points.position
    values = jnp.asarray(values, position.dtype if jnp.ndim(values) == 0 else None)
    n = position.shape[0]
    if values.ndim == 0:
        values = jnp.broadcast_to(values, (n,))
    if values.shape[0] != n:
        raise ShapeError(f"{values.shape[0]} values for {n} positions: values are [n, *components]")
    require_same_precision(position, values, "values")
    _require_unshared_points(grid, location)
    values = points.mask_empty(values)
    x = grid_coordinates(grid, location, kernel, position)
    layout, components = Layout.of(grid, location, kernel, points.margin), values.shape[1:]
    rows = values.reshape(n, math.prod(components)).T
    # (components, points with ghosts): a particle near the edge of the block also adds to ghosts.
    padded = exact_scatter(layout, x, rows) if exact else Scatter(layout)(x, rows)
    total = fold_ghosts(grid, location, layout, padded.reshape(*components, *layout.points))
    density = total / grid.cell_volume.astype(total.dtype)
    # A point on a wall has half a cell: divide the amount there by half the volume.
    for weight in grid.quadrature_weights(location):
        if (weight != 1).any():
            shape = (1,) * len(components) + weight.shape
            density = density / weight.astype(total.dtype).reshape(shape)
    vector = components == (grid.dimension,)
    walls = {k: Mirror() for k, wraps in enumerate(grid.periodic) if not wraps}
    mirrored = Field(jnp.zeros_like(density), grid, location, walls, vector=vector)
    # A density has no boundary of its own, and what lies on walls is a part of the sum: no wall holds it.
    return mirrored.with_values(density)


@dataclass(frozen=True)
class Points:
    """Positions, which of them are a particle's, and how far they may be outside of a device's block.

    - `mask`: None where every row holds a particle.
    - `margin`: in widths of the block.
    """

    position: Float[Array, "n d"]
    mask: Bool[Array, " n"] | None
    margin: float

    @staticmethod
    def of(at: Float[Array, "n d"] | Particles, grid: Grid, call: str) -> "Points":
        """**Errors:** `DeclarationError` where positions alone do not say which rows hold a particle;
        `ParameterError` where particles and grid repeat at different lengths.
        """
        if isinstance(at, Particles):
            mask, margin, position = at.mask, at.migration_margin, at.position
            position = _in_box_of_grid(position, at.space, grid, call)
        else:
            mask, margin, position = None, 0.0, jnp.asarray(at)
        if mask is None and grid.space.comm.size > 1:
            # A device's arrays have rows without a particle, and it holds only some of the points.
            what = "particles that are not sharded" if isinstance(at, Particles) else "positions"
            raise DeclarationError(
                f"{call} got {what} on a grid that is sharded over devices: give it the particles, not their "
                "positions, as a component of the state in the grid's box; fixed points are frozen particles"
            )
        return Points(position, mask, margin)

    def mask_empty(self, x: Array) -> Array:
        """`x`, `[n …]`, with 0 where a row holds no particle."""
        if self.mask is None:
            return x
        return jnp.where(self.mask.reshape(-1, *(1,) * (x.ndim - 1)), x, 0)


def _in_box_of_grid(
    position: Float[Array, "n d"], space: AbstractSpace, grid: Grid, call: str
) -> Float[Array, "n d"]:
    """`position`; where the particles' box repeats at other lengths than the grid's, NaN inside of a trace.

    **Errors:** `ParameterError` for such boxes outside of a trace.
    """
    both = _common_axes(space, grid)
    if not both or is_concrete((space, grid.space)):
        require_box_of_grid(space, grid, call)
        return position
    mine, theirs = space.lengths, grid.space.lengths
    differs = jnp.abs(mine - theirs.astype(mine.dtype)) > _SAME_TRACED_BOX * mine
    return poison_where(position, jnp.any(differs[np.array(both)]))


def require_box_of_grid(space: AbstractSpace, grid: Grid, call: str) -> None:
    """**Errors:** `ParameterError` where particles repeat at other lengths than a grid, if both can be seen."""
    both = _common_axes(space, grid)
    if not both or not is_concrete((space, grid.space)):
        return
    box, mesh = np.asarray(space.lengths), np.asarray(grid.space.lengths)
    if not np.allclose(box[..., both], mesh[..., both], rtol=_SAME_BOX, atol=0):
        raise ParameterError(
            f"{call}: the particles' box is {box}, the grid's {mesh}: use one for both"
        )


def _common_axes(space: AbstractSpace, grid: Grid) -> list[int]:
    """The axes along which particles and a grid repeat."""
    # Open space repeats nowhere; other dimensions are refused where coordinates are made.
    if not isinstance(space, Box) or len(space.periodic) != grid.dimension:
        return []
    return [k for k in range(grid.dimension) if space.periodic[k] and grid.periodic[k]]


def _require_unshared_points(grid: Grid, location: Location) -> None:
    """**Errors:** `DeclarationError` for points on walls along an axis that is sharded over devices."""
    for k, includes_walls in enumerate(grid.includes_walls(location)):
        if includes_walls and grid.space.comm.axis_size(k) > 1:
            raise DeclarationError(
                f"points on walls along {AXES[k]} cannot be deposited on while that axis is sharded "
                "over devices: deposit at cell centers, or shard another axis"
            )


def mirrors(grid: Grid) -> Boundaries:
    """The boundaries by which ghosts of deposited values are folded: a mirror at every wall."""
    return tuple(
        (Periodic(), Periodic()) if wraps else (Mirror(), Mirror()) for wraps in grid.periodic
    )


def fold_ghosts(grid: Grid, location: Location, layout: Layout, padded: Array) -> Array:
    """The transpose of padding with mirrors: each ghost is added to the point that it is a copy of.

    Over devices, the transpose of the halo exchange sends ghosts back to the device that owns them.
    """
    components = padded.shape[: padded.ndim - grid.dimension]
    inside = jax.ShapeDtypeStruct((*components, *grid.local_shape_at(location)), padded.dtype)

    def pad(u: Array) -> Array:
        return grid.pad(u, layout.ghosts, mirrors(grid), location)

    (out,) = jax.linear_transpose(pad, inside)(padded)
    return out
