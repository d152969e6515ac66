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

from physkit.core import FileError, MismatchError, get_component
from physkit.observe import AbstractObserver, Every, FieldValues, Positions, Velocities
from physkit.parallel import process_group, single_process
from physkit.particles import Particles

from .._atomic import write_atomically
from .._provenance import collect_provenance
from ._field_files import make_field_file
from ._frame_sharding import FrameSharding, read_index, shard_name
from ._growing_files import OutputFile
from ._h5md import make_trajectory_file
from ._recording import require_sound
from ._series_files import make_series_file, named_leaves

INDEX_NAME = "run.json"
MAX_PENDING_BYTES = 2**26  # bytes of frames that wait for the next commit
COMMIT_INTERVAL_FACTOR = 20  # a commit may cost one part in so many of a run's time
_SECONDS = 1.0


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
        state: Any,
        frames: dict[str, Any],
        t0: float,
        dt: float,
        dtype: Any = np.float32,
        sharding: FrameSharding | None = None,
    ):
        self.folder, self._cutting = folder, sharding
        self._job = single_process() if sharding is None else process_group()
        self._time = lambda steps: t0 + dt * np.asarray(steps, np.float64)
        fields = _of_fields(observers, state)
        self._fields = {name: field.grid.dimension for name, field in fields.items()}
        self._points = {} if sharding is None else {n: _points(f) for n, f in fields.items()}
        if sharding is None:
            self._books = _books(folder, observers, state, frames, np.dtype(dtype))
        else:
            left = _common(frames, sharding)
            common = (
                _books(folder, observers, state, left, np.dtype(dtype))
                if self._job.is_first
                else []
            )
            self._books = common + self._shard(frames, sharding, np.dtype(dtype))
        self._own = {name for book in self._books for name in _names(book)}
        self._held: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._bytes = 0
        self._committed, self._cost = time.monotonic(), 0.0
        self._run = ""

    @property
    def exists(self) -> bool:
        """Whether a run has written here."""
        return (self.folder / INDEX_NAME).exists()

    def create(self) -> None:
        """Begin with empty files.

        **Errors:** `FileError` when the folder holds frames of another run.
        """
        for book in self._books:
            if book.path.exists() and _holds_frames(book):
                raise FileError(
                    f"{book.path} holds frames of a run without a checkpoint to go on from: remove "
                    "it, or give this run another folder"
                )
        self._run = self._job.all_gather_object(secrets.token_hex(8), "the name of a run")[0]
        for book in self._books:
            book.create(self._run)
        files: dict[str, str] = {}
        for own in self._job.all_gather_object(
            {book.path.name: book.kind for book in self._books}, "files"
        ):
            files |= own
        index = {"format": 1, "run": self._run, "files": files, "provenance": collect_provenance()}
        if self._shards() is not None:
            index["shards"] = self._shards()
        if self._job.is_first:
            write_atomically(self.folder / INDEX_NAME, json.dumps(index, indent=1).encode())

    def _shards(self) -> dict[str, Any] | None:
        """What the index says of shards."""
        if self._cutting is None or not self._cutting.layouts:
            return None
        files = [shard_name(k) for k in range(self._job.process_count)]
        dims = {name: self._dims(name) for name in self._cutting.layouts}
        return self._cutting.to_index(files, dims, self._points)

    def _same_shards(self) -> bool:
        """Whether those of the folder are cut as this run cuts."""
        found = (read_index(self.folder, INDEX_NAME) or {}).get("shards")
        return found == json.loads(json.dumps(self._shards()))

    def _shard(
        self, frames: dict[str, Any], cutting: FrameSharding, dtype: np.dtype
    ) -> list[OutputFile]:
        """The file of this process's blocks."""
        leaves = dict(leaf for name, frame in frames.items() for leaf in named_leaves(name, frame))
        held = len(cutting.process_devices[self._job.process_index])
        blocks = {}
        for name in cutting.layouts:
            kind = np.dtype(leaves[name].dtype)
            if name in self._fields and np.issubdtype(kind, np.inexact):
                kind = np.result_type(dtype, np.complex64) if kind.kind == "c" else dtype
            shape = (held, *cutting.block_shape(name))
            blocks[name] = jax.ShapeDtypeStruct(shape, kind)
        if not blocks:
            return []
        path = self.folder / shard_name(self._job.process_index)
        return [dataclasses.replace(make_series_file(path, blocks), kind="shard")]

    def _dims(self, name: str) -> tuple[str, ...]:
        """Names of the axes of a quantity, time first."""
        count, d = len(self._cutting.layouts[name][1]), self._fields.get(name)
        if d is None:
            return ("time", *(f"axis_{k}" for k in range(count)))
        return ("time", *(f"component_{k}" for k in range(count - d)), *"xyz"[:d])

    def rewind(self, marks: dict[str, Any]) -> None:
        """Cut every file to where it was at a checkpoint.

        **Errors:** `MismatchError` when files are missing, shorter, or of another run.
        """
        lengths, self._run = marks.get("files"), str(marks.get("run"))
        own = {book.path.name for book in self._books}
        names = set().union(*self._job.all_gather_object(sorted(own), "files to go on with"))
        if not isinstance(lengths, dict) or set(lengths) != names or not self._same_shards():
            raise MismatchError(
                f"{self.folder}: the checkpoint goes with the files {sorted(lengths or ())}, this run "
                f"writes {sorted(names)}: resume with the same observers and folder, and where several "
                "processes write, with as many and over the same devices. Frames can go on in another folder: "
                "to='another', checkpoint='this/checkpoints'"
            )
        for book in self._books:
            if not book.path.exists():
                raise MismatchError(
                    f"{book.path} is missing, which the checkpoint goes with: put it back, or start "
                    "anew in another folder"
                )
            require_sound(book.path)  # a file that is damaged or leads elsewhere is not written to
            book.rewind(lengths[book.path.name], self._run)

    def add(self, frames: dict[str, Any], steps: dict[str, np.ndarray]) -> None:
        """Frames, time first, and the steps they were taken at."""
        for whole, frame in frames.items():
            for name, values in named_leaves(whole, frame):
                if name not in self._own:
                    continue  # another process writes it
                self._held.setdefault(name, []).append((np.asarray(values), steps[whole]))
                self._bytes += values.nbytes

    def commit_if_due(self) -> None:
        """Write what waits, unless the last commit was too recent for what it cost."""
        wait = max(_SECONDS, COMMIT_INTERVAL_FACTOR * self._cost)
        if self._bytes > MAX_PENDING_BYTES or time.monotonic() - self._committed > wait:
            self.commit()

    def commit(self) -> dict[str, Any]:
        """Write what waits; how long the files are now, for a checkpoint.

        **Errors:** `DiskFullError`, `FileError`; files are as they were before then.
        """
        began = time.monotonic()
        frames = {
            name: tuple(np.concatenate(x) for x in zip(*pieces, strict=True))
            for name, pieces in self._held.items()
        }
        for book in self._books:
            own = {n: frames[n] for n in _names(book) if n in frames}
            if own:
                book.append(own, self._time)
                for name in own:
                    self._held.pop(name)
        self._bytes = 0
        self._committed = time.monotonic()
        self._cost = self._committed - began
        lengths = {book.path.name: book.lengths() for book in self._books}
        return {"run": self._run, "files": lengths}

    def commit_everywhere(self) -> dict[str, Any]:
        """`commit` in all processes; how long all files are now, for a checkpoint."""
        lengths = {}
        for own in self._job.all_gather_object(self.commit()["files"], "how long files are"):
            lengths |= own
        return {"run": self._run, "files": lengths}


