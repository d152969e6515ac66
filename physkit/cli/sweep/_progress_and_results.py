"""`physkit sweep status | collect`: the progress of a sweep, and its results so far."""

import argparse
import csv
import io
import os
from pathlib import Path
from typing import Any

from ..common._report import Report
from ..common._types import SweepResults

_MAX_WORKERS_SHOWN = 20
_SUFFIXES = (".csv", ".npz", ".nc")


def add_arguments(parser: argparse.ArgumentParser, action: str) -> None:
    """Add the arguments of one action."""
    parser.add_argument("folder", help="of the sweep")
    if action == "collect":
        parser.add_argument(
            "--to",
            metavar="FILE",
            help=".csv: a row for each member; .npz: every array; .nc: the same, labeled (xarray)",
        )
        parser.add_argument(
            "--overwrite", action="store_true", help="replace FILE if it is there already"
        )


def status(args: argparse.Namespace, report: Report) -> int:
    """How far it is: 0 complete, 75 not yet, 1 where chunks end their workers."""
    from physkit.core import EXIT_TRY_AGAIN
    from physkit.ensemble import status as read_status

    progress = read_status(args.folder)
    report.result(repr(progress))
    # A large job array has hundreds of workers: the table would push the rest off the screen.
    workers = _workers(progress.running)
    if workers:
        report.table(("host", "process", "Slurm job", "chunks"), workers[:_MAX_WORKERS_SHOWN])
    if progress.quarantined:
        report.result(
            f"{args.folder}/log says what went wrong in quarantined chunks; `physkit sweep submit` tries "
            "them again"
        )
    report.json_result(
        {
            "complete": progress.complete,
            "members": progress.num_members,
            "chunks": progress.num_chunks,
            "done": len(progress.finished),
            "running": sorted(progress.running),
            "missing": progress.missing,
            "quarantined": progress.quarantined,
            "jobs": progress.jobs,
            "digest": progress.digest,
        }
    )
    return 0 if progress.complete else 1 if progress.quarantined else EXIT_TRY_AGAIN


def collect(args: argparse.Namespace, report: Report) -> int:
    """What there is so far; 0 all members, well; 75 some are missing; 1 some went wrong."""
    from physkit.core import EXIT_TRY_AGAIN, FileError, ParameterError
    from physkit.ensemble import collect as collect_results

    to = None if args.to is None else Path(args.to)
    if to is not None and to.suffix not in _SUFFIXES:
        raise ParameterError(f"--to {to}: the ending is one of {', '.join(_SUFFIXES)}")
    if to is not None and os.path.lexists(to) and not args.overwrite:
        raise FileError(f"{to} is there already: give --overwrite to replace it, or another name")
    results = collect_results(args.folder)
    if to is not None:
        _write(results, to)
        report.file(to)
    report.result(repr(results))
    report.json_result(
        {
            "complete": results.complete,
            "members": len(results.members),
            "of": results.num_members,
            "missing_chunks": results.missing,
            "failed": [failed._asdict() for failed in results.failed],
            "coordinates": {name: list(x.shape) for name, x in results.coordinates.items()},
            "arrays": {name: list(results[name].shape) for name in results},
            "to": None if to is None else str(to),
        }
    )
    return EXIT_TRY_AGAIN if not results.complete else 1 if results.failed else 0


def _workers(running: dict[int, dict[str, Any]]) -> list[tuple[Any, ...]]:
    """(host, process, job, chunks) of every worker."""
    chunks_of: dict[tuple[Any, ...], list[int]] = {}
    for chunk, claim in sorted(running.items()):
        worker = tuple(claim.get(name, "") for name in ("host", "process", "job"))
        chunks_of.setdefault(worker, []).append(chunk)
    return [(*worker, ", ".join(map(str, chunks))) for worker, chunks in chunks_of.items()]


def _write(results: SweepResults, to: Path) -> None:
    import numpy as np

    from physkit.storage import TEMPORARY_PREFIX, make_folder, write_atomically

    make_folder(to.parent)
    if to.suffix == ".nc":
        # Beside it and then renamed, so that a reader never meets half a file, nor a kill leaves one.
        temporary = to.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{to.name}")
        try:
            results.to_xarray().to_netcdf(temporary)
            temporary.replace(to)
        finally:
            temporary.unlink(missing_ok=True)
        return
    if to.suffix == ".csv":
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        columns = _columns(results)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
        write_atomically(to, text.getvalue().encode())
        return
    arrays = {"member": results.members, "ok": results.ok}
    # With a prefix, since a coordinate may have the name of a result.
    arrays |= {f"at {name}": values for name, values in results.coordinates.items()}
    arrays |= {f"time of {name}": values for name, values in results.times.items()}
    arrays |= {name: np.asarray(results[name]) for name in results}
    # Through memory, so that a reader never meets half a file.
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomically(to, buffer.getbuffer())


def _columns(results: SweepResults) -> dict[str, list[Any]]:
    """A list for each column: member, its coordinates, whether it went well, and its results.

    Of scalar series the last frame; what is larger does not fit into a cell and is left out.
    """
    import numpy as np

    columns: dict[str, Any] = {"member": results.members}
    for name, values in results.coordinates.items():
        columns |= _scalar_columns(name, values)
    columns["ok"] = results.ok.astype(int)
    for name, frames in results.frames.items():
        if frames.ndim == 2:  # (members, frames)
            columns[f"last {name}"] = np.asarray(frames)[:, -1]
    for name, values in results.summary.items():
        if values.ndim == 1:
            # A swept quantity may have the name of a result, and both are wanted.
            columns[f"summary {name}" if name in columns else name] = np.asarray(values)
    # Python numbers: csv writes their shortest exact digits.
    return {name: np.asarray(values).tolist() for name, values in columns.items()}


def _scalar_columns(name: str, values: Any) -> dict[str, Any]:
    """A column for each number of a coordinate."""
    import numpy as np

    values = np.asarray(values)
    if values.ndim == 1:
        return {name: values}
    flat = values.reshape(len(values), -1)
    indices = list(np.ndindex(values.shape[1:]))
    return {f"{name}[{', '.join(map(str, i))}]": flat[:, k] for k, i in enumerate(indices)}
