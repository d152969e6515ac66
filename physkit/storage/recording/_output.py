"""The folder that a run's frames go to as it goes: files by kind, appended in whole commits."""

import dataclasses
import json
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from physkit.core import FileError, Frame, MismatchError, State
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
MAX_PENDING_BYTES = 2**26  # bytes of frames that wait for the next commit
COMMIT_INTERVAL_FACTOR = 20  # commits take at most this fraction of a run's time: one part in 20
_MIN_SECONDS = 1.0  # between two commits


class Output:
    """Writes recorded frames into a folder: particles as H5MD, fields as netCDF-4 and VTKHDF at once,
    everything else as series.

    Frames wait in memory until `commit`, at which each file changes as a whole. Positions and fields
    are stored in single precision, series in their own.
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
        if sharding is None:
            self._files = make_output_files(folder, observers, state, frames, np.dtype(dtype))
        else:
            # What is the same on every process the first one writes; blocks go into a file per process.
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
    def exists(self) -> bool:
        """Whether a run has written here."""
        return (self.folder / INDEX_NAME).exists()

    def create(self) -> None:
        """Begin with empty files.

        **Errors:** `FileError` when the folder holds frames of another run.
        """
        for file in self._files:
            if file.path.exists() and _holds_frames(file):
                raise FileError(
                    f"{file.path} holds frames of a run without a checkpoint to go on from: remove "
                    "it, or give this run another folder"
                )
        self._run = self._process_group.all_gather_object(
            secrets.token_hex(8), "the name of a run"
        )[0]
        for file in self._files:
            file.create(self._run)
        files: dict[str, str] = {}
        for own in self._process_group.all_gather_object(
            {file.path.name: file.kind for file in self._files}, "files"
        ):
            files |= own
        index = {"format": 1, "run": self._run, "files": files, "provenance": collect_provenance()}
        if self._shards() is not None:
            index["shards"] = self._shards()
        if self._process_group.is_first:
            write_atomically(self.folder / INDEX_NAME, json.dumps(index, indent=1).encode())

    def _shards(self) -> dict[str, Any] | None:
        """What the index says of shards; None where nothing is sharded."""
        if self._sharding is None or not self._sharding.layouts:
            return None
        files = [shard_name(k) for k in range(self._process_group.process_count)]
        dims = {name: self._dims(name) for name in self._sharding.layouts}
        return self._sharding.to_index(files, dims, self._points)

    def _same_shards(self) -> bool:
        """Whether the folder's frames are sharded as this run shards them."""
        found = (read_index(self.folder, INDEX_NAME) or {}).get("shards")
        return found == json.loads(json.dumps(self._shards()))

    def _shard_files(
        self, frames: Frame, sharding: FrameSharding, dtype: np.dtype
    ) -> list[OutputFile]:
        """The file of this process's blocks; none where nothing is sharded."""
        leaves = dict(leaf for name, frame in frames.items() for leaf in named_leaves(name, frame))
        held = len(sharding.process_devices[self._process_group.process_index])
        blocks = {}
        for name in sharding.layouts:
            stored = np.dtype(leaves[name].dtype)
            if name in self._fields and np.issubdtype(stored, np.inexact):
                stored = np.result_type(dtype, np.complex64) if stored.kind == "c" else dtype
            shape = (held, *sharding.block_shape(name))
            blocks[name] = jax.ShapeDtypeStruct(shape, stored)
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

        **Arguments:** `marks`: what `commit_everywhere` returned then.

        **Errors:** `MismatchError` when files are missing, shorter, or of another run.
        """
        lengths, self._run = marks.get("files"), str(marks.get("run"))
        own = {file.path.name for file in self._files}
        names = set().union(
            *self._process_group.all_gather_object(sorted(own), "files to go on with")
        )
        if not isinstance(lengths, dict) or set(lengths) != names or not self._same_shards():
            raise MismatchError(
                f"{self.folder}: the checkpoint goes with the files {sorted(lengths or ())}, this run "
                f"writes {sorted(names)}: resume with the same observers and folder, and where several "
                "processes write, with as many and over the same devices. Frames can go on in another folder: "
                "to='another', checkpoint='this/checkpoints'"
            )
        for file in self._files:
            if not file.path.exists():
                raise MismatchError(
                    f"{file.path} is missing, which the checkpoint goes with: put it back, or start "
                    "anew in another folder"
                )
            require_sound(file.path)  # a file that is damaged or leads elsewhere is not written to
            file.rewind(lengths[file.path.name], self._run)

    def add(self, frames: Frame, steps: dict[str, np.ndarray]) -> None:
        """Queue frames, time first, with the steps they were taken at."""
        for frame_name, frame in frames.items():
            for name, values in named_leaves(frame_name, frame):
                if name not in self._written_here:
                    continue  # another process writes it
                self._pending.setdefault(name, []).append((np.asarray(values), steps[frame_name]))
                self._pending_bytes += values.nbytes

    def commit_if_due(self) -> None:
        """Write what is queued, unless the last commit was too recent for what it cost."""
        wait = max(_MIN_SECONDS, COMMIT_INTERVAL_FACTOR * self._commit_seconds)
        if self._pending_bytes > MAX_PENDING_BYTES or time.monotonic() - self._committed_at > wait:
            self.commit()

    def commit(self) -> dict[str, Any]:
        """Write what is queued; the lengths of the files then, for a checkpoint.

        **Errors:** `DiskFullError`, `FileError`; files are as they were before then.
        """
        began = time.monotonic()
        frames = {
            name: tuple(np.concatenate(x) for x in zip(*pieces, strict=True))
            for name, pieces in self._pending.items()
        }
        for file in self._files:
            own = {n: frames[n] for n in _sources(file) if n in frames}
            if own:
                file.append(own, self._times)
                for name in own:
                    self._pending.pop(name)
        self._pending_bytes = 0
        self._committed_at = time.monotonic()
        self._commit_seconds = self._committed_at - began
        lengths = {file.path.name: file.lengths() for file in self._files}
        return {"run": self._run, "files": lengths}

    def commit_everywhere(self) -> dict[str, Any]:
        """`commit` in all processes; the lengths of all files then, for a checkpoint."""
        lengths = {}
        for own in self._process_group.all_gather_object(
            self.commit()["files"], "how long files are"
        ):
            lengths |= own
        return {"run": self._run, "files": lengths}


def _points(field: Field) -> list[list[float]]:
    """The first point of a field and the distance of the next, per axis."""
    first = [float(np.ravel(x)[0]) for x in field.grid.coordinates(field.location)]
    return [[x, float(h)] for x, h in zip(first, np.asarray(field.grid.spacing), strict=True)]


def _replicated_frames(frames: Frame, sharding: FrameSharding) -> Frame:
    """What is not sharded: whole frames, and single leaves of frames that are sharded in part."""
    replicated: Frame = {}
    for name, frame in frames.items():
        leaves = dict(named_leaves(name, frame))
        rest = {leaf: x for leaf, x in leaves.items() if leaf not in sharding.layouts}
        replicated |= {name: frame} if len(rest) == len(leaves) else rest
    return replicated


def _sources(file: OutputFile) -> list[str]:
    """Names of the frames that go to a file."""
    return [c.source for stream in file.streams for c in stream.columns if c.source is not None]


def _holds_frames(file: OutputFile) -> bool:
    """Whether there is more in a file than step 0."""
    try:
        return max(file.lengths().values(), default=0) > 1
    except (OSError, KeyError, RuntimeError):
        return True
