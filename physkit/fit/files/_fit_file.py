"""A fit as a file: what it found and how, without the model."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from physkit.storage import Column, Table

from ._result_table import open_result, write_result

if TYPE_CHECKING:  # it saves itself with these functions
    from ..solve._fit_result import Fit

FIT_FILE = "fit.nc"
_KIND = "fit"
_BY_NAME = ("values", "start", "standard_errors")
_TREES = ("residuals", "residuals_before")
_PLAIN = {
    "loss": float, "count": int, "errors": str, "converged": bool, "reason": str, "method": str, "steps": int,
    "seconds": float,
}  # fmt: skip
_SPECTRUM = ("eigenvalues", "directions", "is_unidentifiable")
_ATTEMPT = ("loss", "steps", "converged", "diverged")


def write_fit(folder: Path, fit: "Fit") -> None:
    """Write `fit` to its file in the folder; one that is there is replaced.

    **Errors:** `FileError`.
    """
    arrays: dict[str, Any] = {}
    for part in _BY_NAME:
        _put(arrays, part, getattr(fit, part) or {})
    for part in _TREES:
        leaves, _ = jax.tree_util.tree_flatten_with_path(getattr(fit, part))
        _put(arrays, part, {jax.tree_util.keystr(path): leaf for path, leaf in leaves})
    _put(arrays, "history", fit.history._asdict())
    if fit.covariance is not None:
        arrays["covariance"] = fit.covariance
    if fit.spectrum is not None:
        _put(arrays, "spectrum", {name: getattr(fit.spectrum, name) for name in _SPECTRUM})
    for name in fit.values:
        for part in ("start", "values"):
            tried = [getattr(attempt, part)[name] for attempt in fit.attempts]
            arrays[f"attempts {part} {name}"] = np.stack(tried) if tried else np.zeros(0)
    for name in _ATTEMPT:
        arrays[f"attempts {name}"] = np.array([getattr(attempt, name) for attempt in fit.attempts])
    metadata = {name: kind(getattr(fit, name)) for name, kind in _PLAIN.items()} | {
        "names": list(fit.values),
        "labels": list(fit.labels),
        "spectrum": None if fit.spectrum is None else list(fit.spectrum.labels),
        "noise": None if fit.noise is None else float(fit.noise),
        "remarks": list(fit.remarks),
        "history": type(fit.history).__name__,
    }
    write_result(folder / FIT_FILE, _KIND, dict(_columns(arrays)), metadata)


def read_fit(folder: Path) -> dict[str, Any]:
    """The fields of a fit by name, without its model; history, spectrum and attempts by the names of theirs.

    **Errors:** `FileError` where there is none, `DamagedFileError`.
    """
    with open_result(folder / FIT_FILE, _KIND) as table:
        said = table.metadata
        # Files of before 0.3 do not say what errors come from.
        found = {name: kind({"errors": "", **said}[name]) for name, kind in _PLAIN.items()}
        found |= {name: tuple(map(str, said[name])) for name in ("labels", "remarks")}
        names = [str(name) for name in said["names"]]
        found |= {name: _get(table, name) or None for name in _BY_NAME}
        for name in _TREES:
            leaves = _get(table, name)
            # What is one array has no path in its tree.
            found[name] = leaves[""] if list(leaves) == [""] else leaves or None
        found["noise"] = None if said["noise"] is None else float(said["noise"])
        found["history"] = str(said["history"]), _get(table, "history")
        found["covariance"] = table.get("covariance")
        found["spectrum"] = None
        if said["spectrum"] is not None:
            labels = tuple(map(str, said["spectrum"]))
            found["spectrum"] = {"labels": labels} | _get(table, "spectrum")
        numbers = [table[f"attempts {name}"].tolist() for name in _ATTEMPT]
        found["attempts"] = [
            dict(zip(_ATTEMPT, row, strict=True))
            | {
                part: {name: table[f"attempts {part} {name}"][k] for name in names}
                for part in ("start", "values")
            }
            for k, row in enumerate(zip(*numbers, strict=True))
        ]
    return found


def _put(arrays: dict[str, Any], part: str, named: Mapping[str, Any]) -> None:
    arrays |= {f"{part} {name}": x for name, x in named.items()}


def _get(table: Table, part: str) -> dict[str, np.ndarray]:
    """The arrays of a part, by name."""
    start = f"{part} "
    return {name.removeprefix(start): table[name] for name in table if name.startswith(start)}


def _columns(arrays: Mapping[str, Any]) -> Iterable[tuple[str, Column]]:
    """Arrays as columns of a table, each with dimensions of its own."""
    for number, (name, x) in enumerate(arrays.items()):
        values = np.asarray(x)
        yield name, Column(values, tuple(f"d{number}_{axis}" for axis in range(values.ndim)))
