"""VTK's XML files, for ParaView: images of fields, points of particles, and collections over time."""

import base64
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from physkit.core import ParameterError
from physkit.geometry import AXES

from .._atomic import make_folder, write_atomically
from ..recording._frame_component import is_trajectory, load_component
from ..recording._recorded_series import Series
from ._request import ExportRequest, Progress

_TYPES = {"f": "Float", "i": "Int", "u": "UInt"}


def write_vtk(target: Path, request: ExportRequest) -> None:
    """The last frame as `.vti` or `.vtp`, or all frames as a collection.

    **Errors:** `ParameterError` where the series do not go into one file of that kind; `FileError`.
    """
    ending = target.suffix.lower()
    chosen = _select_series(request.series, request.takes_all, ending)
    rows = request.frame_indices(chosen[0])
    if not rows:
        raise ParameterError(f"{chosen[0].name}: no such frames")
    if ending == ".pvd":
        _write_collection(target, chosen, rows, request.progress)
    else:
        _write_frame(target, chosen, rows[-1])
        request.progress(1, 1)


def _write_frame(target: Path, chosen: list[Series], frame: int) -> None:
    """One frame as `.vti` (fields of one grid) or `.vtp` (particles).

    **Errors:** `ParameterError` where the series do not go into one file of that kind; `FileError`.
    """
    write = {".vti": _image, ".vtp": _points}[target.suffix]
    write_atomically(target, write(chosen, frame).encode())


def _write_collection(
    target: Path, chosen: list[Series], frames: range, progress: Progress
) -> None:
    """All `frames` in the folder NAME_frames, and NAME.pvd with their times.

    **Errors:** `ParameterError`, `FileError`.
    """
    ending = ".vtp" if chosen and is_trajectory(chosen[0]) else ".vti"
    folder = target.with_name(f"{target.stem}_frames")
    lines, times = [], chosen[0].time if chosen else ()
    _require_frames(chosen)
    make_folder(folder)
    for done, frame in enumerate(frames):
        name = f"{frame:08d}{ending}"
        _write_frame(folder / name, chosen, frame)
        place = quoteattr(f"{folder.name}/{name}")
        lines.append(f'<DataSet timestep="{float(times[frame])!r}" file={place}/>')
        progress(done + 1, len(frames))
    body = "\n".join(["<Collection>", *lines, "</Collection>"])
    write_atomically(target, _file("Collection", body).encode())


def _select_series(found: list[Series], takes_all: bool, ending: str) -> list[Series]:
    """Those that go into one file: fields of one grid and interval, or one trajectory.

    **Errors:** `ParameterError` says what there is.
    """
    fields = [s for s in found if s.kind == "fields"]
    paths = [s for s in found if is_trajectory(s)]
    if not takes_all and len(fields) + len(paths) < len(found):
        raise ParameterError("VTK files hold fields, or positions of particles; name those")
    if ending == ".vti":
        paths = []
    elif ending == ".vtp":
        fields = []
    have = [s.name for s in fields + paths]
    points = lambda s: tuple(n for n, dim in zip(s.shape, s.dims, strict=True) if dim in AXES)
    files = {(s.path, len(s), points(s)) for s in fields + paths}
    if len(files) != 1 or len(paths) > 1:
        kinds = {".vti": "fields", ".vtp": "positions of particles"}.get(
            ending, "fields or particles"
        )
        raise ParameterError(
            f"one VTK file holds {kinds} recorded together; there are {have or 'none'}"
            + (": name some" if have else "")
        )
    return fields + paths


def _require_frames(chosen: list[Series]) -> None:
    if not chosen or not len(chosen[0]):
        raise ParameterError("there are no frames to write")


def _image(chosen: list[Series], frame: int) -> str:
    _require_frames(chosen)
    now = load_component(chosen[0], frame)
    d = now.grid.dimension
    points = (*now.grid.local_shape_at(now.location), 1, 1)[:3]
    spacing = np.ones(3) * float(np.max(np.asarray(now.grid.spacing)))
    spacing[:d] = np.asarray(now.grid.spacing)
    first = spacing / 2
    first[:d] = [float(np.ravel(x)[0]) for x in now.coordinates]
    arrays = []
    for series in chosen:
        values = series[frame]
        flat = values.reshape(-1, int(np.prod(values.shape[values.ndim - d :]))).astype(
            values.dtype
        )
        # In memory z runs fastest, in VTK x.
        rows = flat.reshape(len(flat), *values.shape[values.ndim - d :])
        rows = rows.transpose(*range(d, 0, -1), 0).reshape(-1, len(flat))
        rows = _pad_to_3d(rows) if values.ndim == d + 1 and len(flat) == d > 1 else rows
        for suffix, part in _real_parts(rows):
            arrays.append(_array(series.name + suffix, part))
    extent = " ".join(f"0 {n}" for n in points)
    head = (
        f'WholeExtent="{extent}" Origin="{_text(first - spacing / 2)}" Spacing="{_text(spacing)}"'
    )
    body = "\n".join(
        [
            f"<ImageData {head}>",
            _field_time(float(chosen[0].time[frame])),
            f'<Piece Extent="{extent}"><CellData>',
            *arrays,
            "</CellData></Piece></ImageData>",
        ]
    )
    return _file("ImageData", body)


def _points(chosen: list[Series], frame: int) -> str:
    _require_frames(chosen)
    now = load_component(chosen[0], frame)
    n = now.num_particles
    arrays = [_array("id", np.asarray(now.id)), _array("mass", np.asarray(now.mass))]
    arrays += [
        _array(name, np.asarray(getattr(now, name)))
        for name in ("charge", "species")
        if getattr(now, name) is not None
    ]
    arrays.append(_array("velocity", _pad_to_3d(np.asarray(now.velocity))))
    body = "\n".join(
        [
            "<PolyData>",
            _field_time(float(chosen[0].time[frame])),
            f'<Piece NumberOfPoints="{n}" NumberOfVerts="{n}"><PointData>',
            *arrays,
            "</PointData><Points>",
            _array("position", _pad_to_3d(np.asarray(now.position))),
            "</Points><Verts>",
            _array("connectivity", np.arange(n)),
            _array("offsets", np.arange(1, n + 1)),
            "</Verts></Piece></PolyData>",
        ]
    )
    return _file("PolyData", body)


def _field_time(t: float) -> str:
    return f"<FieldData>{_array('TimeValue', np.array([t]), tuples=True)}</FieldData>"


def _real_parts(rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    if np.iscomplexobj(rows):
        yield "_real", rows.real
        yield "_imag", rows.imag
    else:
        yield "", rows


def _pad_to_3d(x: np.ndarray) -> np.ndarray:
    return np.pad(x, [(0, 0), (0, 3 - x.shape[-1])])


def _array(name: str, values: np.ndarray, tuples: bool = False) -> str:
    values = values.astype(np.uint8) if values.dtype == bool else values
    rows = values.reshape(len(values), -1) if values.ndim > 1 else values[:, None]
    data = np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder("<"), copy=False)).tobytes()
    text = base64.b64encode(struct.pack("<Q", len(data)) + data).decode()
    kind = f"{_TYPES[values.dtype.kind]}{8 * values.dtype.itemsize}"
    count = f'NumberOfTuples="{len(rows)}"' if tuples else f'NumberOfComponents="{rows.shape[1]}"'
    return f'<DataArray type="{kind}" Name={quoteattr(name)} {count} format="binary">{text}</DataArray>'


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _file(kind: str, body: str) -> str:
    return (
        '<?xml version="1.0"?>\n'
        f'<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
        f"{body}\n</VTKFile>\n"
    )
