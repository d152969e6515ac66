"""Recordings in plain formats that everything reads."""

import contextlib
import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import h5py
import numpy as np

from physkit.core import FileError, ParameterError

from .._atomic import TEMPORARY_PREFIX, file_error
from .._read_hdf5 import read_hdf5
from .._untrusted_hdf5 import get_dataset
from ..recording._frame_component import is_trajectory
from ..recording._h5md import TRAJECTORY_GROUP
from ..recording._recorded_series import Series
from ..recording._recording import Recording, open as open_file
from ._vtk import select_vtk_series, write_vtk_collection, write_vtk_frame

# Readers know particles by the names of elements.
_ELEMENTS = re.findall(
    "[A-Z][a-z]?", "HHeLiBeBCNOFNeNaMgAlSiPSClArKCaScTiVCrMnFeCoNiCuZnGaGeAsSeBrKr"
)
_AT_ONCE = 2**24  # bytes of frames read in one go

Told = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True)
class _Order:
    """What is to be written: which series and frames, and whom to tell how far it is."""

    chosen: list[Series]
    everything: bool
    frames: slice
    told: Told

    def rows(self, series: Series) -> range:
        """The frames of a series."""
        return range(*self.frames.indices(len(series)))


def export(
    source: str | Path | Recording,
    target: str | Path,
    names: Sequence[str] | None = None,
    *,
    frames: slice | None = None,
    progress: Told | None = None,
) -> Path:
    """Write a recording, or some of its series, in the format that the ending of `target` says.

    - `.npz`: NumPy arrays, each with `NAME.step` and `NAME.time`.
    - `.csv`: a table of scalars and short vectors of one cadence, with steps and times.
    - `.xyz`, `.extxyz`: extended XYZ of one trajectory, for OVITO, ASE and VMD, which know elements
      only: species 0, 1, 2 … are called H, He, Li …; X without species.
    - `.vti`, `.vtp`: the last frame of fields of one grid, or of particles, for ParaView and VTK.
    - `.pvd`: the same for all frames, in the folder `NAME_frames` beside it.

    **Arguments:**

    - `source`: what `open` takes, or has returned.
    - `names`: which series; all that the format can hold if left out.
    - `frames`: which of them, as a slice that goes forward; all if left out.
    - `progress`: called with the number of frames done, and of all.

    **Errors:** `ParameterError` for endings, names or shapes that do not fit, or no frames; `FileError`.
    """
    found = source if isinstance(source, Recording) else open_file(source)
    target = Path(target)
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        raise ParameterError(f"{target}: cannot write {target.suffix!r}; known: {sorted(_WRITERS)}")
    frames = slice(None) if frames is None else frames
    if frames.step is not None and frames.step < 1:
        raise ParameterError(f"frames go forward; got {frames}")
    told = (lambda done, total: None) if progress is None else progress
    picked = [found[name] for name in (found if names is None else names)]
    write(target, _Order(picked, names is None, frames, told))
    return target


def _npz(target: Path, order: _Order) -> None:
    arrays = {}
    for done, series in enumerate(order.chosen):
        arrays |= {
            series.name: series[order.frames],
            f"{series.name}.step": series.step[order.frames],
        }
        arrays[f"{series.name}.time"] = series.time[order.frames]
        order.told(done + 1, len(order.chosen))
    with _whole(target, "wb") as file:
        np.savez(file, **arrays)


def _csv(target: Path, order: _Order) -> None:
    chosen = [s for s in order.chosen if s.ndim < 3 or not order.everything]
    if not chosen or any(s.ndim > 2 for s in chosen):
        raise ParameterError("a table holds scalars and vectors; name some with names=[…]")
    steps = chosen[0].step
    if any(not np.array_equal(s.step, steps) for s in chosen[1:]):
        counts = {s.name: len(s) for s in chosen}
        raise ParameterError(
            f"a table has one cadence; these differ, in frames: {counts}. Name some with names=[…]"
        )
    header, columns = ["step", "time"], [steps[order.frames], chosen[0].time[order.frames]]
    for done, series in enumerate(chosen):
        values = series[order.frames]
        wide = values[:, None] if values.ndim == 1 else values
        for k, column in enumerate(wide.T):
            header.append(series.name if values.ndim == 1 else f"{series.name}[{k}]")
            columns.append(column)
        order.told(done, len(chosen))
    with _whole(target, "w") as file:
        file.write(",".join(f'"{h}"' if "," in h else h for h in header) + "\n")
        for row in zip(*columns, strict=True):
            file.write(",".join(_shortest(x) for x in row) + "\n")
    order.told(len(chosen), len(chosen))


