"""Export to VTK's XML formats, for ParaView: fields as ImageData, particles as PolyData, and series of both."""

import base64
import struct
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from physkit.core import ParameterError
from physkit.geometry import AXES

from .._atomic import make_folder, write_atomically
from ..recording._h5md import pad_to_3d
from ..recording._load_component import is_trajectory, load_component, recorded_velocities
from ..recording._recorded_series import Series
from ._export_request import ExportRequest, Progress

# VTK's names of number types, by NumPy's kinds. Booleans have none and are written as UInt8.
_TYPES = {"f": "Float", "i": "Int", "u": "UInt"}


def write_vtk(target: Path, request: ExportRequest) -> None:
    """Write the last frame as `.vti` or `.vtp`, or all frames as a `.pvd` collection.

    **Errors:** `ParameterError` where the series do not go into one file of that kind; `FileError`.
    """
    ending = target.suffix.lower()
    chosen = _select_series(request.series, request.takes_all, ending)
    frames = request.frame_indices(chosen[0])
    if not frames:
        raise ParameterError(f"{chosen[0].name}: no such frames")
    if ending == ".pvd":
        _write_collection(target, chosen, frames, request.progress)
    else:
        _write_frame(target, chosen, frames[-1])
        request.progress(1, 1)


def _write_frame(target: Path, chosen: list[Series], frame: int) -> None:
    """Write one frame as `.vti` (fields of one grid) or `.vtp` (particles).

    **Errors:** `ParameterError` where the series do not go into one file of that kind; `FileError`.
    """
    make_document = {".vti": _image_data, ".vtp": _poly_data}[target.suffix.lower()]
    write_atomically(target, make_document(chosen, frame).encode())


def _write_collection(
    target: Path, chosen: list[Series], frames: range, progress: Progress
) -> None:
    """Write each of `frames` to a file in the folder NAME_frames, and NAME.pvd, a list of them and their times.

    **Errors:** `ParameterError`, `FileError`.
    """
    ending = ".vtp" if chosen and is_trajectory(chosen[0]) else ".vti"
    folder = target.with_name(f"{target.stem}_frames")
    entries, times = [], chosen[0].time if chosen else ()
    _require_frames(chosen)
    make_folder(folder)
    for done, frame in enumerate(frames):
        # Eight digits, so that a list of the files by name is in the order of time.
        name = f"{frame:08d}{ending}"
        _write_frame(folder / name, chosen, frame)
        # Relative to the .pvd file, so that both can be moved together.
        relative_path = quoteattr(f"{folder.name}/{name}")
        entries.append(f'<DataSet timestep="{float(times[frame])!r}" file={relative_path}/>')
        progress(done + 1, len(frames))
    body = "\n".join(["<Collection>", *entries, "</Collection>"])
    # Last: once it is there, all files that it lists are.
    write_atomically(target, _vtk_file("Collection", body).encode())


def _select_series(found: list[Series], takes_all: bool, ending: str) -> list[Series]:
    """The series that go into one file: fields of one grid and interval, or one trajectory.

    **Errors:** `ParameterError` names the series that there are.
    """
    fields = [s for s in found if s.kind == "fields"]
    trajectories = [s for s in found if is_trajectory(s)]
    if not takes_all and len(fields) + len(trajectories) < len(found):
        raise ParameterError("VTK files hold fields, or positions of particles; name those")
    if ending == ".vti":
        trajectories = []
    elif ending == ".vtp":
        fields = []
    available = [s.name for s in fields + trajectories]

    def num_points(series: Series) -> tuple[int, ...]:
        return tuple(n for n, dim in zip(series.shape, series.dims, strict=True) if dim in AXES)

    # Fields of one component and interval share a file; blocks of several processes share their folder.
    groups = {(s.path, len(s), num_points(s)) for s in fields + trajectories}
    if len(groups) != 1 or len(trajectories) > 1:
        kinds = {".vti": "fields", ".vtp": "positions of particles"}.get(
            ending, "fields or particles"
        )
        raise ParameterError(
            f"one VTK file holds {kinds} recorded together; there are {available or 'none'}"
            + (": name some" if available else "")
        )
    return fields + trajectories


def _require_frames(chosen: list[Series]) -> None:
    """**Errors:** `ParameterError` where nothing has been recorded."""
    if not chosen or not len(chosen[0]):
        raise ParameterError("there are no frames to write")


