"""`physkit sweep status | collect`: the progress of a sweep, and its results so far."""

import argparse
import os
from pathlib import Path
from typing import Any

from ..common._report import Report
from ..common._sweep_results import require_sweep_suffix, write_sweep

_MAX_WORKERS_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser, action: str) -> None:
    """Add the arguments of one action."""
    parser.add_argument("folder", help="of the sweep")
    if action == "collect":
        parser.add_argument(
            "--to",
            metavar="FILE",
            help=".csv, .parquet, .feather: a row for each member; .npz: every array; .nc: the same, labeled",
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
    from physkit.core import EXIT_TRY_AGAIN, FileError
    from physkit.ensemble import collect as collect_results

    to = None if args.to is None else Path(args.to)
    if to is not None:
        require_sweep_suffix(to)
    if to is not None and os.path.lexists(to) and not args.overwrite:
        raise FileError(f"{to} is there already: give --overwrite to replace it, or another name")
    results = collect_results(args.folder)
    if to is not None:
        write_sweep(results, to)
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
