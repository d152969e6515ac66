"""`physkit sweep status | collect`: how far a sweep is, and what there is of it."""

import argparse
import csv
import io
from pathlib import Path
from typing import Any

from ..common._report import Report

_MOST_WORKERS = 20
_ENDINGS = (".csv", ".npz", ".nc")


def add_arguments(parser: argparse.ArgumentParser, action: str) -> None:
    """Options of one action."""
    parser.add_argument("folder", help="of the sweep")
    if action == "collect":
        parser.add_argument(
            "--to",
            metavar="FILE",
            help=".csv: a row for each member; .npz: every array; .nc: the same, labeled (xarray)",
        )


def status(given: argparse.Namespace, report: Report) -> int:
    """How far it is: 0 complete, 75 not yet, 1 where chunks end their workers."""
    from physkit.core import EXIT_TRY_AGAIN
    from physkit.ensemble import status as look

    now = look(given.folder)
    report.result(repr(now))
    workers = _workers(now.running)
    if workers:
        report.table(("host", "process", "Slurm job", "chunks"), workers[:_MOST_WORKERS])
    if now.quarantined:
        shown = ", ".join(map(str, now.quarantined[:10]))
        report.result(
            f"chunks that have ended three workers each, and are left out: {shown}. Look into "
            f"{given.folder}/log; `physkit sweep submit` tries them again"
        )
    report.answer(
        {
            "complete": now.complete,
            "members": now.members,
            "chunks": now.chunks,
            "done": len(now.done),
            "running": sorted(now.running),
            "missing": now.missing,
            "deadly": now.quarantined,
            "jobs": now.jobs,
            "digest": now.digest,
        }
    )
    return 0 if now.complete else 1 if now.quarantined else EXIT_TRY_AGAIN


def collect(given: argparse.Namespace, report: Report) -> int:
    """What there is so far; 0 all members, well; 75 some are missing; 1 some went wrong."""
    from physkit.core import EXIT_TRY_AGAIN, ParameterError
    from physkit.ensemble import collect as gather

    to = None if given.to is None else Path(given.to)
    if to is not None and to.suffix not in _ENDINGS:
        raise ParameterError(f"--to {to}: the ending is one of {', '.join(_ENDINGS)}")
    found = gather(given.folder)
    if to is not None:
        _write(found, to)
        report.wrote(to)
    report.result(repr(found))
    report.answer(
        {
            "complete": found.complete,
            "members": len(found.members),
            "of": found.total,
            "missing_chunks": found.missing,
            "failed": [failed._asdict() for failed in found.failed],
            "coordinates": {name: list(x.shape) for name, x in found.coordinates.items()},
            "arrays": {name: list(found[name].shape) for name in found},
            "to": None if to is None else str(to),
        }
    )
    return EXIT_TRY_AGAIN if not found.complete else 1 if found.failed else 0


def _workers(running: dict[int, dict[str, Any]]) -> list[tuple[Any, ...]]:
    """(host, process, job, chunks) of every worker."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for chunk, holder in sorted(running.items()):
        who = tuple(holder.get(name, "") for name in ("host", "process", "job"))
        found.setdefault(who, []).append(chunk)
    return [(*who, ", ".join(map(str, chunks))) for who, chunks in found.items()]


def _write(found: Any, to: Path) -> None:
    import numpy as np

    from physkit.storage import make_folder, write_atomically

    make_folder(to.parent)
    if to.suffix == ".nc":
        found.to_xarray().to_netcdf(to)
        return
    if to.suffix == ".csv":
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        columns = _columns(found)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
        write_atomically(to, text.getvalue().encode())
        return
    arrays = {"member": found.members, "ok": found.ok}
    arrays |= {f"at {name}": values for name, values in found.coordinates.items()}
    arrays |= {f"time of {name}": values for name, values in found.times.items()}
    arrays |= {name: np.asarray(found[name]) for name in found}
    image = io.BytesIO()
    np.savez_compressed(image, **arrays)
    write_atomically(to, image.getbuffer())


def _columns(found: Any) -> dict[str, list[Any]]:
    """Of each member: number, coordinates, whether it went well, the last number of every kind."""
    import numpy as np

    columns: dict[str, Any] = {"member": found.members}
    for name, values in found.coordinates.items():
        columns |= _split(name, values)
    columns["ok"] = found.ok.astype(int)
    for name, frames in found.frames.items():
        if frames.ndim == 2:
            columns[f"last {name}"] = np.asarray(frames)[:, -1]
    for name, values in found.summary.items():
        if values.ndim == 1:
            columns[name] = np.asarray(values)
    return {name: np.asarray(values).tolist() for name, values in columns.items()}


def _split(name: str, values: Any) -> dict[str, Any]:
    """A column for each number of a coordinate."""
    import numpy as np

    values = np.asarray(values)
    if values.ndim == 1:
        return {name: values}
    flat = values.reshape(len(values), -1)
    places = list(np.ndindex(values.shape[1:]))
    return {f"{name}[{', '.join(map(str, p))}]": flat[:, k] for k, p in enumerate(places)}