def _image_data(chosen: list[Series], frame: int) -> str:
    """Fields of one grid as a VTK ImageData document, values as cell data."""
    _require_frames(chosen)
    field = load_component(chosen[0], frame)
    d = field.grid.dimension
    # VTK has three dimensions: the others have one cell, as wide as the widest.
    points = (*field.grid.local_shape_at(field.location), 1, 1)[:3]
    spacing = np.ones(3) * float(np.max(field.grid.image_spacing()))
    spacing[:d] = field.grid.image_spacing()
    # Along the axes that the grid does not have, the one cell begins at 0.
    first = spacing / 2
    first[:d] = [float(np.ravel(x)[0]) for x in field.coordinates]
    arrays = []
    for series in chosen:
        values = series[frame]  # (*components, x, y, z)
        flat = values.reshape(-1, int(np.prod(values.shape[values.ndim - d :]))).astype(
            values.dtype
        )
        # (components, x, y, z) → (z·y·x, components): in memory z runs fastest, in VTK x.
        rows = flat.reshape(len(flat), *values.shape[values.ndim - d :])
        rows = rows.transpose(*range(d, 0, -1), 0).reshape(-1, len(flat))
        # ParaView draws arrows only for vectors of three components.
        rows = pad_to_3d(rows) if series.is_vector and d > 1 else rows
        for suffix, part in _real_parts(rows):
            arrays.append(_data_array(series.name + suffix, part))
    extent = " ".join(f"0 {n}" for n in points)
    # VTK's origin is a corner; our first point is the middle of its cell.
    origin = _format_numbers(first - spacing / 2)
    attributes = f'WholeExtent="{extent}" Origin="{origin}" Spacing="{_format_numbers(spacing)}"'
    body = "\n".join(
        [
            f"<ImageData {attributes}>",
            _field_time(float(chosen[0].time[frame])),
            f'<Piece Extent="{extent}"><CellData>',
            *arrays,
            "</CellData></Piece></ImageData>",
        ]
    )
    return _vtk_file("ImageData", body)


def _poly_data(chosen: list[Series], frame: int) -> str:
    """Particles as a VTK PolyData document."""
    _require_frames(chosen)
    particles = load_component(chosen[0], frame, quiet=True)
    n = particles.num_particles
    arrays = [
        _data_array("id", np.asarray(particles.id)),
        _data_array("mass", np.asarray(particles.mass)),
    ]
    arrays += [
        _data_array(name, np.asarray(getattr(particles, name)))
        for name in ("charge", "species")
        if getattr(particles, name) is not None
    ]
    # Velocities that were not recorded are zero in `particles`: they are left out, not written.
    if recorded_velocities(chosen[0]) is not None:
        arrays.append(_data_array("velocity", pad_to_3d(np.asarray(particles.velocity))))
    body = "\n".join(
        [
            "<PolyData>",
            _field_time(float(chosen[0].time[frame])),
            f'<Piece NumberOfPoints="{n}" NumberOfVerts="{n}"><PointData>',
            *arrays,
            "</PointData><Points>",
            _data_array("position", pad_to_3d(np.asarray(particles.position))),
            "</Points><Verts>",
            # A vertex per point: ParaView draws cells, and points without any are invisible.
            _data_array("connectivity", np.arange(n)),
            _data_array("offsets", np.arange(1, n + 1)),
            "</Verts></Piece></PolyData>",
        ]
    )
    return _vtk_file("PolyData", body)


def _field_time(t: float) -> str:
    """The time of a frame, under the name that VTK's readers look for."""
    return f"<FieldData>{_data_array('TimeValue', np.array([t]), is_field_data=True)}</FieldData>"


def _real_parts(rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """An array as real arrays, each with a suffix for its name: VTK has no complex numbers."""
    if np.iscomplexobj(rows):
        yield "_real", rows.real
        yield "_imag", rows.imag
    else:
        yield "", rows


def _data_array(name: str, values: np.ndarray, is_field_data: bool = False) -> str:
    """A VTK DataArray of rows `(tuples, components)`: base64 of the number of bytes, then the bytes.

    Field data belongs to no points or cells, so it must say how many tuples there are.
    """
    values = values.astype(np.uint8) if values.dtype == bool else values
    rows = values.reshape(len(values), -1) if values.ndim > 1 else values[:, None]
    # Little-endian, behind a count of 64 bits: `_vtk_file` declares both in the root element.
    data = np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder("<"), copy=False)).tobytes()
    text = base64.b64encode(struct.pack("<Q", len(data)) + data).decode()
    kind = f"{_TYPES[values.dtype.kind]}{8 * values.dtype.itemsize}"
    count = (
        f'NumberOfTuples="{len(rows)}"'
        if is_field_data
        else f'NumberOfComponents="{rows.shape[1]}"'
    )
    return f'<DataArray type="{kind}" Name={quoteattr(name)} {count} format="binary">{text}</DataArray>'


def _format_numbers(numbers: np.ndarray) -> str:
    """Numbers as an attribute, in as many digits as read back exactly."""
    return " ".join(repr(float(x)) for x in numbers)


def _vtk_file(kind: str, body: str) -> str:
    """A complete VTK document of the type `kind` around `body`."""
    return (
        '<?xml version="1.0"?>\n'
        f'<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
        f"{body}\n</VTKFile>\n"
    )
