"""The folder of a run's frames: files by kind, to which frames are appended during the run, in commits."""

import dataclasses
import json
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from physkit.core import DamagedFileError, FileError, Frame, MismatchError, State
from physkit.fields import Field
from physkit.observe import AbstractObserver
from physkit.parallel import process_group, single_process

from .._atomic import write_atomically
from .._provenance import collect_provenance
from ._frame_sharding import FrameSharding, read_index, shard_name
from ._growing_files import OutputFile
from ._output_files import make_output_files, recorded_fields
from ._recording import require_sound
from ._series_files import make_series_file, named_leaves

INDEX_NAME = "run.json"
SWEEP_FILE = "sweep.h5"  # the index of a sweep, whose folder is no run's
MAX_PENDING_BYTES = 2**26  # of frames in memory, from which on a commit does not wait
# Between two commits pass this many times the seconds that one takes: they cost a run 1/20 of its time.
COMMIT_INTERVAL_FACTOR = 20
_MIN_SECONDS = 1.0  # between two commits


class Output:
    """Writes recorded frames into a folder: particles as H5MD, fields as netCDF-4 and VTKHDF at once,
    everything else as series.

    Frames wait in memory until `commit`, which changes each file atomically. Positions and fields are stored
    in single precision, series in their own.

    **Arguments:**

    - `folder`: of the files; it must exist, and be locked by this run.
    - `observers`, `state`: of the simulation; they decide which frames go to which file.
    - `frames`: shapes and dtypes of one frame of each observer, by name.
    - `t0`, `dt`: the time of step 0 and of a step.
    - `dtype`: of positions, velocities and fields in the files.
    - `sharding`: how frames are sharded over several processes; None where this process has all of them.
    """

    def __init__(
        self,
        folder: Path,
        observers: Sequence[AbstractObserver],
        state: State,
        frames: Frame,
        t0: float,
        dt: float,
        dtype: np.dtype | type = np.float32,
        sharding: FrameSharding | None = None,
    ):
        self.folder, self._sharding = folder, sharding
        self._t0, self._dt = t0, dt
        self._process_group = single_process() if sharding is None else process_group()
        fields = recorded_fields(observers, state)
        self._fields = {name: field.grid.dimension for name, field in fields.items()}
        self._points = {} if sharding is None else {n: _points(f) for n, f in fields.items()}
        self._not_vectors = {n for n, f in fields.items() if _looks_like_vector(f) and not f.vector}
        if sharding is None:
            self._files = make_output_files(folder, observers, state, frames, np.dtype(dtype))
        else:
            # The first process writes what is the same on all; each writes its own blocks into its own file,
            # so that no file ever has two writers.
            self._files = []
            if self._process_group.is_first:
                common = _replicated_frames(frames, sharding)
                self._files = make_output_files(folder, observers, state, common, np.dtype(dtype))
            self._files += self._shard_files(frames, sharding, np.dtype(dtype))
        self._written_here = {name for file in self._files for name in _sources(file)}
        self._pending: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._pending_bytes = 0
        self._committed_at, self._commit_seconds = time.monotonic(), 0.0
        self._run = ""

    def _times(self, steps: np.ndarray) -> np.ndarray:
        """Times on the host in float64, from integer steps: a file's times do not drift."""
        return self._t0 + self._dt * np.asarray(steps, np.float64)

    @property
    def is_sharded(self) -> bool:
        """Whether each of several processes writes its own part of the frames."""
        return self._sharding is not None

    @property
    def exists(self) -> bool:
        """Whether a run has written here."""
        return (self.folder / INDEX_NAME).exists()

    def create(self) -> None:
        """Create the files without frames, and the index that lists them.

        In a job of several processes all must call it.

        **Errors:** `FileError` when the folder holds frames of another run.
        """
        for file in self._files:
            if file.path.exists() and _holds_frames(file):
                raise FileError(
                    f"{file.path} holds frames of a run without a checkpoint to go on from: remove "
                    "it, or give this run another folder"
                )
        if self._sharding is None:  # else the others' files are listed, too
            self._require_alone()
        # A random id ties files and checkpoints of one run together. All processes take the first one's.
        self._run = self._process_group.all_gather_object(
            secrets.token_hex(8), "the name of a run"
        )[0]
        for file in self._files:
            file.create(self._run)
        files: dict[str, str] = {}
        # The gather returns once all processes have created their files: only then is the index written.
        for files_of_process in self._process_group.all_gather_object(
            {file.path.name: file.kind for file in self._files}, "files"
        ):
            files |= files_of_process
        index = {"format": 1, "run": self._run, "files": files, "provenance": collect_provenance()}
        if self._shards() is not None:
            index["shards"] = self._shards()
        if self._process_group.is_first:
            write_atomically(self.folder / INDEX_NAME, json.dumps(index, indent=1).encode())

    def _require_alone(self) -> None:
        """**Errors:** `FileError` where another run has written files that this one does not, or a sweep."""
        if (self.folder / SWEEP_FILE).exists():
            raise FileError(
                f"{self.folder} holds a sweep, which pk.open would show alone: give this run another folder"
            )
        listed = (read_index(self.folder, INDEX_NAME) or {}).get("files")
        written = {file.path.name for file in self._files}
        for name in sorted(listed if isinstance(listed, dict) else ()):
            path = self.folder / str(name)
            if name not in written and path.parent == self.folder and path.exists():
                raise FileError(
                    f"{path} is of another run, which recorded other quantities: pk.open would show both as "
                    "one. Remove it, or give this run another folder"
                )

    def _shards(self) -> dict[str, Any] | None:
        """The part of the index about shards; None where nothing is sharded."""
        if self._sharding is None or not self._sharding.layouts:
            return None
        files = [shard_name(k) for k in range(self._process_group.process_count)]
        dims = {name: self._dims(name) for name in self._sharding.layouts}
        return self._sharding.to_index(files, dims, self._points, self._not_vectors)

    def _same_shards(self) -> bool:
        """Whether the folder's frames are sharded as this run shards them."""
        found = (read_index(self.folder, INDEX_NAME) or {}).get("shards")
        return found == json.loads(json.dumps(self._shards()))  # JSON makes lists of tuples

    def _shard_files(
        self, frames: Frame, sharding: FrameSharding, dtype: np.dtype
    ) -> list[OutputFile]:
        """The file of this process's blocks; none where nothing is sharded."""
        leaves = dict(leaf for name, frame in frames.items() for leaf in named_leaves(name, frame))
        num_devices = len(sharding.process_devices[self._process_group.process_index])
        blocks = {}
        for name in sharding.layouts:
            stored_dtype = np.dtype(leaves[name].dtype)
            if name in self._fields and np.issubdtype(stored_dtype, np.inexact):
                is_complex = stored_dtype.kind == "c"
                stored_dtype = np.result_type(dtype, np.complex64) if is_complex else dtype
            shape = (num_devices, *sharding.block_shape(name))
            blocks[name] = jax.ShapeDtypeStruct(shape, stored_dtype)
        if not blocks:
            return []
        path = self.folder / shard_name(self._process_group.process_index)
        return [dataclasses.replace(make_series_file(path, blocks), kind="shard")]

    def _dims(self, name: str) -> tuple[str, ...]:
        """Names of the axes of a quantity, time first."""
        count, d = len(self._sharding.layouts[name][1]), self._fields.get(name)
        if d is None:
            return ("time", *(f"axis_{k}" for k in range(count)))
        return ("time", *(f"component_{k}" for k in range(count - d)), *"xyz"[:d])

    def rewind(self, marks: dict[str, Any]) -> None:
        """Truncate every file to its length at a checkpoint.

        In a job of several processes all must call it.

        **Arguments:** `marks`: what `commit_everywhere` returned at the checkpoint, read from its file.

        **Errors:** `MismatchError` when files are missing, shorter, or of another run; `DamagedFileError`.
        """
        lengths, self._run = marks.get("files"), str(marks.get("run"))
        names_here = sorted({file.path.name for file in self._files})
        names = set().union(
            *self._process_group.all_gather_object(names_here, "files to go on with")
        )
        if not isinstance(lengths, dict) or set(lengths) != names or not self._same_shards():
            raise MismatchError(
                f"{self.folder}: the checkpoint goes with the files {sorted(lengths or ())}, this run "
                f"writes {sorted(names)}: resume with the same observers and folder, and where several "
                "processes write, with as many and over the same devices. Frames can go on in another folder: "
                "to='another', checkpoint='this/checkpoints'"
            )
        # If a later file fails, the next attempt truncates the first ones again, which changes nothing.
        for file in self._files:
            if not file.path.exists():
                raise MismatchError(
                    f"{file.path} is missing, which the checkpoint goes with: put it back, or start "
                    "anew in another folder"
                )
            require_sound(file.path)  # a file that is damaged or leads elsewhere is not written to
            file.rewind(lengths[file.path.name], self._run)

    def add(self, frames: Frame, steps: dict[str, np.ndarray]) -> None:
        """Queue frames, time first, with the steps at which they were taken."""
        for frame_name, frame in frames.items():
            for name, values in named_leaves(frame_name, frame):
                if name not in self._written_here:  # the first process writes what all have
                    continue
                self._pending.setdefault(name, []).append((np.asarray(values), steps[frame_name]))
                self._pending_bytes += values.nbytes

    def commit_if_due(self) -> None:
        """Write what is queued if it takes much memory, or the last commit was long ago for what it cost."""
        wait = max(_MIN_SECONDS, COMMIT_INTERVAL_FACTOR * self._commit_seconds)
        if self._pending_bytes > MAX_PENDING_BYTES or time.monotonic() - self._committed_at > wait:
            self.commit()

    def commit(self) -> dict[str, Any]:
        """Write what is queued; return the lengths that the files have then, for a checkpoint.

        **Errors:** `DiskFullError`, `FileError`. Each file then has all of its frames or none; those that were
        not written are still queued.
        """
        began = time.monotonic()
        # Frames of all chunks since the last commit in one array, so that each dataset grows once.
        frames = {
            name: tuple(np.concatenate(x) for x in zip(*pieces, strict=True))
            for name, pieces in self._pending.items()
        }
        for file in self._files:
            of_file = {n: frames[n] for n in _sources(file) if n in frames}
            if of_file:
                file.append(of_file, self._times)
                # File by file: if a later one fails, a second commit does not write these twice.
                for name in of_file:
                    self._pending.pop(name)
        self._pending_bytes = 0
        self._committed_at = time.monotonic()
        self._commit_seconds = self._committed_at - began
        lengths = {file.path.name: file.lengths() for file in self._files}
        return {"run": self._run, "files": lengths}

    def commit_everywhere(self) -> dict[str, Any]:
        """`commit` in all processes; return the lengths of all files, for a checkpoint.

        The checkpoint is written after it: no file is ever shorter than a checkpoint says.
        """
        lengths = {}
        for process_lengths in self._process_group.all_gather_object(
            self.commit()["files"], "how long files are"
        ):
            lengths |= process_lengths
        return {"run": self._run, "files": lengths}


