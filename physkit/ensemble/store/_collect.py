"""`collect` and `open`: an ensemble from the chunks that are finished, in a folder or in memory."""

from collections.abc import Sequence
from pathlib import Path

import physkit.storage as storage
from physkit.core import explain_call
from physkit.storage import SWEEP_FILE, Recording

from ..design._sweep import Sweep
from ..statistics._reductions import AbstractReduction, reduction_results
from ._chunk_file import refuse_malformed
from ._chunk_store import AbstractChunkStore
from ._ensemble import Ensemble
from ._sweep_folder import SweepFolder


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
        return collect_from(sweep_folder, sweep.reduce, sweep_folder.folder)
    # The functions of a user's own reductions are not stored: only `sweep` has them.
    reductions = sweep_folder.shipped_reductions
    with refuse_malformed(sweep_folder.folder, "remove its chunks, and they are computed anew"):
        return collect_from(sweep_folder, reductions, sweep_folder.folder)


def collect_from(
    store: AbstractChunkStore, reductions: Sequence[AbstractReduction], path: Path | None = None
) -> Ensemble:
    """The finished members of the sweep in a store, with these statistics over them."""
    chunks = {number: store.load(number) for number in store.finished_chunks()}
    reduced = reduction_results(reductions, {k: c.reduced for k, c in chunks.items()})
    return Ensemble(chunks, reduced=reduced, path=path, **store.description._asdict())


@explain_call
def open(path: str | Path) -> Recording | Ensemble:
    """What `run(…, to=folder)` or `sweep(…, to=folder)` has written; also while it is being written.

    Nothing is loaded before it is indexed. Links out of a file are refused, as is every file that
    physkit did not write.

    **Errors:** `FileError` when there is none, `DamagedFileError` for one that is not as it was written.
    """
    path = storage.to_path(path)
    if (path / SWEEP_FILE).is_file():
        return collect(path)
    return storage.open(path)
