"""`collect` and `open`: an ensemble from the chunks that are finished, in a folder or in memory."""

from pathlib import Path

import physkit.storage as storage
from physkit.storage import Recording

from ..design._sweep import Sweep
from ..statistics._reductions import reduction_results, restore_reductions
from ._ensemble import Ensemble
from ._memory_store import MemoryStore
from ._sweep_folder import INDEX_FILE, SweepFolder


def collect(folder: str | Path, sweep: Sweep | None = None) -> Ensemble:
    """The finished members of the sweep in a folder, also while it is being computed.

    **Arguments:**

    - `sweep`: the sweep itself, needed for statistics of your own only.

    **Errors:** `FileError` for a folder without a sweep, `DamagedFileError` for files that are not as they
    were written, `MismatchError` for the folder or a chunk of another sweep.
    """
    sweep_folder = SweepFolder(folder)
    if sweep is not None:
        sweep_folder.require_same_sweep(sweep)
    chunks = {number: sweep_folder.load(number) for number in sweep_folder.finished_chunks()}
    stored = restore_reductions(sweep_folder.metadata("reduce"))
    reductions = stored if sweep is None else sweep.reduce
    names = sweep_folder.metadata("coordinates")
    return Ensemble(
        chunks,
        num_members=sweep_folder.num_members,
        num_chunks=sweep_folder.num_chunks,
        coordinates={name: sweep_folder.table[name] for name in names},
        reduced=reduction_results(reductions, {k: c.reduced for k, c in chunks.items()}),
        title=str(sweep_folder.metadata("what")),
        groups=sweep_folder.metadata("groups"),
        path=sweep_folder.folder,
    )


def collect_from_memory(sweep: Sweep, memory: MemoryStore) -> Ensemble:
    """The finished members of a sweep that is kept in memory."""
    chunks = {number: memory.load(number) for number in memory.finished_chunks()}
    return Ensemble(
        chunks,
        num_members=sweep.num_members,
        num_chunks=memory.num_chunks,
        coordinates=sweep.coordinates,
        reduced=reduction_results(sweep.reduce, {k: c.reduced for k, c in chunks.items()}),
        title=repr(sweep),
        groups=sweep.groups or (),
    )


def open(path: str | Path) -> Recording | Ensemble:
    """What `run(…, to=folder)` or `sweep(…, to=folder)` has written; also while it goes.

    Nothing is loaded before it is indexed. Links out of a file are refused, as is every file that
    physkit did not write.

    **Errors:** `FileError` when there is none, `DamagedFileError` for one that is not as it was written.
    """
    if (Path(path) / INDEX_FILE).is_file():
        return collect(path)
    return storage.open(path)
