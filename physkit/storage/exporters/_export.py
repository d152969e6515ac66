"""Export a recording to the format of another program, which the ending of the file's name selects."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from physkit.core import ParameterError, explain_call

from .._atomic import to_path
from ..recording._labeled_arrays import as_names
from ..recording._recording import Recording, open as open_file
from ._arrays import write_csv, write_npz
from ._column_files import write_columns
from ._export_request import ExportRequest, Progress
from ._vtk import write_vtk
from ._xyz import write_xyz


@explain_call
def export(
    source: str | Path | Recording,
    target: str | Path,
    names: str | Sequence[str] | None = None,
    *,
    frames: int | slice | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write a recording, or some of its series, in the format that the ending of `target` says.

    - `.npz`: NumPy arrays, each with `NAME.step` and `NAME.time`.
    - `.csv`: a table of scalars and short vectors of one interval, with steps and times.
    - `.parquet`, `.feather`: the same as a file of columns, of several intervals, too: what was not recorded at
      a time is missing. These need the extra `physkit[pandas]`.
    - `.xyz`, `.extxyz`: extended XYZ of one trajectory, for OVITO, ASE and VMD, which know elements
      only: species are called by `species_names`, those without names H, He, Li …; X without species.
    - `.vti`, `.vtp`: the last frame of fields of one grid, or of particles, for ParaView and VTK.
    - `.pvd`: the same for all frames, in the folder `NAME_frames` beside it.

    **Arguments:**

    - `source`: what `open` takes, or has returned.
    - `target`: a file that is there is replaced.
    - `names`: which series; all that the format can hold if left out.
    - `frames`: which of them, one by its number or a slice that goes forward; all if left out.
    - `progress`: called with the number of frames done, and of all.

    **Errors:** `ParameterError` for endings, names or shapes that do not fit, or no frames; `FileError`.
    """
    found = source if isinstance(source, Recording) else open_file(source)
    target = to_path(target)
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        raise ParameterError(f"{target}: cannot write {target.suffix!r}; known: {sorted(_WRITERS)}")
    frames = _as_slice(frames)
    # Writers turn ranges of frames into slices again. A backward range may end at −1, which a slice
    # takes for the last frame.
    if frames.step is not None and frames.step < 1:
        raise ParameterError(f"frames go forward; got {frames}")
    progress = _ignore if progress is None else progress
    chosen = as_names(found if names is None else names)
    request = ExportRequest([found[name] for name in chosen], names is None, frames, progress)
    lengths = [len(series) for series in request.series]
    if any(lengths) and not any(request.frame_indices(series) for series in request.series):
        raise ParameterError(f"{frames} is no frame of series of {max(lengths)} and fewer")
    write(target, request)
    return target


def _as_slice(frames: int | slice | None) -> slice:
    """**Errors:** `ParameterError` for what is no number of a frame, and no slice of such."""
    if frames is None:
        return slice(None)
    ends = (frames.start, frames.stop, frames.step) if isinstance(frames, slice) else (frames,)
    if not all(isinstance(n, int | np.integer) or (n is None and len(ends) > 1) for n in ends):
        raise ParameterError(
            f"frames is one frame's number or a slice, slice(0, None, 10); got {frames!r}"
        )
    # The last frame is -1:None; -1:0 would be none.
    return frames if isinstance(frames, slice) else slice(frames, frames + 1 or None)


def _ignore(done: int, total: int) -> None:
    del done, total


_WRITERS: dict[str, Callable[[Path, ExportRequest], None]] = {
    ".npz": write_npz,
    ".csv": write_csv,
    ".parquet": write_columns,
    ".feather": write_columns,
    ".xyz": write_xyz,
    ".extxyz": write_xyz,
    ".vti": write_vtk,
    ".vtp": write_vtk,
    ".pvd": write_vtk,
}
