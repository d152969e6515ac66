"""What `Maxwell` asks of a field and of its own parts before a run."""

from typing import TYPE_CHECKING

import jax
import numpy as np

from physkit.core import ParameterError, ShapeError, concrete_value, is_concrete, is_tracing, warn
from physkit.geometry import Grid

from ...states._electromagnetic_field import ElectromagneticField
from .._source_checks import check_waves
from ._media import AbstractMedium, permittivity_on_plane, permittivity_range
from ._shapes import distances_from_nodes

if TYPE_CHECKING:
    from ._maxwell import Maxwell

_FEW = 5.0  # cells in a wavelength: speeds are up to 7 % off


def check_sources(maxwell: "Maxwell", field: ElectromagneticField) -> None:
    """**Errors:** of sources that do not fit the field, its media or layer.

    Warns of waves of few cells, and of bodies that touch no cell.
    """
    grid = field.grid
    for source in maxwell.sources:
        source.check_grid(grid)
        source.check_components(tuple(field.electric))
        source.check_layer(grid, maxwell.layer)
    _check_media(maxwell, grid)
    found = permittivity_range(maxwell.media)
    numbers = [
        concrete_value(x) for x in (maxwell.vacuum_permittivity, maxwell.vacuum_permeability)
    ]
    speeds = None
    if found is not None and not any(x is None for x in numbers):
        vacuum = float(np.prod(numbers)) ** -0.5
        speeds = (vacuum / found[1] ** 0.5, vacuum / found[0] ** 0.5)
    check_waves(maxwell.sources, grid, speeds, _FEW)


def _check_media(maxwell: "Maxwell", grid: Grid) -> None:
    """**Errors:** of sources in media that they do not fit. Warns of bodies that touch no cell of the grid."""
    shaped = [medium for medium in maxwell.media if medium.shape is not None]
    if shaped and (is_tracing() or not is_concrete((shaped, grid))):
        return
    faces = [(source, face) for source in maxwell.sources for face in source.faces_in_media(grid)]
    smallest, on_faces = np.zeros(0), [[] for _ in faces]
    if shaped:
        shapes = tuple(medium.shape for medium in shaped)
        smallest, on_faces = jax.device_get(
            distances_from_nodes(shapes, grid, tuple(face for _, face in faces))
        )
    vacuum = concrete_value(maxwell.vacuum_permittivity)
    for (source, face), distances in zip(faces, on_faces, strict=True):
        found = permittivity_on_plane(maxwell.media, grid, face, iter(distances))
        if found is not None and vacuum is not None:
            source.check_permittivity(face, found, vacuum)
    if shaped:
        _warn_of_media_outside(shaped, grid, smallest)


def _warn_of_media_outside(shaped: list[AbstractMedium], grid: Grid, smallest: np.ndarray) -> None:
    reach = 0.5 * float(np.linalg.norm(np.asarray(grid.spacing)))
    outside = [type(m).__name__ for m, d in zip(shaped, smallest, strict=True) if d > reach]
    if outside:
        warn(
            f"{len(outside)} of {len(shaped)} bodies ({', '.join(dict.fromkeys(outside))}) are outside of the "
            f"box, which goes from 0 to {np.asarray(grid.space.lengths).tolist()}: they do nothing. A shape is "
            "the distance from its surface, negative inside"
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
