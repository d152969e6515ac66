"""Whether solids are where a flow can see them, and given by a distance, before the first step."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import ParameterError, concrete_value, is_concrete, is_tracing, jit_once, warn
from physkit.geometry import (
    AXES,
    AbstractBoundary,
    Dirichlet,
    FixedPressure,
    Grid,
    NoSlip,
    Outflow,
)

from ._solids import AbstractSolid, surface_distance

_MOST_SOLID = 0.9  # of the box, above which its sign is in doubt


class _Counts(NamedTuple):
    """How many centers of cells are …

    - `inside` of the solid. `moving`: where its distance changes now.
    - `near`: within a cell of the surface. `slope`: the sum of sizes of the gradient there; `steep`, `flat`:
      where it is above 2, below ½.
    - `outside`: of the solid, at each side, `[2d]`.
    """

    inside: float
    moving: float
    near: float
    slope: float
    steep: float
    flat: float
    outside: np.ndarray


def check_solids(
    solids: Sequence[AbstractSolid],
    t: Float[Array, ""],
    grid: Grid,
    sides: Sequence[Sequence[AbstractBoundary] | None],
    *,
    by_distance: bool,
) -> None:
    """Compare solids with the box, where numbers can be seen. Warns of one that fills nearly all of it.

    - `sides`: of the flow, by axis.
    - `by_distance`: whether the flow near a surface is held by the number that the distance is.

    **Errors:** `ParameterError` for a solid at rest that covers no cell, one that leaves none, one that fills a
    side with fluid coming through, and one whose distance is none.
    """
    if is_tracing():
        return
    for solid in solids:
        if solid.moved_component is not None or not is_concrete((solid, grid, t)):
            continue
        name = type(solid).__name__
        totals = np.asarray(_count(solid, t, grid), float)
        found, cells = _Counts(*totals[:6], totals[6:].reshape(-1, 2)), math.prod(grid.shape)
        if found.inside == 0 and found.moving == 0:
            raise ParameterError(
                f"{name} covers no center of a cell: it is outside of the box, which goes from 0 to "
                f"{np.asarray(grid.space.lengths).tolist()}, or smaller than a cell"
            )
        if found.inside == cells:
            raise ParameterError(f"{name} fills the box and leaves no fluid: {_SIGN}")
        for axis, pair in enumerate(sides):
            for end, side in enumerate(pair or ()):
                if found.outside[axis, end] == 0 and _lets_fluid_through(side):
                    raise ParameterError(
                        f"{name} fills the side {AXES[axis]}_{('low', 'high')[end]}, where "
                        f"{type(side).__name__} moves the fluid: {_SIGN}"
                    )
        if by_distance and max(found.steep, found.flat) > 0.25 * found.near:
            raise ParameterError(
                f"the distance of {name} changes by {found.slope / found.near:.3g} per length near its "
                "surface, where a distance changes by 1: divide what vanishes there by the size of its gradient"
            )
        if found.inside > _MOST_SOLID * cells:
            warn(f"{name} fills {found.inside / cells:.0%} of the box: {_SIGN}")


_SIGN = "its distance is negative inside of the solid and positive in the fluid"


def _lets_fluid_through(side: AbstractBoundary) -> bool:
    """Whether a side drives fluid, or lets it pass."""
    if isinstance(side, NoSlip | Dirichlet):
        value = side.velocity if isinstance(side, NoSlip) else side.value
        number = concrete_value(value) if hasattr(value, "dtype") else None
        return number is None or bool(np.any(number != 0))
    return isinstance(side, Outflow | FixedPressure)


@jit_once
def _count(solid: AbstractSolid, t: Float[Array, ""], grid: Grid) -> Array:
    """The numbers of `_Counts`, in a row."""
    # One program with one sum: operation by operation, and sum by sum, each would be compiled by itself.
    x = tuple(grid.coordinates())

    def distance(t: Array, *x: Array) -> Array:
        image = solid.near_image(t, x, grid)
        found = jnp.asarray(surface_distance(solid, t, image), grid.spacing.dtype)
        return jnp.broadcast_to(found, grid.shape)

    zeros = [jnp.zeros_like(part) for part in (t, *x)]

    def along(k: int) -> Array:
        ones = [jnp.ones_like(z) if j == k else z for j, z in enumerate(zeros)]
        return jax.jvp(distance, (t, *x), tuple(ones))[1]

    here = distance(t, *x)
    slope = jnp.sqrt(sum(along(1 + k) ** 2 for k in range(grid.dimension)))
    near = jnp.abs(here) < slope * jnp.max(grid.spacing)
    inside = here <= 0
    near_slope = jnp.where(near, slope, 0)
    rows = [inside, along(0) != 0, near, near_slope, near & (slope > 2), near & (slope < 0.5)]
    for k, n in enumerate(grid.shape):
        rows += [~inside & grid.along_axis(k, np.arange(n) == end) for end in (0, n - 1)]
    cells = jnp.stack([row.astype(here.dtype) for row in rows])
    return jnp.sum(cells.reshape(len(rows), -1), axis=1)
