"""The report of a sweep: what was swept, fans over time, results over coordinates, members that failed."""

from pathlib import Path

import numpy as np

from physkit.ensemble import Ensemble, SweepFolder
from physkit.html import escape, expandable, facts, paragraph, table
from physkit.plot import fan, heat_map, parallel_coordinates

from ..common._report import format_duration
from ..common._types import Axes
from ._report_numbers import numbers_by_path
from ._report_pictures import chapter, draw_picture, lay_out

_MAX_PICTURES = 12
_MAX_BYTES = 2**26  # of one quantity that is read
_MAX_ROWS = 200
_NOT_SWEPT = ("point", "replica", "group")


def sweep_page(folder: Path, ensemble: Ensemble) -> tuple[str, str, bool]:
    """Title, body, and whether every member is there and none has failed."""
    title = f"Sweep {folder.resolve().name}"
    is_healthy = ensemble.complete and not ensemble.failed
    count = f"{len(ensemble.members)} of {ensemble.num_members} members"
    body = f"<h1>{escape(title)}</h1>"
    missing = ensemble.num_members - len(ensemble.members)
    body += paragraph(_state(missing, len(ensemble.failed)), "good" if is_healthy else "wrong")
    said = SweepFolder(folder).table.metadata
    provenance, identity = said.get("provenance"), said.get("identity")
    provenance = provenance if isinstance(provenance, dict) else {}
    sections = identity.get("sections") if isinstance(identity, dict) else None
    keys = ("written", "command", "physkit", "jax", "python", "precision", "devices")
    body += facts(
        {
            "folder": folder.resolve(),
            "members": count,
            "computing": format_duration(float(ensemble.seconds)),
            "growths of caches": len(ensemble.growths),
        }
        | {key: provenance[key] for key in keys if key in provenance}
    )
    body += chapter("What there is", ensemble._repr_html_())
    body += chapter("Over time", lay_out(_fans(ensemble)))
    body += chapter("Over what was swept", lay_out(_results(ensemble)))
    body += chapter("Members", _members(ensemble))
    if isinstance(sections, dict):
        body += chapter("What was simulated, with which numbers", numbers_by_path(sections))
    return title, body, is_healthy


def _state(missing: int, failed: int) -> str:
    """In words, how many members are missing and how many have failed."""
    words = f"NOT complete: {missing} members missing" if missing else "complete"
    return f"{words}; {failed} members FAILED" if failed else words


def _fans(ensemble: Ensemble) -> list[str]:
    pictures = []
    for name, values in list(ensemble.frames.items())[:_MAX_PICTURES]:
        times = np.asarray(ensemble.times[name])
        is_number = values.ndim == 2 and values.dtype.kind in "fiu" and values.shape[1] > 1
        if not is_number or times.ndim != 1 or values.nbytes > _MAX_BYTES or not ensemble.ok.any():
            continue
        lines = np.asarray(values[:], float)[ensemble.ok]

        def draw(ax: Axes, times=times, lines=lines, name=name) -> None:
            fan(times, lines, members=min(len(lines), 5), ax=ax, label=name)

        pictures.append(draw_picture(draw, f"{name}: quantiles of {len(lines)} members"))
    return pictures


def _results(ensemble: Ensemble) -> list[str]:
    """Summaries and last frames that are numbers, over the coordinates: points, a map, or parallel axes."""
    across = {
        name: np.asarray(x, float)
        for name, x in ensemble.coordinates.items()
        if name not in _NOT_SWEPT and x.ndim == 1 and np.asarray(x).dtype.kind in "fiu"
    }
    pictures = []
    for name, values in _last_values(ensemble).items():
        if not across or len(pictures) >= _MAX_PICTURES:
            break
        keep = ensemble.ok & np.isfinite(values)
        shown = {title: x[keep] for title, x in across.items()}
        if keep.any():
            missing = len(keep) - int(keep.sum())
            caption = (
                f"{name}; {missing} of {len(keep)} members have no number" if missing else name
            )
            pictures.append(draw_picture(_draws_result(name, values[keep], shown), caption))
    return pictures


def _draws_result(name: str, values: np.ndarray, across: dict[str, np.ndarray]):
    def draw(ax: Axes) -> None:
        names = list(across)
        if len(names) == 1:
            ax.plot(across[names[0]], values, "o", markersize=4, alpha=0.7)
            ax.set_xlabel(names[0])
            ax.set_ylabel(name)
        elif len(names) == 2:
            # Replicas at a point are averaged.
            points = np.stack(list(across.values()), axis=1)
            places, index = np.unique(points, axis=0, return_inverse=True)
            index = index.reshape(-1)
            mean = np.bincount(index, values) / np.bincount(index)
            x, y = places.T
            heat_map(x, y, mean, ax=ax, x_label=names[0], y_label=names[1], label=name)
        else:
            parallel_coordinates({**across, name: values}, ax=ax)

    return draw


def _last_values(ensemble: Ensemble) -> dict[str, np.ndarray]:
    """One number of each member, by name."""
    found = {}
    for name, values in (*ensemble.frames.items(), *ensemble.summary.items()):
        is_frame = name in ensemble.frames
        size = int(np.prod(values.shape[1 + is_frame :], dtype=object))
        if size != 1 or values.dtype.kind not in "fiub" or values.nbytes > _MAX_BYTES:
            continue
        numbers = np.asarray(values[:], float)
        numbers = numbers[:, -1] if is_frame else numbers
        found[f"last {name}" if is_frame else name] = numbers.reshape(len(numbers))
    return found


def _members(ensemble: Ensemble) -> str:
    columns = {n: x for n, x in ensemble.coordinates.items() if np.ndim(x) == 1}
    columns |= _last_values(ensemble)
    rows = [
        (m, *(f"{values[k]:.6g}" for values in columns.values()), "" if ok else "FAILED")
        for k, (m, ok) in enumerate(zip(ensemble.members[:_MAX_ROWS], ensemble.ok, strict=False))
    ]
    more = len(ensemble.members) - _MAX_ROWS
    note = paragraph(f"… and {more} more", "about") if more > 0 else ""
    body = expandable("table", table(("member", *columns, ""), rows) + note)
    failed = [(f.member, f.step, f.reason) for f in ensemble.failed[:_MAX_ROWS]]
    return body + (table(("failed member", "by step", "why"), failed) if failed else "")
