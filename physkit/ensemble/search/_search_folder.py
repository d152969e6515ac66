"""The folder of a search: `search.h5` says what it is, and each finished generation is one file."""

import re
from pathlib import Path

import numpy as np

from physkit.core import DamagedFileError, FileError, MismatchError
from physkit.storage import (
    LOCK_NAME,
    TEMPORARY_PREFIX,
    Column,
    FolderLock,
    Identity,
    collect_provenance,
    compare_identities,
    damaged_error,
    make_folder,
    read_table,
    remove_temporaries,
    set_aside,
    to_path,
    write_table,
)

SEARCH_FILE = "search.h5"
GENERATION_FOLDER = "generations"
_GENERATION_FILE = re.compile(r"[0-9]{6,9}\.h5")


class SearchFolder:
    """A folder that holds the generations of a search, one file each, which exist if they are complete.

    The losses in them are those that would be computed again: a search that goes on reads them in their order,
    and has the same bits as one that was never stopped.

    **Errors:** `MismatchError` for the folder of another search, `FileError` for one that holds something
    else, `FileInUseError` while another process writes there.
    """

    def __init__(self, folder: str | Path, identity: Identity):
        self.folder = to_path(folder)
        index = self.folder / SEARCH_FILE
        if not index.is_file():
            _require_unused(self.folder)
        make_folder(self.folder)
        self._lock = FolderLock(self.folder)
        try:
            make_folder(self.folder / GENERATION_FOLDER)
            remove_temporaries(self.folder / GENERATION_FOLDER)
            if index.is_file():
                self._require_same(index, identity)
            else:
                metadata = {"identity": identity.as_table(), "provenance": collect_provenance()}
                write_table(index, "search", {}, metadata)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others write there."""
        self._lock.release()

    def has(self, generation: int) -> bool:
        """Whether a generation is finished there."""
        return self._path(generation).is_file()

    def load(self, generation: int, population: np.ndarray) -> np.ndarray | None:
        """The losses of a generation, `[m]`; None where it is not finished. A damaged file is set aside.

        **Errors:** `MismatchError` where its members are others than these.
        """
        if not self.has(generation):
            return None
        path = self._path(generation)
        try:
            there, losses = _read_generation(path)
        except DamagedFileError as error:
            # What is computed anew has the same bits, so that the generations after it remain.
            set_aside(path, error, f"generation {generation} is computed anew")
            return None
        if there.shape != population.shape or not np.array_equal(there, population):
            raise MismatchError(
                f"{path} holds other members than this search draws: it was begun with other versions or on "
                "other devices, which round differently. Give this one another folder"
            )
        return losses

    def save(self, generation: int, population: np.ndarray, losses: np.ndarray) -> None:
        """Write a finished generation."""
        columns = {
            "member": Column(population, ("members", "coordinates")),
            "loss": Column(losses, ("members",)),
        }
        write_table(self._path(generation), "generation", columns, {"generation": generation})

    def _path(self, generation: int) -> Path:
        return self.folder / GENERATION_FOLDER / f"{generation:06d}.h5"

    def _require_same(self, index: Path, identity: Identity) -> None:
        there = Identity.from_table(read_table(index, "search").metadata.get("identity"))
        if there is None:
            raise damaged_error(index, "it does not say which search this is")
        if lines := compare_identities(identity, there, "folder").describe():
            raise MismatchError(
                "\n  ".join([f"{self.folder} is of another search. What differs:", *lines])
            )


def _read_generation(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Members `[m p]` and losses `[m]`.

    **Errors:** `DamagedFileError`.
    """
    table = read_table(path, "generation")
    there, losses = table["member"], table["loss"]
    if losses.shape != there.shape[:1]:
        raise damaged_error(path, f"it has {losses.shape} losses of {there.shape} members")
    return there, losses


def _require_unused(folder: Path) -> None:
    """**Errors:** `FileError` where a folder holds anything but the beginning of a search."""
    # A search may be killed, or another process come, between its lock, this folder and its index.
    files = [*folder.glob("*"), *(folder / GENERATION_FOLDER).glob("*")]
    passing = (f"{LOCK_NAME}.", TEMPORARY_PREFIX)
    known = (GENERATION_FOLDER, LOCK_NAME)
    other = [p.name for p in files if p.name not in known and not p.name.startswith(passing)]
    if other:
        raise FileError(
            f"{folder} is not empty ({', '.join(sorted(other)[:5])}) and holds no search: give another folder"
        )


def read_generations(folder: Path) -> list[np.ndarray]:
    """The losses of every finished generation in the folder of a search, in their order; also while it goes.

    **Errors:** `FileError` for another folder, `DamagedFileError`.
    """
    read_table(folder / SEARCH_FILE, "search")
    # A file that is being written, or was when its process was killed, has another name.
    paths = (folder / GENERATION_FOLDER).glob("*.h5")
    finished = [path for path in paths if _GENERATION_FILE.fullmatch(path.name)]
    finished.sort(key=lambda path: int(path.stem))
    return [read_table(path, "generation")["loss"] for path in finished]