def _looks_like_vector(field: Field) -> bool:
    """Whether it has as many components as its grid has axes."""
    return field.components == (field.grid.dimension,)


def _points(field: Field) -> list[list[float]]:
    """The first point of a field and the distance to the next, per axis."""
    first = [float(np.ravel(x)[0]) for x in field.grid.coordinates(field.location)]
    return [[x, float(h)] for x, h in zip(first, field.grid.image_spacing(), strict=True)]


def _replicated_frames(frames: Frame, sharding: FrameSharding) -> Frame:
    """What is not sharded: frames, and by name the replicated leaves of frames that are sharded in part."""
    replicated: Frame = {}
    for name, frame in frames.items():
        leaves = dict(named_leaves(name, frame))
        replicated_leaves = {leaf: x for leaf, x in leaves.items() if leaf not in sharding.layouts}
        is_replicated = len(replicated_leaves) == len(leaves)
        replicated |= {name: frame} if is_replicated else replicated_leaves
    return replicated


def _sources(file: OutputFile) -> list[str]:
    """Names of the frames that go to a file."""
    return [c.source for stream in file.streams for c in stream.columns if c.source is not None]


def _holds_frames(file: OutputFile) -> bool:
    """Whether a file holds more than step 0. The file of a run that was killed before may be replaced."""
    try:
        return max(file.lengths().values(), default=0) > 1
    except (DamagedFileError, KeyError):
        return True  # not ours, or damaged: not to be replaced without asking