def _xyz(target: Path, order: _Order) -> None:
    found = [s for s in order.chosen if is_trajectory(s)]
    if len(found) != 1:
        have = [s.name for s in found]
        raise ParameterError(
            f"extended XYZ holds one trajectory; there are {have or 'none'}"
            + (", name one with names=[…]" if order.everything and have else "")
        )
    positions = found[0]
    fixed = read_hdf5(positions.path, lambda file: _fixed(file, positions.path))
    beside = open_file(positions.path)
    velocity = next((s for s in beside.values() if "/velocity/" in s.dataset_paths[0]), None)
    rows = order.rows(positions)
    at_once = max(1, _AT_ONCE // max(1, positions.nbytes // max(1, len(positions))))
    with _whole(target, "w") as file:
        for first in range(0, len(rows), at_once):
            part = rows[first : first + at_once]
            some = slice(part.start, part.stop, part.step)
            moving = None if velocity is None else _deep(velocity[some])
            steps, times = positions.step[some], positions.time[some]
            for k, x in enumerate(_deep(positions[some])):
                v = None if moving is None else moving[k]
                _frame(file, x, v, fixed, steps[k], times[k])
            order.told(first + len(part), len(rows))


def _vtk(target: Path, order: _Order) -> None:
    ending = target.suffix.lower()
    chosen = select_vtk_series(order.chosen, order.everything, ending)
    rows = order.rows(chosen[0])
    if not rows:
        raise ParameterError(f"{chosen[0].name}: no such frames")
    if ending == ".pvd":
        write_vtk_collection(target, chosen, rows, order.told)
    else:
        write_vtk_frame(target, chosen, rows[-1])
        order.told(1, 1)


def _fixed(file: h5py.File, path: Path) -> tuple[list[str], str]:
    """Names of the particles' species, and what the comment line says of the cell."""
    group = file[TRAJECTORY_GROUP]
    count = len(get_dataset(group, "id", path))
    kinds = [0] * count
    if "species" in group:
        kinds = get_dataset(group, "species", path)[:].tolist()
    names = ["X" if "species" not in group else _element(k) for k in kinds]
    if "edges" not in group["box"]:
        return names, 'pbc="F F F"'
    edges = get_dataset(group, "box/edges/value", path)
    if not len(edges):
        return names, 'pbc="F F F"'
    cell = edges[0] if edges.ndim == 3 else np.diag(edges[0])
    numbers = " ".join(_shortest(x) for x in np.ravel(cell))
    return names, f'Lattice="{numbers}" pbc="T T T"'


def _element(species: int) -> str:
    return _ELEMENTS[species] if 0 <= species < len(_ELEMENTS) else "X"


def _frame(file: TextIO, x, v, fixed, step, time) -> None:
    names, cell = fixed
    columns = "species:S:1:pos:R:3" + ("" if v is None else ":velo:R:3")
    file.write(f"{len(x)}\n{cell} Properties={columns} Step={step} Time={_shortest(time)}\n")
    rows = x if v is None else np.concatenate([x, v], axis=1)
    for name, row in zip(names, rows, strict=True):
        file.write(f"{name} {' '.join(_shortest(a) for a in row)}\n")


def _deep(x: np.ndarray) -> np.ndarray:
    return np.pad(x, [(0, 0), (0, 0), (0, 3 - x.shape[-1])])


def _shortest(x: Any) -> str:
    """The shortest text that reads back as the same number."""
    return str(x)


@contextlib.contextmanager
def _whole(target: Path, mode: str) -> Iterator[Any]:
    """A file that takes its name when it is complete."""
    temporary = target.with_name(f"{TEMPORARY_PREFIX}{target.name}")
    try:
        with open(temporary, mode) as file:
            yield file
        os.replace(temporary, target)
    except OSError as error:
        raise error if isinstance(error, FileError) else file_error(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


_WRITERS: dict[str, Callable[[Path, _Order], None]] = {
    ".npz": _npz,
    ".csv": _csv,
    ".xyz": _xyz,
    ".extxyz": _xyz,
    ".vti": _vtk,
    ".vtp": _vtk,
    ".pvd": _vtk,
}
