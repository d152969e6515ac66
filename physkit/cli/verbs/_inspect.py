"""What is in a file or folder that physkit wrote, and its health, without believing any of it."""

import contextlib
import datetime
import json
from pathlib import Path
from typing import Any

from ..common._recordings import require_recording
from ..common._report import Report, format_duration, format_size

_SAYS = ("physkit", "jax", "python", "precision", "devices")


def inspect_path(path: Path, report: Report) -> int:
    """Print what, when, how long, versions, sizes and health; 1 where something is ill.

    **Errors:** `FileError`.
    """
    from physkit.storage import RECORDING_SUFFIXES, Checkpoints, open as open_file

    if path.is_file():
        require_recording(path)
    if path.is_file() and path.name.startswith("checkpoint-"):
        return _tell(path, [], {}, [_checkpoint(path)], report)
    folder = path / "checkpoints" if (path / "checkpoints").is_dir() else path
    saved = Checkpoints(folder).paths() if path.is_dir() else []
    if saved and not any(
        p.is_file() and p.suffix in RECORDING_SUFFIXES for p in path.iterdir() if folder != path
    ):
        return _tell(path, [], {}, [_checkpoint(one) for one in saved], report)
    found = open_file(path)
    series = [_series(one) for one in found.values()]
    beside = path if path.is_dir() else path.parent
    files = {
        name: {"bytes": (beside / name).stat().st_size, "origin": _origin(origin)}
        for name, origin in sorted(found.provenance.items())
    }
    return _tell(path, series, files, [_checkpoint(one) for one in saved], report)


def _tell(path: Path, series: list, files: dict, saved: list, report: Report) -> int:
    whole = path if path.is_dir() else None
    health, ill = _health(whole, series, saved)
    took = _took(files, saved)
    if series:
        rows = [
            (one["name"], one["file"], " × ".join(map(str, one["shape"])), one["dtype"],
             one["span"], one["last_time"], "" if one["finite"] else "NOT FINITE")
            for one in series
        ]  # fmt: skip
        report.table(("name", "file", "shape", "type", "steps", "last time", ""), rows)
    for name, file in files.items():
        report.result(f"{name}: {format_size(file['bytes'])}, {_words(file['origin'])}")
    for one in saved:
        if one["sound"]:
            report.result(
                f"{one['file']}: sound, step {one['step']} of a run from {one['begin']}, "
                f"{one['arrays']} arrays, {format_size(one['bytes'])}, {_words(one['origin'])}"
            )
        else:
            report.result(f"{one['file']}: DAMAGED, {one['error']}")
    total = sum(f["bytes"] for f in files.values()) + sum(one["bytes"] for one in saved)
    if whole is not None:
        report.result(
            f"in all {format_size(total)}"
            + (f", written over {format_duration(took)}" if took else "")
        )
    for line in health:
        report.result(f"health: {line}")
    report.answer(
        {"path": str(path), "healthy": not ill, "health": health, "bytes": total,
         "seconds_written": took, "series": series, "files": files, "checkpoints": saved}
    )  # fmt: skip
    return 1 if ill else 0


def _series(one: Any) -> dict[str, Any]:
    import numpy as np

    steps, times = one.step, one.time
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


def _checkpoint(path: Path) -> dict[str, Any]:
    from physkit.core import DamagedFileError
    from physkit.storage import read_checkpoint_table

    held = path.stat().st_size
    try:
        table = read_checkpoint_table(path)
    except DamagedFileError as error:
        return {"file": path.name, "bytes": held, "sound": False, "error": str(error), "origin": {}}
    parts = [path.with_name(Path(str(name)).name) for name in table.get("parts") or ()]
    lost = [part.name for part in parts if not part.is_file()]
    if lost:
        error = f"{', '.join(lost)} of another process, which belongs to it, is not there"
        return {"file": path.name, "bytes": held, "sound": False, "error": error, "origin": {}}
    held += sum(part.stat().st_size for part in parts)
    return {
        "file": path.name,
        "bytes": held,
        "sound": True,
        "step": table["step"],
        "begin": table["begin"],
        "arrays": len(table["leaves"]),
        "origin": _origin(table["provenance"]),
    }


def _health(folder: Path | None, series: list, saved: list) -> tuple[list[str], bool]:
    """What is to be known of a run, and whether it is ill."""
    from physkit.simulate import read_crash_record
    from physkit.storage import describe_writer

    said, ill = [], False
    crash = None if folder is None else read_crash_record(folder)
    if crash is not None:
        ill = True
        said.append(
            f"{crash['error']}: {crash['message']}; `physkit diagnose {folder}` finds where"
        )
    wrong = [one["name"] for one in series if not one["finite"]]
    if wrong:
        ill = True
        said.append(f"the last frames of {', '.join(wrong)} are not finite")
    if any(not one["sound"] for one in saved):
        ill = True
        said.append("a checkpoint is damaged; resuming goes back to the one before it")
    if folder is None:
        return said or ["every part that was looked at is sound"], ill
    writer = describe_writer(folder)
    if writer is not None:
        said.append(f"running: written by {writer}")
    if (folder / "run.json").is_file() or saved:
        done = max((one["step"] for one in saved if one["sound"]), default=None)
        asked = _asked(folder)
        if asked is not None and done is not None and writer is None and crash is None:
            state = "finished" if done >= asked else f"stopped; `physkit resume {folder}` goes on"
            said.append(f"step {done} of {asked}, {state}")
        elif done is not None:
            said.append(f"goes on from step {done}" + (f" of {asked}" if asked else ""))
    if not ill:
        said.append("every part that was looked at is sound")
    return said, ill


def _asked(folder: Path) -> int | None:
    """The steps that `physkit run` was asked for."""
    try:
        steps = json.loads((folder / "case.json").read_bytes()[:100_000])["steps"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return steps if isinstance(steps, int) else None


def _took(files: dict, saved: list) -> float | None:
    """Seconds between the first and the last time that something was written, as the files say."""
    times = []
    for one in [*files.values(), *saved]:
        with contextlib.suppress(KeyError, ValueError):
            times.append(datetime.datetime.fromisoformat(one["origin"]["written"]))
    if len(times) < 2:
        return None
    return (max(times) - min(times)).total_seconds()


def _origin(said: Any) -> dict[str, str]:
    said = said if isinstance(said, dict) else {}
    return {k: str(said[k])[:200] for k in ("written", "command", *_SAYS) if k in said}


def _words(origin: dict[str, str]) -> str:
    words = [f"{k} {origin[k]}" for k in _SAYS[:-1] if k in origin]
    text = f"written {origin.get('written', '?')} by {', '.join(words)} on {origin.get('devices', '?')}"
    return "".join(c if c.isprintable() else "?" for c in text)
