"""The folder of a sweep: `sweep.h5` says what it is, and each finished chunk is one file."""

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from physkit.core import DamagedFileError, FileError, MismatchError
from physkit.storage import (
    SWEEP_FILE,
    TEMPORARY_PREFIX,
    Column,
    Identity,
    Table,
    collect_provenance,
    compare_identities,
    damaged_error,
    make_folder,
    provenance_changes,
    read_table,
    set_aside,
    write_table,
)

from ..design._sweep import Sweep, split_into_chunks
from ..statistics._reductions import (
    AbstractReduction,
    describe_reductions,
    restore_reductions,
)
from ._chunk_checkpoint import ChunkCheckpoint
from ._chunk_file import coordinate_dims, read_chunk, refuse_malformed, write_chunk
from ._chunk_store import AbstractChunkStore, SweepDescription
from ._stored_chunk import StoredChunk

CHUNK_FOLDER = "chunks"
LOG_FOLDER = "log"
_REMEDY = "give the sweep another folder, or take the file from a backup"
_CHUNK_FILE = re.compile(r"([0-9]{6,9})\.h5")


class SweepFolder(AbstractChunkStore):
    """A folder that holds a sweep, or will.

    - `table`: of `sweep.h5`; `digest`, `num_members`, `chunk_size`, `num_chunks`: entries of it.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.index = self.folder / SWEEP_FILE
        self._table: Table | None = None

    @property
    def exists(self) -> bool:
        """Whether a sweep has been begun there."""
        return self.index.is_file()

    @property
    def table(self) -> Table:
        """The table that was written before any chunk.

        **Errors:** `FileError` where there is none, `DamagedFileError`.
        """
        if self._table is None:
            # Kept: the index is written once, before any chunk, and never changed.
            if not self.exists:
                raise FileError(
                    f"{self.folder} holds no sweep: sweep(…, to={str(self.folder)!r}) makes one"
                )
            table = read_table(self.index, "sweep")
            require_consistent(table)
            self._table = table
        return self._table

    def metadata(self, name: str) -> Any:
        """An entry of `sweep.h5`."""
        try:
            return self.table.metadata[name]
        except KeyError as error:
            raise FileError(f"{self.index} has no entry {name!r}: it is damaged") from error

    @property
    def digest(self) -> str:
        """The digest of the sweep."""
        return str(self.metadata("digest"))

    @property
    def num_members(self) -> int:
        """Members of the sweep."""
        return int(self.metadata("members"))

    @property
    def chunk_size(self) -> int:
        """Members in a chunk."""
        return int(self.metadata("chunk"))

    @property
    def num_chunks(self) -> int:
        """Chunks of the sweep."""
        return int(self.metadata("chunks"))

    @property
    def description(self) -> SweepDescription:
        return SweepDescription(
            num_members=self.num_members,
            num_chunks=self.num_chunks,
            coordinates={name: self.table[name] for name in self.metadata("coordinates")},
            title=str(self.metadata("what")),
            groups=self.metadata("groups"),
        )

    @property
    def shipped_reductions(self) -> tuple[AbstractReduction, ...]:
        """The statistics of the sweep, but for a user's own."""
        with refuse_malformed(self.index, _REMEDY):
            return restore_reductions(self.metadata("reduce"))

    @cached_property
    def _members_of_chunks(self) -> list[np.ndarray]:
        """The members that each chunk should have."""
        group_size = int(self.metadata("points")) * int(self.metadata("replicas"))
        return split_into_chunks(self.table["order"], group_size, self.chunk_size)

    def open_or_create(
        self, sweep: Sweep, chunk_size: int | None, default_size: Callable[[], int]
    ) -> int:
        """Members in a chunk: as the sweep was begun, else as asked for, else `default_size()`.

        Writes `sweep.h5` where there is none.

        **Errors:** `MismatchError` for the folder of another sweep, or chunks of another size; `FileError`
        for a folder that holds something else.
        """
        if not self.exists:
            self._create(sweep, chunk_size if chunk_size is not None else default_size())
        # Also after creating it: another process may have done so before, and what is on disk counts.
        self.require_same_sweep(sweep)
        if chunk_size is not None and chunk_size != self.chunk_size:
            raise MismatchError(
                f"{self.folder} was begun with {self.chunk_size} members in a chunk, not {chunk_size}: "
                "leave chunk_size= (--chunk-size) out, or start anew in another folder"
            )
        return self.chunk_size

    def require_same_sweep(self, sweep: Sweep) -> list[str]:
        """What of the sweep cannot be compared with that of the folder, or differs by rounding, in words.

        **Errors:** `MismatchError` for the folder of another sweep.
        """
        there = Identity.from_table(self.table.metadata.get("identity"))
        if there is None:
            return self._require_same_digest(sweep)
        changes = compare_identities(sweep.identity, there, "folder")
        if lines := changes.describe():
            raise MismatchError(
                "\n  ".join(
                    [
                        f"{self.folder} is of another sweep: give this one another folder, or remove that one. "
                        "What differs:",
                        *lines,
                    ]
                )
            )
        notes = [f"what cannot be compared: {what}" for what in changes.unchecked]
        if changes.rounded:
            notes.append(f"by no more than rounding differ: {', '.join(changes.rounded[:5])}")
        # They change no number, and are no part of the identity; but the folder would keep the first ones.
        names = self.metadata("groups")
        if sweep.groups is not None and list(sweep.groups) != names:
            raise MismatchError(
                f"{self.folder} calls its groups {names}, this sweep {list(sweep.groups)}: take those of the "
                "folder, leave groups= out, or give this sweep another folder"
            )
        return notes

    def _require_same_digest(self, sweep: Sweep) -> list[str]:
        """`require_same_sweep` in a folder of version 0.2 or before."""
        version = dict(self.table.metadata.get("provenance", {})).get("physkit")
        if self.digest != sweep.digest:
            raise MismatchError(
                f"{self.folder} is of another sweep (digest {self.digest}, this one has {sweep.digest}): its "
                "simulation, state, values, steps, key or statistics differ, or what physkit notes of them "
                f"does (it was begun by {version}). Give this one another folder"
            )
        return [
            f"physkit {version} did not note the code: whether methods and helpers are those of the members "
            "that there are cannot be checked"
        ]

    def set_aside_damaged(self, numbers: Iterable[int]) -> list[int]:
        """Rename those of these finished chunks that are damaged, so that they count as missing; their numbers.

        Every array is read and checked.
        """
        damaged = []
        for number in numbers:
            path = self.chunk_path(number)
            try:
                self._read_fully(number)
            except DamagedFileError as error:
                set_aside(path, error, f"chunk {number} is computed anew")
                damaged.append(number)
        return damaged

    def _read_fully(self, number: int) -> None:
        path = self.chunk_path(number)
        if not path.exists():
            return
        table = read_table(path, "chunk")
        for name in table:
            table[name]
        self.load(number)

    def environment_changes(self) -> list[str]:
        """Versions and devices that are not those with which the sweep was begun."""
        return provenance_changes(dict(self.table.metadata.get("provenance", {})))

    def require_unused(self) -> None:
        """**Errors:** `FileError` where the folder holds anything but the beginning of a sweep."""
        if self.exists or not self.folder.is_dir():
            return
        # Chunks and logs may exist before the index: workers make their folders first.
        known = (CHUNK_FOLDER, LOG_FOLDER, "sweep.json")
        other = [
            path.name
            for path in self.folder.iterdir()
            if path.name not in known and not path.name.startswith(TEMPORARY_PREFIX)
        ]
        if other:
            raise FileError(
                f"{self.folder} is not empty ({', '.join(sorted(other)[:5])}) and holds no sweep: give "
                "another folder"
            )

    def _create(self, sweep: Sweep, chunk_size: int) -> None:
        make_folder(self.folder)
        self.require_unused()
        make_folder(self.folder / CHUNK_FOLDER)
        columns = {"member": Column(np.arange(sweep.num_members), ("member",))}
        for name, values in sweep.coordinates.items():
            columns[name] = Column(values, coordinate_dims(name, values))
        columns["order"] = Column(sweep.order, ("position",))
        metadata = {
            "digest": sweep.digest,
            "members": sweep.num_members,
            "points": sweep.num_points,
            "replicas": sweep.replicas,
            "groups": list(sweep.groups or ()),
            "coordinates": list(sweep.coordinates),
            "steps": sweep.steps,
            "reduce": describe_reductions(sweep.reduce),
            "chunk": chunk_size,
            "chunks": len(sweep.chunks(chunk_size)),
            "what": repr(sweep),
            "provenance": collect_provenance(),
            "identity": sweep.identity.as_table(),
        }
        # Of processes that begin at once the first decides, for all, how many members are in a chunk.
        write_table(self.index, "sweep", columns, metadata, replace=False)

    def chunk_path(self, number: int) -> Path:
        """The file of a chunk, which exists if and only if the chunk is finished."""
        return self.folder / CHUNK_FOLDER / _chunk_name(number)

    def finished_chunks(self) -> list[int]:
        """Numbers of the chunks that are finished, by the names of their files alone."""
        # No file is opened: workers and `status` ask often. A file that is being written has a temporary
        # name, so that a name that matches is that of a finished chunk.
        folder = self.folder / CHUNK_FOLDER
        if not folder.is_dir():
            return []
        matches = (_CHUNK_FILE.fullmatch(path.name) for path in folder.iterdir())
        # Each chunk has one name: 0000001.h5 is not that of chunk 1.
        return sorted(int(m[1]) for m in matches if m and m[0] == _chunk_name(int(m[1])))

    def save(self, sweep: Sweep, number: int, chunk: StoredChunk) -> None:
        """Write a finished chunk."""
        # The digest of the folder: that of a sweep names bytecode, which depends on the version of Python.
        write_chunk(self.chunk_path(number), sweep, number, chunk, self.digest)

    def checkpoint(self, number: int, members: np.ndarray) -> ChunkCheckpoint:
        return ChunkCheckpoint(
            self.chunk_path(number).with_suffix(".partial"), self.digest, members
        )

    def remove_checkpoints(self, finished: Iterable[int]) -> None:
        """Remove the checkpoints of finished chunks, which a kill just after the last write leaves."""
        left = {path.name for path in (self.folder / CHUNK_FOLDER).glob("*.partial")}
        for number in finished if left else ():
            if (path := self.chunk_path(number).with_suffix(".partial")).name in left:
                path.unlink(missing_ok=True)

    def load(self, number: int) -> StoredChunk:
        """Read a finished chunk; frames stay in the file until they are indexed.

        **Errors:** `DamagedFileError`, `MismatchError` for a chunk of another sweep.
        """
        path = self.chunk_path(number)
        chunk = read_chunk(path, number, self.digest)
        # The digest does not cover the chunk size: the chunk may stem from the same sweep in other chunks.
        expected = self._members_of_chunks
        if number >= len(expected) or not np.array_equal(chunk.members, expected[number]):
            raise MismatchError(
                f"{path} holds other members than chunk {number} of this sweep, of {self.chunk_size} "
                "members each: remove it, and it is computed anew"
            )
        return chunk


