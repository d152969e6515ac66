"""Inspect a file or folder that physkit wrote, and its health, without trusting its content."""

import contextlib
import datetime
import json
from pathlib import Path
from typing import Any, TypeAlias

from ..common._recordings import require_recording, require_run
from ..common._report import Report, format_duration, format_size
from ..common._types import Json, Recording, Series

# Of a series, a file or a checkpoint, as `--json` prints it.
Description: TypeAlias = dict[str, Any]

_ORIGIN_KEYS = ("physkit", "jax", "python", "precision", "devices")


def inspect_path(path: Path, report: Report) -> int:
    """Print what, when, how long, versions, sizes and health; 1 where something is wrong.

    **Errors:** `FileError`.
    """
    from physkit.storage import RECORDING_SUFFIXES, Checkpoints, open as open_file

    require_run(path)
    if path.is_file():
        require_recording(path)
    if path.is_file() and path.name.startswith("checkpoint-"):
        return _print(path, [], {}, [_describe_checkpoint(path)], report)
    # The folder of a run, with checkpoints in a folder of their own, or that folder itself.
    folder = path / "checkpoints" if (path / "checkpoints").is_dir() else path
    checkpoints = Checkpoints(folder).paths() if path.is_dir() else []
    # Checkpoints without any recording: `open` would refuse the folder.
    if checkpoints and not any(
        p.is_file() and p.suffix in RECORDING_SUFFIXES for p in path.iterdir() if folder != path
    ):
        return _print(path, [], {}, [_describe_checkpoint(one) for one in checkpoints], report)
    series, files = _describe_recording(path, open_file(path))
    return _print(path, series, files, [_describe_checkpoint(one) for one in checkpoints], report)


def describe_run(folder: Path, recording: Recording) -> Description:
    """What `physkit info --json` prints about the folder of a run, of which this is the recording."""
    from physkit.storage import Checkpoints

    inner = folder / "checkpoints"
    paths = Checkpoints(inner if inner.is_dir() else folder).paths()
    series, files = _describe_recording(folder, recording)
    return _describe(folder, series, files, [_describe_checkpoint(one) for one in paths])


def _describe_recording(
    path: Path, recording: Recording
) -> tuple[list[Description], dict[str, Description]]:
    folder = path if path.is_dir() else path.parent
    files = {
        name: {"bytes": (folder / name).stat().st_size, "origin": _parse_origin(origin)}
        for name, origin in sorted(recording.provenance.items())
    }
    return [_describe_series(one) for one in recording.values()], files


def _describe(
    path: Path,
    series: list[Description],
    files: dict[str, Description],
    checkpoints: list[Description],
) -> Description:
    health, is_healthy = _health(path if path.is_dir() else None, series, checkpoints)
    total = sum(f["bytes"] for f in files.values()) + sum(one["bytes"] for one in checkpoints)
    return {
        "path": str(path), "healthy": is_healthy, "health": health, "bytes": total,
        "seconds_written": _seconds_written(files, checkpoints), "series": series, "files": files,
        "checkpoints": checkpoints,
    }  # fmt: skip


def _print(
    path: Path,
    series: list[Description],
    files: dict[str, Description],
    checkpoints: list[Description],
    report: Report,
) -> int:
    found = _describe(path, series, files, checkpoints)
    seconds = found["seconds_written"]
    if series:
        rows = [
            (one["name"], one["file"], " × ".join(map(str, one["shape"])), one["dtype"],
             one["span"], one["last_time"], "" if one["finite"] else "NOT FINITE")
            for one in series
        ]  # fmt: skip
        report.table(("name", "file", "shape", "type", "steps", "last time", ""), rows)
    for name, file in files.items():
        report.result(f"{name}: {format_size(file['bytes'])}, {_describe_origin(file['origin'])}")
    for one in checkpoints:
        if one["sound"]:
            report.result(
                f"{one['file']}: sound, step {one['step']} of a run from {one['begin']}, "
                f"{one['arrays']} arrays, {format_size(one['bytes'])}, {_describe_origin(one['origin'])}"
            )
        else:
            report.result(f"{one['file']}: DAMAGED, {one['error']}")
    if path.is_dir():
        report.result(
            f"in all {format_size(found['bytes'])}"
            + (f", written over {format_duration(seconds)}" if seconds else "")
        )
    for line in found["health"]:
        report.result(f"health: {line}")
    report.json_result(found)
    return 0 if found["healthy"] else 1


