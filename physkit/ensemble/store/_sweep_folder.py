"""The folder of a sweep: what it is, and one file for each chunk that is done."""

import dataclasses
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from physkit.core import DamagedFileError, FileError, MismatchError
from physkit.storage import (
    TEMPORARY_PREFIX,
    Column,
    Table,
    collect_provenance,
    make_folder,
    provenance_changes,
    read_table,
    write_table,
)

from ..compute._chunk_runner import ChunkResult
from ..design._sweep import Sweep, split_into_chunks
from ..statistics._reductions import Partial, describe_reductions

INDEX = "sweep.h5"
CHUNKS = "chunks"
LOG = "log"
_LATER = ("frames ", "summary ", "at ")  # arrays that are left in the file
_HEALTH = {"reason": 0, "step": -1, "attempts": 1}  # of members with which all went well at once
_NAME = re.compile(r"(\d{6,9})\.h5")


@dataclasses.dataclass(frozen=True)
class StoredChunk:
    """One chunk that is done: of its members what is kept, and what there is to know for statistics."""

    members: np.ndarray
    frames: Any  # by name; read when looked at
    summary: Any
    ok: np.ndarray
    reason: np.ndarray
    step: np.ndarray
    attempts: np.ndarray
    reduced: dict[str, Partial]
    times: Any
    seconds: float
    growths: tuple[str, ...] = ()