def _of_fields(observers: Sequence[AbstractObserver], state: Any) -> dict[str, Any]:
    """Recorded fields by the names of their records."""
    return {
        name: get_component(state, quantity.component)
        for observer in observers
        if isinstance(observer, Every)
        for name, quantity in observer.outputs.items()
        if isinstance(quantity, FieldValues)
    }


def _points(field: Any) -> list[list[float]]:
    """The first point of a field and the distance of the next, per axis."""
    first = [float(np.ravel(x)[0]) for x in field.grid.coordinates(field.location)]
    return [[x, float(h)] for x, h in zip(first, np.asarray(field.grid.spacing), strict=True)]


def _common(frames: dict[str, Any], cutting: FrameSharding) -> dict[str, Any]:
    """What is not cut: frames, and leaves of those that are in part."""
    left = {}
    for name, frame in frames.items():
        leaves = dict(named_leaves(name, frame))
        rest = {leaf: x for leaf, x in leaves.items() if leaf not in cutting.layouts}
        left |= {name: frame} if len(rest) == len(leaves) else rest
    return left


def _names(book: OutputFile) -> list[str]:
    return [c.source for t in book.streams for c in t.columns if c.source is not None]


def _holds_frames(book: OutputFile) -> bool:
    """Whether there is more in a file than step 0."""
    try:
        return max(book.lengths().values(), default=0) > 1
    except (OSError, KeyError, RuntimeError):
        return True


def _books(folder, observers, state, frames: dict[str, Any], dtype: np.dtype) -> list[OutputFile]:
    """Which frames go to which file."""
    left = dict(frames)
    named = {
        name: (quantity, observer.interval)
        for observer in observers
        if isinstance(observer, Every)
        for name, quantity in observer.outputs.items()
    }
    books, taken = [], set()
    several = isinstance(state, dict)

    def path(kind: str, component: str | None, ending: str) -> Path:
        called = f"{kind}-{component}" if several and component is not None else kind
        number, name = 1, f"{called}{ending}"
        while name in taken:
            number += 1
            name = f"{called}-{number}{ending}"
        taken.add(name)
        return folder / name

    for name, (quantity, interval) in named.items():
        if name in left and isinstance(quantity, Positions):
            of = _of(state, quantity.component, Particles)
            alike = [
                n
                for n, (q, i) in named.items()
                if isinstance(q, Velocities)
                and _of(state, q.component, Particles) == of
                and i == interval
            ]
            velocity = next((n for n in alike if n in left), None)
            particles = get_component(state, of)
            where = path("trajectory", of, ".h5md")
            books.append(make_trajectory_file(where, particles, name, velocity, dtype))
            left.pop(name)
            left.pop(velocity, None)
    groups: dict[Any, dict[str, Any]] = {}
    for name, (quantity, interval) in named.items():
        if name in left and isinstance(quantity, FieldValues):
            groups.setdefault((quantity.component, interval), {})[name] = left.pop(name)
    for (of, _), own in groups.items():
        books.append(
            make_field_file(path("fields", of, ".vtkhdf"), get_component(state, of), own, dtype)
        )
    if left:
        books.append(make_series_file(folder / "series.h5", left))
    return books


def _of(state: Any, component: str | None, kind: type) -> str | None:
    """The name of the component that is meant."""
    if component is None and isinstance(state, dict):
        return next(name for name, part in state.items() if isinstance(part, kind))
    return component