def _describe_series(one: Series) -> Description:
    import numpy as np

    steps, times = one.step, one.time
    # The last frame only: a run that went wrong ends in NaN, and reading all may take minutes.
    last = one[-1] if len(one) else np.zeros(0)
    finite = bool(np.all(np.isfinite(last))) if last.dtype.kind in "fc" else True
    return {
        "name": one.name,
        "file": "shards" if one.path.is_dir() else one.path.name,
        "kind": one.kind,
        "shape": list(one.shape),
        "dims": list(one.dims),
        "dtype": str(one.dtype),
        "span": f"{steps[0]} … {steps[-1]}" if len(steps) else "none",
        "last_step": int(steps[-1]) if len(steps) else None,
        "last_time": float(times[-1]) if len(times) else None,
        "finite": finite,
    }


def _describe_checkpoint(path: Path) -> Description:
    from physkit.core import DamagedFileError
    from physkit.storage import read_checkpoint_table

    num_bytes = path.stat().st_size
    try:
        table = read_checkpoint_table(path)
    except DamagedFileError as error:
        return {
            "file": path.name,
            "bytes": num_bytes,
            "sound": False,
            "error": str(error),
            "origin": {},
        }
    # Shards of other processes. Names come from the file: without their folders, so that they cannot
    # point out of this one.
    parts = [path.with_name(Path(str(name)).name) for name in table.get("parts") or ()]
    missing = [part.name for part in parts if not part.is_file()]
    if missing:
        error = f"{', '.join(missing)} of another process, which belongs to it, is not there"
        return {"file": path.name, "bytes": num_bytes, "sound": False, "error": error, "origin": {}}
    num_bytes += sum(part.stat().st_size for part in parts)
    return {
        "file": path.name,
        "bytes": num_bytes,
        "sound": True,
        "step": table["step"],
        "begin": table["begin"],
        "arrays": len(table["leaves"]),
        "origin": _parse_origin(table["provenance"]),
    }


def _health(
    folder: Path | None, series: list[Description], checkpoints: list[Description]
) -> tuple[list[str], bool]:
    """Sentences on the state of a run, and whether it is healthy."""
    from physkit.simulate import read_crash_record
    from physkit.storage import describe_writer

    sentences, is_healthy = [], True
    crash = None if folder is None else read_crash_record(folder)
    if crash is not None:
        is_healthy = False
        sentences.append(
            f"{crash['error']}: {crash['message']}; `physkit diagnose {folder}` finds where"
        )
    wrong = [one["name"] for one in series if not one["finite"]]
    if wrong:
        is_healthy = False
        sentences.append(f"the last frames of {', '.join(wrong)} are not finite")
    if any(not one["sound"] for one in checkpoints):
        is_healthy = False
        sentences.append("a checkpoint is damaged; resuming goes back to the one before it")
    if folder is None:
        return sentences or ["every part that was read is sound"], is_healthy
    writer = describe_writer(folder)
    if writer is not None:
        sentences.append(f"running: written by {writer}")
    if (folder / "run.json").is_file() or checkpoints:
        done = max((one["step"] for one in checkpoints if one["sound"]), default=None)
        requested = _requested_steps(folder)
        if requested is not None and done is not None and writer is None and crash is None:
            state = (
                "finished" if done >= requested else f"stopped; `physkit resume {folder}` goes on"
            )
            sentences.append(f"step {done} of {requested}, {state}")
        elif done is not None:
            sentences.append(
                f"goes on from step {done}" + (f" of {requested}" if requested else "")
            )
    if is_healthy:
        sentences.append("every part that was read is sound")
    return sentences, is_healthy


def _requested_steps(folder: Path) -> int | None:
    """The steps of the request that `physkit run` wrote down."""
    from physkit.storage import read_regular

    try:
        # A file that anybody may have written: read no more than a request can have.
        steps = json.loads(read_regular(folder / "case.json", 100_000))["steps"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return steps if isinstance(steps, int) else None


def _seconds_written(files: dict[str, Description], checkpoints: list[Description]) -> float | None:
    """Seconds between the first and the last time that something was written, as the files say."""
    times = []
    for one in [*files.values(), *checkpoints]:
        with contextlib.suppress(KeyError, ValueError):
            times.append(datetime.datetime.fromisoformat(one["origin"]["written"]))
    if len(times) < 2:
        return None
    return (max(times) - min(times)).total_seconds()


def _parse_origin(provenance: Json) -> dict[str, str]:
    # Not trusted: any JSON may stand there, of any length.
    provenance = provenance if isinstance(provenance, dict) else {}
    keys = ("written", "command", *_ORIGIN_KEYS)
    return {key: str(provenance[key])[:200] for key in keys if key in provenance}


def _describe_origin(origin: dict[str, str]) -> str:
    versions = [f"{k} {origin[k]}" for k in _ORIGIN_KEYS[:-1] if k in origin]
    return f"written {origin.get('written', '?')} by {', '.join(versions)} on {origin.get('devices', '?')}"