class SweepFolder:
    """A folder that holds a sweep, or will.

    - `table`: of `sweep.h5`. `digest`, `members`, `chunk` (members in each), `chunks`: what it says.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.index = self.folder / INDEX
        self._table: Table | None = None

    @property
    def exists(self) -> bool:
        """Whether a sweep has been begun there."""
        return self.index.is_file()

    @property
    def table(self) -> Table:
        """What was written before any chunk.

        **Errors:** `FileError` where there is none, `DamagedFileError`.
        """
        if self._table is None:
            if not self.exists:
                raise FileError(
                    f"{self.folder} holds no sweep: sweep(…, to={str(self.folder)!r}) makes one"
                )
            self._table = read_table(self.index, "sweep")
        return self._table

    def metadata(self, name: str) -> Any:
        """An entry of `sweep.h5`."""
        try:
            return self.table.metadata[name]
        except KeyError as error:
            raise FileError(f"{self.index} does not tell its {name}: it is damaged") from error

    @property
    def digest(self) -> str:
        return str(self.metadata("digest"))

    @property
    def members(self) -> int:
        return int(self.metadata("members"))

    @property
    def chunk(self) -> int:
        return int(self.metadata("chunk"))

    @property
    def chunks(self) -> int:
        return int(self.metadata("chunks"))

    @cached_property
    def _parts(self) -> list[np.ndarray]:
        """The members that each chunk should have."""
        size = int(self.metadata("points")) * int(self.metadata("replicas"))
        return split_into_chunks(self.table["order"], size, self.chunk)

    def open_or_create(self, sweep: Sweep, chunk: int | None, size: Any) -> int:
        """The members in a chunk: as they are there, else as asked for, else `size()`; writes `sweep.h5`.

        **Errors:** `MismatchError` for the folder of another sweep, or other chunks; `FileError` for one that
        holds something else.
        """
        if not self.exists:
            self._create(sweep, chunk if chunk is not None else size())
        self.require_same_sweep(sweep)
        if chunk is not None and chunk != self.chunk:
            raise MismatchError(
                f"{self.folder} was begun with {self.chunk} members in a chunk, not {chunk}: leave chunk= out, "
                "or start anew in another folder"
            )
        return self.chunk

    def require_same_sweep(self, sweep: Sweep) -> None:
        """**Errors:** `MismatchError` when the folder is of another sweep."""
        if self.digest != sweep.digest:
            raise MismatchError(
                f"{self.folder} is of another sweep (digest {self.digest}, this one has {sweep.digest}): its "
                "simulation, state, values, steps, key or statistics differ. Give this one another folder"
            )

    def environment_changes(self) -> list[str]:
        """What of versions and devices is not as it was when the sweep was begun."""
        return provenance_changes(dict(self.table.metadata.get("provenance", {})))

    def require_unused(self) -> None:
        """**Errors:** `FileError` where there is something else than the beginning of a sweep."""
        if self.exists or not self.folder.is_dir():
            return
        known = (CHUNKS, LOG, "sweep.json")
        other = [
            p.name
            for p in self.folder.iterdir()
            if p.name not in known and not p.name.startswith(TEMPORARY_PREFIX)
        ]
        if other:
            raise FileError(
                f"{self.folder} is not empty ({', '.join(sorted(other)[:5])}) and holds no sweep: give "
                "another folder"
            )

    def _create(self, sweep: Sweep, chunk: int) -> None:
        make_folder(self.folder)
        self.require_unused()
        make_folder(self.folder / CHUNKS)
        columns = {"member": Column(np.arange(sweep.members), ("member",))}
        for name, values in sweep.coordinates.items():
            dims = ("member", *(f"{name}_{k}" for k in range(values.ndim - 1)))
            columns[name] = Column(values, dims)
        columns["order"] = Column(sweep.order, ("position",))
        chunks = sweep.chunks(chunk)
        said = {
            "digest": sweep.digest,
            "members": sweep.members,
            "points": sweep.points,
            "replicas": sweep.replicas,
            "groups": list(sweep.groups or ()),
            "coordinates": list(sweep.coordinates),
            "steps": sweep.steps,
            "reduce": describe_reductions(sweep.reduce),
            "chunk": chunk,
            "chunks": len(chunks),
            "what": repr(sweep),
            "provenance": collect_provenance(),
        }
        write_table(self.index, "sweep", columns, said)

    # --- chunks ---------------------------------------------------------------------------------

    def path(self, number: int) -> Path:
        """Where a chunk is, once it is done."""
        return self.folder / CHUNKS / f"{number:06d}.h5"

    def done(self) -> list[int]:
        """Numbers of the chunks that there are: by their names alone."""
        there = self.folder / CHUNKS
        if not there.is_dir():
            return []
        found = (_NAME.fullmatch(p.name) for p in there.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def save(
        self,
        sweep: Sweep,
        number: int,
        members: np.ndarray,
        out: ChunkResult,
        reduced: dict[str, Partial],
        times: dict[str, np.ndarray],
    ) -> None:
        """One more chunk."""
        columns = {
            "member": Column(members.astype(np.int64), ("member",)),
            "ok": Column(out.ok, ("member",)),
            "reason": Column(out.reason, ("member",)),
            "step": Column(out.step, ("member",)),
            "attempts": Column(out.attempts, ("member",)),
        }
        for name, values in sweep.coordinates.items():
            dims = ("member", *(f"{name}_{k}" for k in range(values.ndim - 1)))
            columns[f"at {name}"] = Column(values[members], dims)
        for name, values in times.items():
            dims = (f"time of {name}",) if values.ndim == 1 else ("member", f"{name} time")
            columns[f"time of {name}"] = Column(values, dims)
        rows: dict[str, list[str]] = {"frames": [], "summary": []}
        for kind, found in (("frames", out.frames), ("summary", out.summary)):
            for name, values in found.items():
                several = kind == "frames" and times[name].ndim > 1
                axis = f"{name} time" if several else f"time of {name}"
                lead = ("member", axis) if kind == "frames" else ("member",)
                inner = [f"{name} axis {k}" for k in range(values.ndim - len(lead))]
                columns[f"{kind} {name}"] = Column(values, (*lead, *inner))
                rows[kind].append(name)
        for title, part in reduced.items():
            for name, values in part.items():
                values = np.asarray(values)
                dims = tuple(f"{title} {name} axis {k}" for k in range(values.ndim))
                columns[f"reduced {title} {name}"] = Column(values, dims)
        said = {
            "digest": sweep.digest,
            "chunk": number,
            "seconds": out.seconds,
            "growths": list(out.growths),
            "uneventful": bool(np.all(out.ok) and np.all(out.attempts == 1)),
            "reduced": {title: list(part) for title, part in reduced.items()},
            "provenance": collect_provenance(),
            **rows,
        }
        write_table(self.path(number), "chunk", columns, said)

    def load(self, number: int) -> StoredChunk:
        """A chunk that is done; frames are left in the file until they are looked at.

        **Errors:** `DamagedFileError`, `MismatchError` for a chunk of another sweep.
        """
        path = self.path(number)
        try:
            table = read_table(path, "chunk", _at_once)
        except DamagedFileError as error:
            raise DamagedFileError(f"{error}; or remove it, and it is computed anew") from error
        said = table.metadata
        if said.get("chunk") != number:
            raise MismatchError(
                f"{path} is chunk {said.get('chunk')}: remove it, and chunk {number} is computed anew"
            )
        if said.get("digest") != self.digest:
            raise MismatchError(
                f"{path} belongs to another sweep (digest {said.get('digest')}, not {self.digest}): remove "
                "it, and it is computed anew"
            )
        pick = lambda kind: {n: LazyArray(table, f"{kind} {n}") for n in said.get(kind, [])}
        members = table["member"]
        if not (number < len(self._parts) and np.array_equal(members, self._parts[number])):
            raise MismatchError(
                f"{path} holds other members than chunk {number} of this sweep, of {self.chunk} members each: "
                "remove it, and it is computed anew"
            )
        if said.get("uneventful"):
            health = {name: np.full(len(members), usual) for name, usual in _HEALTH.items()}
        else:
            health = {name: table[name] for name in _HEALTH}
        reduced = {
            title: {name: table[f"reduced {title} {name}"] for name in names}
            for title, names in said.get("reduced", {}).items()
        }
        return StoredChunk(
            members=members,
            frames=pick("frames"),
            summary=pick("summary"),
            ok=health["reason"] == 0,
            **health,
            reduced=reduced,
            times={n: table[f"time of {n}"] for n in said.get("frames", [])},
            seconds=float(said.get("seconds", 0.0)),
            growths=tuple(said.get("growths", ())),
        )

    def loaded(self) -> Iterator[StoredChunk]:
        """All chunks that are done, in order."""
        for number in self.done():
            yield self.load(number)

    def remove_temporaries(self) -> None:
        """Remove what killed workers left half written. Only when no worker is running."""
        for old in (self.folder / CHUNKS).glob(f"{TEMPORARY_PREFIX}*"):
            old.unlink(missing_ok=True)


def _at_once(name: str, said: dict[str, Any]) -> bool:
    """Whether an array of a chunk is read together with it."""
    if name == "ok" or name.startswith(_LATER):
        return False
    return name not in _HEALTH or not said.get("uneventful")


class LazyArray:
    """An array that stays in its file until it is indexed."""

    def __init__(self, table: Table, name: str):
        self._table, self._name = table, name
        self.shape, self.dtype = table.shapes[name], table.dtypes[name]

    def __getitem__(self, index: Any) -> np.ndarray:
        return self._table.read(self._name, index)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        del copy
        values = self[()]
        return values if dtype is None else values.astype(dtype)
