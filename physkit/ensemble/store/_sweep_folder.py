"""The folder of a sweep: `sweep.h5` says what it is, and each finished chunk is one file."""

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from physkit.core import FileError, MismatchError
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

from ..design._sweep import Sweep, split_into_chunks
from ..statistics._reductions import (
    AbstractReduction,
    describe_reductions,
    restore_reductions,
)
from ._chunk_file import coordinate_dims, read_chunk, write_chunk
from ._chunk_store import AbstractChunkStore, SweepDescription
from ._stored_chunk import StoredChunk

INDEX_FILE = "sweep.h5"
CHUNK_FOLDER = "chunks"
LOG_FOLDER = "log"
_CHUNK_FILE = re.compile(r"(\d{6,9})\.h5")


class SweepFolder(AbstractChunkStore):
    """A folder that holds a sweep, or will.

    - `table`: of `sweep.h5`; `digest`, `num_members`, `chunk_size`, `num_chunks`: entries of it.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.index = self.folder / INDEX_FILE
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
            self._table = read_table(self.index, "sweep")
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
        # Also after creating it: another process may have done so at the same time, and what is on disk counts.
        self.require_same_sweep(sweep)
        if chunk_size is not None and chunk_size != self.chunk_size:
            raise MismatchError(
                f"{self.folder} was begun with {self.chunk_size} members in a chunk, not {chunk_size}: "
                "leave chunk_size= out, or start anew in another folder"
            )
        return self.chunk_size

    def require_same_sweep(self, sweep: Sweep) -> None:
        """**Errors:** `MismatchError` for the folder of another sweep."""
        if self.digest != sweep.digest:
            raise MismatchError(
                f"{self.folder} is of another sweep (digest {self.digest}, this one has {sweep.digest}): its "
                "simulation, state, values, steps, key or statistics differ. Give this one another folder"
            )

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
        }
        write_table(self.index, "sweep", columns, metadata)

    def chunk_path(self, number: int) -> Path:
        """The file of a chunk, which exists if and only if the chunk is finished."""
        return self.folder / CHUNK_FOLDER / f"{number:06d}.h5"

    def finished_chunks(self) -> list[int]:
        """Numbers of the chunks that are finished, by the names of their files alone."""
        # No file is opened: workers and `status` ask often. A file that is being written has a temporary
        # name, so that a name that matches is that of a finished chunk.
        folder = self.folder / CHUNK_FOLDER
        if not folder.is_dir():
            return []
        matches = (_CHUNK_FILE.fullmatch(path.name) for path in folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def save(self, sweep: Sweep, number: int, chunk: StoredChunk) -> None:
        """Write a finished chunk."""
        write_chunk(self.chunk_path(number), sweep, number, chunk)

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
