"""What some equations ask of a field."""

import numpy as np
from jaxtyping import Array

from physkit.core import ParameterError, ShapeError, concrete_value
from physkit.geometry import AXES, AnyGrid, Grid, Location

from .._field import Field
from ..finite_volume._reconstruction import AbstractReconstruction
from ..operators import AbstractScheme


def decay_of_shortest_waves(
    diffusivity: Array, grid: AnyGrid, scheme: AbstractScheme
) -> float | None:
    """−ν Σ_k max|∂²/∂x_k²|, for `stiffest_rate`; None where numbers cannot be seen."""
    nu, spacing = concrete_value(diffusivity), concrete_value(grid.spacing)
    largest = scheme.largest_symbol(2)
    if nu is None or spacing is None or largest is None:
        return None
    return -float(np.max(nu)) * largest * float(np.sum(1 / np.asarray(spacing, float) ** 2))


def as_tuple(given: object) -> tuple:
    """Media, sources and their like: one by itself, or several."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def require_beta_plane(beta: Array, grid: AnyGrid) -> None:
    """**Errors:** `ParameterError` for a Coriolis parameter f + βy on a grid that repeats along y."""
    number = concrete_value(beta)
    if grid.periodic[1] and number is not None and np.any(number != 0):
        raise ParameterError(
            f"with beta={float(number):.6g} the Coriolis parameter f + βy would jump where the box repeats "
            "along y: put walls there, Box(lengths, periodic=(True, False)), or leave beta out"
        )


def local_wind(name: str, stress: Array, grid: Grid, faces: Location) -> Array:
    """The stress of a wind on faces of cells in the plane, `[n m]` or with 1 in the place of either.

    Given for the whole domain; each device takes its own part.

    **Errors:** `ShapeError` for a shape that does not broadcast against these faces.
    """
    given, on_walls = stress.shape, grid.includes_walls(faces)
    n, m = (cells + more for cells, more in zip(grid.shape, on_walls, strict=True))
    # Missing leading axes, as of `[ny]` for a wind that changes with y, are of length one.
    shape = (1,) * (2 - stress.ndim) + given
    if len(shape) != 2 or shape[0] not in (1, n) or shape[1] not in (1, m):
        raise ShapeError(
            f"{name} is a number, [{m}] along y or [{n}, {m}], for the faces that it drives; got shape {given}"
        )
    return grid.local(stress.reshape(shape), faces)


def require_one_dimension(field: Field, what: str) -> None:
    """**Errors:** `ShapeError` unless the field has one axis of space."""
    if field.grid.dimension != 1:
        raise ShapeError(f"{what} is one on a line; this grid has {field.grid.dimension} axes")


def require_components(field: Field, count: int, what: str) -> None:
    """**Errors:** `ShapeError` unless the field has `count` components, and they are no vector."""
    if field.components != (count,):
        raise ShapeError(
            f"{what} moves a field with {count} components, data [{count}, *points]; this one has "
            f"components {field.components}"
        )


def require_no_walls(field: Field, what: str) -> None:
    """**Errors:** `ParameterError` on a box with walls, which names the flows that there are between walls."""
    walls = [AXES[k] for k, repeats in enumerate(field.grid.periodic) if not repeats]
    if walls:
        raise ParameterError(
            f"{what} are spectral: they need axes that repeat, and this box has walls along "
            f"{', '.join(walls)}. Between walls IncompressibleFlow moves a FlowState; there are "
            "CompressibleEuler (gas without friction), ShallowWater and ShallowWaterFV, too"
        )


def require_averages(reconstruction: AbstractReconstruction | None, what: str) -> None:
    """**Errors:** `ParameterError` for a reconstruction of points, where a law takes averages over cells."""
    if reconstruction is not None and reconstruction.of_points:
        raise ParameterError(
            f"{type(reconstruction).__name__} is for values at points, in CompressibleEuler alone: {what} "
            "takes averages over cells, of which it would make second order. Take WENO5() or MUSCL()"
        )
