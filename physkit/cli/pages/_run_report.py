"""The report of a run: one page of HTML from the files in its folder, none of which is trusted."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from physkit.core import FileError, PhyskitError
from physkit.html import Markup, escape, expandable, facts, paragraph, span, table
from physkit.plot import animate, recording as draw_recording, shows_one_frame
from physkit.storage import Checkpoints, read_checkpoint_table, read_regular

from ..common._report import format_duration, format_size
from ..common._types import Axes, Json, Recording, Series
from ..verbs._animate import FrameDrawing
from ..verbs._inspect import describe_run
from ._report_numbers import MAX_LINES, numbers_by_path
from ._report_pictures import chapter, draw_picture, frame_picture, lay_out

_MAX_SERIES = 24
_MAX_CODE = 200_000  # bytes of a case file


def run_page(folder: Path, recording: Recording, film_frames: int) -> tuple[str, str, bool]:
    """Title, body, and whether the run is healthy.

    **Errors:** `FileError`.
    """
    found = describe_run(folder, recording)
    checkpoints = Checkpoints(folder / "checkpoints").paths()
    tables = [one for one in map(_read_table, checkpoints) if one is not None]
    tables.sort(key=lambda one: one["step"])
    title = f"Run {folder.resolve().name}"
    is_healthy = bool(found["healthy"])
    kind = "good" if is_healthy else "wrong"
    body = f"<h1>{escape(title)}</h1>"
    body += paragraph("healthy" if is_healthy else "NOT healthy", kind)
    body += "".join(map(paragraph, found["health"]))
    body += facts(_summary(folder, found, tables))
    series = [one for one in recording.values() if len(one)]
    body += chapter("What was recorded", _curves(series))
    body += chapter("Frames", _frames(series, film_frames))
    if tables:
        body += chapter("What was simulated, with which numbers", _numbers(tables[-1]))
    body += chapter("Files and checkpoints", _files(found, tables))
    body += chapter("Code", _code(folder))
    return title, body, is_healthy


def _summary(folder: Path, found: dict[str, Any], tables: list[Json]) -> dict[str, object]:
    """When, where, for how long, how much."""
    origins = [one["origin"] for one in (*found["files"].values(), *found["checkpoints"])]
    origins = [one for one in origins if "written" in one]
    first = min(origins, key=lambda one: one["written"], default={})
    last = max(origins, key=lambda one: one["written"], default={})
    steps = [t["step"] for t in tables if isinstance(t.get("step"), int)]
    begins = [t["begin"] for t in tables if isinstance(t.get("begin"), int)]
    rows: dict[str, object] = {"folder": folder.resolve()}
    if steps:
        rows["steps"] = f"{min(begins, default=0)} … {max(steps)}"
    if found["seconds_written"] is not None:
        rows["duration"] = f"{format_duration(found['seconds_written'])} from first to last write"
    rows["written"] = f"{first.get('written', '?')} … {last.get('written', '?')}"
    rows["size"] = format_size(found["bytes"])
    for key in ("command", "physkit", "jax", "python", "precision", "devices"):
        if key in first:
            rows[key] = first[key]
    return rows


def _curves(series: list[Series]) -> str:
    """All that is a curve or a map over time, and a table of the ends of numbers."""
    shown = [one for one in series[:_MAX_SERIES] if not shows_one_frame(one)]
    pictures = [draw_picture(_draws(one, -1), one.name) for one in shown]
    rows = []
    for one in shown:
        if len(one.shape) > 1 or one.dtype.kind not in "fiub":
            continue
        rows.append((one.name, *_ends_and_mean(np.asarray(one[:], float))))
    header = ("name", "frames", "first", "last", "change", "mean", "std. deviation")
    return lay_out(pictures) + (table(header, rows) if rows else "")


def _ends_and_mean(values: np.ndarray) -> tuple[str, ...]:
    """How many, the first, the last and their difference as they are; mean and deviation of the finite ones."""
    finite = values[np.isfinite(values)]
    lost = len(values) - len(finite)
    count = f"{len(values)}, {lost} of them not finite" if lost else f"{len(values)}"
    first, last = values[[0, -1]]
    # Of two infinities the difference is no number.
    change = last - first if np.isfinite([first, last]).all() else np.nan
    mean, deviation = (finite.mean(), finite.std()) if finite.size else (np.nan, np.nan)
    return count, *(f"{x:.7g}" for x in (first, last, change, mean)), f"{deviation:.3g}"


def _frames(series: list[Series], film_frames: int) -> str:
    """The first, the middle and the last frame of what moves, and a film of the first of them."""
    # Velocities are distributions: places before them.
    moving = [one for one in series[:_MAX_SERIES] if shows_one_frame(one)]
    moving.sort(key=lambda one: "/velocity/" in one.dataset_paths[0])
    pictures = []
    for one in moving:
        for frame in dict.fromkeys((0, len(one) // 2, len(one) - 1)):
            caption = f"{one.name}, frame {frame} of {len(one)}"
            pictures.append(draw_picture(_draws(one, frame), caption, (3.6, 3.2)))
    film = ""
    if moving and film_frames > 1 and len(moving[0]) > 1:
        one = moving[0]
        frames = np.unique(np.linspace(0, len(one) - 1, film_frames).astype(int)).tolist()
        try:
            made = animate(frames, draw=FrameDrawing(one, frames), fps=10, size=(4.4, 4.0), dpi=80,
                           hold=False)  # fmt: skip
            film = frame_picture(made._repr_html_(), f"{one.name}: {len(frames)} frames")
        except PhyskitError as error:
            film = paragraph(f"no film: {error}", "about")
    return (lay_out(pictures) if pictures else "") + film


def _draws(series: Series, frame: int):
    def draw(ax: Axes) -> None:
        draw_recording(series, frame=frame, ax=ax)

    return draw


def _numbers(checkpoint: Json) -> str:
    identity = checkpoint.get("identity")
    sections = identity.get("sections") if isinstance(identity, dict) else None
    if not isinstance(sections, dict):
        # Files of version 0.2 and before.
        structure = checkpoint.get("structure")
        sections = {"the state": structure if isinstance(structure, dict) else {}}
    return numbers_by_path(sections)


def _files(found: dict[str, Any], tables: list[Json]) -> str:
    rows = [
        (name, format_size(one["bytes"]), one["origin"].get("written", ""), "")
        for name, one in found["files"].items()
    ]
    for one in found["checkpoints"]:
        state = span("good", "sound") if one["sound"] else span("wrong", "DAMAGED")
        written = one["origin"].get("written", "")
        rows.append((one["file"], format_size(one["bytes"]), written, Markup(state)))
    return table(("file", "size", "written", ""), rows) + _capacities(tables)


def _capacities(tables: list[Json]) -> str:
    """The shapes of caches in the first and the last checkpoint that is left: what has grown."""
    if not tables:
        return ""
    first, last = _cache_shapes(tables[0]), _cache_shapes(tables[-1])
    rows = []
    for path, shape in list(last.items())[:MAX_LINES]:
        before = first.get(path, "")
        grown = Markup(span("kind", "grown")) if before and before != shape else ""
        rows.append((path, before, shape, grown))
    if not rows:
        return ""
    header = ("cache", f"at step {tables[0].get('step')}", f"at step {tables[-1].get('step')}", "")
    has_grown = any(row[-1] for row in rows)
    return expandable("capacities of caches", table(header, rows), is_open=has_grown)


def _cache_shapes(checkpoint: Json) -> dict[str, str]:
    leaves = checkpoint.get("leaves")
    rows = leaves.items() if isinstance(leaves, dict) else ()
    return {
        path: "×".join(map(str, row["shape"]))
        for path, row in rows
        if path.startswith(".aux") and isinstance(row, dict) and isinstance(row.get("shape"), list)
        if row["shape"]
    }


def _code(folder: Path) -> str:
    """The case file of the run, if it is the one that `physkit run` noted."""
    try:
        request = json.loads(read_regular(folder / "case.json", 100_000))
        case, settings = Path(request["case"]), request["values"]
        digest, seed = request["digest"], request["seed"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return paragraph(
            "The run was started by a script, which its folder does not name.", "about"
        )
    rows = facts({"case": case, "settings": settings, "seed": seed, "steps": request.get("steps")})
    try:
        text = read_regular(case, _MAX_CODE)
    except (OSError, FileError):
        return rows + paragraph("The file is not there any more.", "about")
    if hashlib.sha256(text).hexdigest() != digest:
        return rows + paragraph("The file has changed since the run.", "wrong")
    code = escape(text.decode(errors="replace"), _MAX_CODE)
    return rows + expandable("as it was run", f"<pre>{code}</pre>", is_open=True)


def _read_table(path: Path) -> Json | None:
    try:
        found = read_checkpoint_table(path)
    except FileError:
        return None
    return found if isinstance(found.get("step"), int) else None
