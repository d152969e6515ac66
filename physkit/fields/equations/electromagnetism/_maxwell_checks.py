"""What `Maxwell` asks of a field and of its own parts before a run."""

import warnings
from typing import TYPE_CHECKING

import numpy as np

from physkit.core import (
    ParameterError,
    PhyskitWarning,
    ShapeError,
    concrete_value,
    is_concrete,
    is_tracing,
)
from physkit.geometry import Grid

from ...states._electromagnetic_field import ElectromagneticField
from .._source_checks import check_waves
from ._media import permittivity_range
from ._shapes import smallest_distances

if TYPE_CHECKING:
    from ._maxwell import Maxwell

_FEW = 5.0  # cells in a wavelength: speeds are up to 7 % off


def check_sources(maxwell: "Maxwell", field: ElectromagneticField) -> None:
    """**Errors:** of sources that do not fit the field, its media or layer. Warns of waves of few cells."""
    grid = field.grid
    for source in maxwell.sources:
        source.check_grid(grid)
        source.check_components(tuple(field.electric))
        source.check_layer(grid, maxwell.layer)
        source.check_media(grid, maxwell.media, maxwell.vacuum_permittivity)
    found = permittivity_range(maxwell.media)
    numbers = [
        concrete_value(x) for x in (maxwell.vacuum_permittivity, maxwell.vacuum_permeability)
    ]
    speeds = None
    if found is not None and not any(x is None or x.dtype == object for x in numbers):
        vacuum = float(np.prod(numbers)) ** -0.5
        speeds = (vacuum / found[1] ** 0.5, vacuum / found[0] ** 0.5)
    check_waves(maxwell.sources, grid, speeds, _FEW)


def warn_of_media_outside(maxwell: "Maxwell", grid: Grid) -> None:
    """Warn of bodies that touch no cell of the grid."""
    shaped = [medium for medium in maxwell.media if medium.shape is not None]
    if not shaped or is_tracing() or not is_concrete((shaped, grid)):
        return
    distances = np.asarray(smallest_distances(tuple(medium.shape for medium in shaped), grid))
    reach = 0.5 * float(np.linalg.norm(np.asarray(grid.spacing)))
    outside = [type(m).__name__ for m, d in zip(shaped, distances, strict=True) if d > reach]
    if outside:
        warnings.warn(
            f"{len(outside)} of {len(shaped)} bodies ({', '.join(dict.fromkeys(outside))}) are outside of the "
            f"box, which goes from 0 to {np.asarray(grid.space.lengths).tolist()}: they do nothing. A shape is "
            "the distance from its surface, negative inside",
            PhyskitWarning,
            stacklevel=2,
        )


def check_memory(maxwell: "Maxwell", field: ElectromagneticField) -> None:
    """**Errors:** `ShapeError`, `ParameterError` for a field without what media, layers or Bloch waves need."""
    if maxwell.wavevector is not None:
        field.grid.require_periodic("Bloch waves")
        if maxwell.wavevector.shape != (field.grid.dimension,):
            raise ShapeError(
                f"a wavevector on this grid is [{field.grid.dimension}]; got {list(maxwell.wavevector.shape)}"
            )
        if next(iter(field.electric.values())).is_real:
            raise ParameterError(
                "Bloch waves are complex: ElectromagneticField.of(…, dtype=complex)"
            )
    found = field.Jx or field.Jy or field.Jz
    poles = 0 if found is None else found.components[0]
    if poles != maxwell.num_poles or (field.memory is None) != (maxwell.layer is None):
        raise ShapeError(
            f"these equations have {maxwell.num_poles} oscillators and "
            f"{'no' if maxwell.layer is None else 'an'} absorbing layer, the field {poles} and "
            f"{'none' if field.memory is None else 'one'}: start from maxwell.add_memory(field)"
        )