def _chunk_name(number: int) -> str:
    return f"{number:06d}.h5"


def require_consistent(table: Table) -> None:
    """**Errors:** `DamagedFileError` for an index whose entries are not those of its own arrays."""
    names = ("members", "points", "replicas", "chunk", "chunks")
    counts: dict[str, Any] = {name: table.metadata.get(name) for name in names}
    members = len(table["order"]) if "order" in table else 0
    if any(type(count) is not int or count < 1 for count in counts.values()) or not members:
        raise damaged_error(table.path, f"its counts are {counts}", _REMEDY)
    group_size = counts["points"] * counts["replicas"]
    groups, rest = divmod(members, group_size)
    chunks = groups * -(-group_size // counts["chunk"])
    if counts["members"] != members or rest or counts["chunks"] != chunks:
        raise damaged_error(
            table.path, f"its counts, {counts}, are not those of {members} members", _REMEDY
        )
    if not np.array_equal(np.sort(np.ravel(table["order"])), np.arange(members)):
        raise damaged_error(table.path, "its order is not one of the members", _REMEDY)
    texts = {name: table.metadata.get(name) for name in ("coordinates", "groups")}
    for name, value in texts.items():
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise damaged_error(table.path, f"its {name} are {value!r:.80}", _REMEDY)
    if texts["groups"] and len(texts["groups"]) != groups:
        raise damaged_error(
            table.path, f"it names {len(texts['groups'])} of {groups} groups", _REMEDY
        )
    if lost := [n for n in texts["coordinates"] if table.shapes.get(n, ())[:1] != (members,)]:
        raise damaged_error(table.path, f"it has no {lost[0]!r:.80} of all members", _REMEDY)
