"""Fields from and to `xarray.DataArray`, so also netCDF files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from physkit.core import FileError, ParameterError, explain_call, import_extra, show_numbers
from physkit.fields import Field
from physkit.geometry import AXES, AbstractBoundary, Box, Grid, Location

_SPACING_TOLERANCE = 1e-4  # of a cell; coordinates in files are often rounded


class LabeledField(NamedTuple):
    """A field, and what it does not know of itself.

    - `field`: on a box that begins at 0.
    - `origin`: `[d]`, where the box begins in the coordinates of the array.
    - `axes`: the dimensions of the array that are the axes of space, in order.
    - `name`, `units`: of the values; `axis_units`: of the coordinates. "" where the array does not say.
    """

    field: Field
    origin: tuple[float, ...]
    axes: tuple[str, ...]
    name: str
    units: str
    axis_units: tuple[str, ...]


@explain_call
def from_xarray(
    array: Any,
    *,
    axes: Sequence[str] | None = None,
    periodic: bool | Sequence[bool] = True,
    location: Location | None = None,
    boundary: AbstractBoundary | dict | None = None,
    vector: bool = False,
    name: str | None = None,
) -> LabeledField:
    """A field from a labeled array: its grid from the coordinates, its values from the data.

        found = pk.interop.from_xarray("sea.nc", name="temperature", axes=("lon", "lat"))
        found.field, found.units, found.origin

    **Arguments:**

    - `array`: an `xarray.DataArray`; or a `Dataset`, or the path of a netCDF file, of which `name` says the
      variable if there are several.
    - `axes`: the dimensions that are space, in the order x, y, z; those called x, y and z if left out. All
      others are components, in the order that they have.
    - `periodic`: of the box, as of `Box`.
    - `location`: where in their cells the points sit, `pk.spaces.Location`; their middles if left out, half a
      cell inside of the walls. Points on nodes include both walls.
    - `boundary`, `vector`: as of `Field`.

    **Returns:** a `LabeledField`: physkit's boxes begin at 0, so `origin` says where that is. Units are kept as
    text; numbers are not converted.

    **Errors:** `ParameterError` for coordinates that are missing, not increasing or not regular, for values
    that are missing, and axes that are not there; `FileError` for a file that cannot be read;
    `MissingExtraError` without the extra `physkit[xarray]`.
    """
    array = _data_array(array, name)
    axes = _axes(array, axes)
    components = [str(dim) for dim in array.dims if dim not in axes]
    if "time" in components:
        raise ParameterError(
            "a field is one moment: choose it, e.g. array.isel(time=-1), or array.sel(time=2.0)"
        )
    d = len(axes)
    location = Location((False,) * d) if location is None else location
    if len(location.staggered) != d:
        raise ParameterError(f"the location {location!r} has not the {d} axes {', '.join(axes)}")
    first, spacing = zip(*(_regular(array, axis) for axis in axes), strict=True)
    counts = np.array([array.sizes[axis] for axis in axes])
    is_periodic = np.broadcast_to(np.asarray(periodic, bool), (d,))
    # Along an axis with walls there is one more face than there are cells.
    cells = counts - (np.array(location.staggered) & ~is_periodic)
    inside = np.where(location.staggered, 0.0, 0.5) * spacing
    box = Box((cells * spacing).tolist(), tuple(is_periodic.tolist()))
    values = array.transpose(*components, *axes).to_numpy()
    if values.dtype.kind not in "fc":
        values = values.astype(float)
    if not np.all(np.isfinite(values)):
        missing = int(np.sum(~np.isfinite(values)))
        raise ParameterError(
            f"{missing} of {values.size} values are missing or infinite: fill them, e.g. array.fillna(0.0) or "
            f"array.interpolate_na({axes[0]!r})"
        )
    field = Field(values, Grid(box, tuple(cells.tolist())), location, boundary, vector=vector)
    return LabeledField(
        field,
        tuple((np.array(first) - inside).tolist()),
        axes,
        "" if array.name is None else str(array.name),
        str(array.attrs.get("units", "")),
        tuple(str(array[axis].attrs.get("units", "")) for axis in axes),
    )


@explain_call
def to_xarray(
    field: Field | LabeledField,
    *,
    name: str | None = None,
    units: str | None = None,
) -> Any:
    """A labeled `xarray.DataArray` of a field, with the coordinates of its points.

        pk.interop.to_xarray(vorticity, name="vorticity", units="1/s").to_netcdf("vorticity.nc")

    Components are the dimensions `component_0`, …. Of a `LabeledField` origin, names and units come back.

    **Errors:** `MissingExtraError` without the extra `physkit[xarray]`.
    """
    xarray = import_extra("xarray", "xarray", "to_xarray")
    if isinstance(field, Field):
        d = field.grid.dimension
        field = LabeledField(field, (0.0,) * d, tuple(AXES[:d]), "", "", ("",) * d)
    values = field.field
    axes = values.grid.coordinates(values.location)
    labels = {}
    for axis, x, origin, unit in zip(field.axes, axes, field.origin, field.axis_units, strict=True):
        attributes = {"units": unit} if unit else {}
        labels[axis] = (axis, origin + np.asarray(x, float).reshape(-1), attributes)
    units = field.units if units is None else units
    return xarray.DataArray(
        np.asarray(values.data),
        coords=labels,
        dims=(*(f"component_{k}" for k in range(len(values.components))), *field.axes),
        name=name or field.name or None,
        attrs={"units": units} if units else {},
    )


def _data_array(source: Any, name: str | None) -> Any:
    """The variable that is meant."""
    xarray = import_extra("xarray", "xarray", "from_xarray")
    if isinstance(source, str | Path):
        try:
            # Read at once and closed: the field needs all of it, and nothing of the file later.
            source = xarray.load_dataset(source)
        except (OSError, ValueError) as error:
            raise FileError(f"{source} cannot be read: {error}") from error
    if isinstance(source, xarray.DataArray):
        return source
    if not isinstance(source, xarray.Dataset):
        raise ParameterError(
            f"from_xarray takes a DataArray, a Dataset, or the path of a file; got {source!r:.80}"
        )
    names = [str(n) for n in source.data_vars]
    if name is None and len(names) == 1:
        name = names[0]
    if name not in names:
        raise ParameterError(f"name= says which of {names} is meant; got {name!r}")
    return source[name]


def _axes(array: Any, axes: Sequence[str] | None) -> tuple[str, ...]:
    """The dimensions that are axes of space."""
    dims = [str(dim) for dim in array.dims]
    found = [a for a in AXES if a in dims] if axes is None else list(axes)
    if (
        not 1 <= len(found) <= 3
        or any(a not in dims for a in found)
        or len(set(found)) < len(found)
    ):
        raise ParameterError(
            f"axes= names the one to three dimensions that are space, of {dims}; got {axes}"
        )
    return tuple(found)


def _regular(array: Any, axis: str) -> tuple[float, float]:
    """The first coordinate along an axis, and the spacing.

    **Errors:** `ParameterError` unless coordinates rise in equal steps.
    """
    if axis not in array.coords:
        raise ParameterError(
            f"{axis!r} has no coordinates: array.assign_coords({axis}=…) says where the points are"
        )
    x = np.asarray(array[axis])
    if x.dtype.kind not in "iuf" or len(x) < 2:
        raise ParameterError(
            f"the coordinates along {axis!r} must be two numbers or more; got {x.dtype}{list(x.shape)}"
        )
    rounding = 4 * np.finfo(x.dtype).eps * np.max(np.abs(x)) if x.dtype.kind == "f" else 0.0
    x = x.astype(float)
    spacing = (x[-1] - x[0]) / (len(x) - 1)
    if spacing < 0:
        raise ParameterError(
            f"the coordinates along {axis!r} fall: array.sortby({axis!r}) turns them"
        )
    off = np.abs(x - (x[0] + spacing * np.arange(len(x))))
    if not spacing > 0 or not np.all(off <= _SPACING_TOLERANCE * spacing + rounding):
        steps = np.diff(x)
        raise ParameterError(
            f"a grid has one spacing along {axis!r}; these coordinates have {steps.min():.6g} to "
            f"{steps.max():.6g} ({show_numbers(x)}): interpolate first, array.interp({axis}=numpy.linspace(…))"
        )
    return float(x[0]), float(spacing)
