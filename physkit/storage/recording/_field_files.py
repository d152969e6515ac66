"""Files of fields on grids that are netCDF-4 with CF attributes and VTKHDF ImageData at once.

Hard links make each netCDF variable a VTK cell data array too, so that values are stored once.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.fields import Field
from physkit.geometry import SphericalGrid

from ._growing_files import (
    Convert,
    FrameStream,
    OutputFile,
    StreamColumn,
    create_growing_dataset,
    fixed_length_text,
)
from ._spherical_files import write_sphere

_GROUP = "VTKHDF"  # VTK's reader looks for this name


def make_field_file(
    path: Path, field: Field, frames: dict[str, Any], dtype: np.dtype, vectors: Collection[str] = ()
) -> OutputFile:
    """The file for frames of values of `field`, all of one interval.

    Values have the layout `[*components, x, y, z]` in memory and `[time, z, y, x, component]` in the file, as
    VTK wants x to run fastest. Complex values become two variables.

    **Arguments:** `frames`: shapes of the frames, by name. `dtype`: of the real variables in the file.
    `vectors`: names of those whose components are those of vectors.
    """
    grid, d = field.grid, field.grid.dimension
    points = grid.local_shape_at(field.location)
    columns = []
    for name, frame in frames.items():
        is_complex = np.dtype(frame.dtype).kind == "c"
        parts = (("_real", np.real), ("_imag", np.imag)) if is_complex else (("", None),)
        for suffix, part in parts:
            shape = tuple(frame.shape)
            columns.append(_column(name + suffix, name, shape, d, part, dtype))
    sources = tuple(dict.fromkeys(c.source for c in columns))
    stream = FrameStream(
        tuple(columns), ("step",), ("time", f"{_GROUP}/Steps/Values"), _GROUP,
        ((f"{_GROUP}/Steps", "NSteps"),),
    )  # fmt: skip

    def write_header(file: h5py.File) -> None:
        file.attrs["Conventions"] = fixed_length_text("CF-1.11")
        file.attrs["title"] = fixed_length_text(f"fields {', '.join(sources)}")
        # Axes that the grid does not have get one cell, as wide as the widest.
        spacing = np.ones(3) * float(np.max(grid.image_spacing()))
        spacing[:d] = grid.image_spacing()
        first = np.zeros(3)
        along = [np.ravel(x).astype(float) for x in grid.coordinates(field.location)]
        first[:d] = [x[0] for x in along]
        first[d:] = spacing[d:] / 2
        counts = (*points, 1, 1, 1)[:3]
        # Dimension scales are datasets named for their axis: netCDF-4 reads them as coordinate variables.
        for k, axis in reversed(list(enumerate("xyz"))):
            even = first[k] + spacing[k] * np.arange(counts[k])
            is_sphere = isinstance(grid, SphericalGrid)
            scale = file.create_dataset(axis, data=along[k] if is_sphere and k < d else even)
            scale.make_scale(axis)
            scale.attrs["axis"] = fixed_length_text(axis.upper())
        time = create_growing_dataset(file, "time", (), np.float64)
        time.make_scale("time")
        time.attrs["axis"] = fixed_length_text("T")
        create_growing_dataset(file, "step", (), np.int64).dims[0].attach_scale(time)
        components = sorted({c.stored_shape[-1] for c in columns if len(c.stored_shape) > 3})
        for count in components:
            file.create_dataset(f"component_{count}", data=np.arange(count)).make_scale()
        image = file.create_group(_GROUP)
        if isinstance(grid, SphericalGrid):
            write_sphere(file, grid)
        image.attrs["Version"] = np.array([2, 2], np.int64)
        # VTK's reader takes only an ASCII string of fixed length here.
        image.attrs.create("Type", b"ImageData", dtype=h5py.string_dtype("ascii", 9))
        image.attrs["WholeExtent"] = np.array([0, counts[0], 0, counts[1], 0, counts[2]], np.int64)
        # A corner: values are at the centers of VTK's cells.
        image.attrs["Origin"] = first - spacing / 2
        image.attrs["Spacing"] = spacing
        image.attrs["Direction"] = np.eye(3).ravel()
        cells = image.create_group("CellData")
        image.create_group("Steps").attrs["NSteps"] = np.int64(0)
        create_growing_dataset(file, f"{_GROUP}/Steps/Values", (), np.float64)
        for column in columns:
            variable = create_growing_dataset(file, column.path, column.stored_shape, dtype)
            scales = ["time", "z", "y", "x"]
            if len(column.stored_shape) > 3:
                scales.append(f"component_{column.stored_shape[-1]}")
            for k, scale in enumerate(scales):
                variable.dims[k].attach_scale(file[scale])
            variable.attrs["vector"] = np.int8(column.source in vectors)
            cells[column.path] = variable  # a hard link to the same dataset

    return OutputFile(path, "fields", (stream,), write_header)


def _column(
    path: str, name: str, shape: tuple[int, ...], d: int, part: Convert | None, dtype: np.dtype
) -> StreamColumn:
    """The dataset of a real variable: axes of space reversed and filled up to three, one axis of components."""
    components, points = shape[: len(shape) - d], shape[len(shape) - d :]
    stored_points = (*points, 1, 1, 1)[:3][::-1]  # (z, y, x)
    num_components = int(np.prod(components)) if components else 1

    def convert(values: np.ndarray) -> np.ndarray:
        values = values if part is None else part(values)
        flat = values.reshape(len(values), num_components, *points)
        components_last = flat.transpose(0, *range(d + 1, 1, -1), 1)  # (time, z, y, x, components)
        stored = components_last.reshape(len(values), *stored_points, num_components)
        return (stored if components else stored[..., 0]).astype(dtype)

    dims = ("time", *(f"component_{k}" for k in range(len(components))), *"xyz"[:d])
    stored_shape = stored_points + ((num_components,) if components else ())
    return StreamColumn(path, name, convert, dims, shape, stored_shape)


def to_field_layout(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Frames of `shape`, `[time, *components, *points]`, from the file's `[time, z, y, x, component]`."""
    values = values if values.ndim == 5 else values[..., None]
    components_first = values.transpose(0, 4, 3, 2, 1)
    return components_first.reshape(len(values), *shape)
