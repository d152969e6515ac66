"""What is in a file or folder that physkit wrote, without believing any of it."""

import json
from pathlib import Path
from typing import Any

from ._report import Report, size


def look(path: Path, report: Report) -> None:
    """Print what, when, how long, versions and sizes.

    **Errors:** `FileError`.
    """
    from physkit.storage import Checkpoints, open as open_file

    if path.is_file() and path.name.startswith("checkpoint-"):
        _checkpoint(path, report)
        return
    folder = path / "checkpoints" if (path / "checkpoints").is_dir() else path
    saved = Checkpoints(folder).paths() if path.is_dir() else []
    if saved and folder == path:
        for one in saved:
            _checkpoint(one, report)
        return
    found = open_file(path)
    rows = []
    for name, series in found.items():
        steps, times = series.step, series.time
        span = f"{steps[0]} … {steps[-1]}" if len(steps) else "none"
        last = float(times[-1]) if len(times) else None
        shape = " × ".join(map(str, series.shape))
        rows.append((name, series.path.name, shape, str(series.dtype), span, last))
    report.table(("name", "file", "shape", "type", "steps", "last time"), rows)
    files = sorted({series.path for series in found.values()})
    for file in files:
        said = found.provenance[file.name]
        report.result(f"{file.name}: {size(file.stat().st_size)}, {_origin(said)}")
    for one in saved:
        _checkpoint(one, report)


def _checkpoint(path: Path, report: Report) -> None:
    from physkit.storage import checkpoint_table

    table = checkpoint_table(path)
    arrays = len(table["leaves"])
    report.result(
        f"{path.name}: sound, step {table['step']} of a run from {table['begin']}, {arrays} arrays, "
        f"{size(path.stat().st_size)}, {_origin(table['provenance'])}"
    )


def _origin(said: Any) -> str:
    said = said if isinstance(said, dict) else {}
    words = [f"{k} {said[k]}" for k in ("physkit", "jax", "python", "precision") if k in said]
    text = f"written {said.get('written', '?')} by {', '.join(words)} on {said.get('devices', '?')}"
    return json.dumps(text, ensure_ascii=False)[1:-1]  # no control characters reach the terminal
