"""NIST's statistical reference data sets for nonlinear regression, and how a fit meets them."""

import re
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import DamagedFileError, ParameterError, PyTree
from physkit.fit import Fit, LevenbergMarquardt, fit

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[EeDd][-+]?\d+)?"
_PARAMETER = re.compile(
    rf"^\s*(b\d+)\s*=\s*({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s*$"
)


class StRD(NamedTuple):
    """One data set of the collection, as `read_strd` reads it.

    - `name`; `columns`: the data by name, y first; `names`: of the parameters.
    - `starts`: `[2 p]`; `certified`, `deviations`: `[p]`, values and their standard deviations.
    - `sum_of_squares`, `residual_deviation`: at the minimum.
    """

    name: str
    columns: dict[str, np.ndarray]
    names: tuple[str, ...]
    starts: np.ndarray
    certified: np.ndarray
    deviations: np.ndarray
    sum_of_squares: float
    residual_deviation: float


def read_strd(file: str | Path) -> StRD:
    """A file of the collection as NIST publishes it (`Misra1a.dat`, `Thurber.dat`, …), or its text.

    **Errors:** `DamagedFileError` for a file without certified values or data, or with other counts of
    observations than it says.

    **Reference:** https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml
    """
    text = file if isinstance(file, str) and "\n" in file else Path(file).read_text("utf-8")
    lines = text.splitlines()
    title = re.search(r"Dataset Name:\s*(\S+)", text)
    rows = [m.groups() for m in map(_PARAMETER.match, lines) if m]
    headers = [i for i, line in enumerate(lines) if re.match(r"\s*Data:\s+y\b", line)]
    if title is None or not rows or not headers:
        raise DamagedFileError(
            "no StRD file: it should have a 'Dataset Name:', parameters 'b1 = start start value deviation' "
            "and a table that begins with 'Data: y x'"
        )
    names = lines[headers[-1]].split(":")[1].split()
    table = [line.split() for line in lines[headers[-1] + 1 :] if line.strip()]
    count = _number_after(text, "Number of Observations")
    if any(len(row) != len(names) for row in table) or (count and len(table) != int(count)):
        raise DamagedFileError(
            f"{title[1]}: {len(table)} rows of {names} where {count or 'some'} were promised"
        )
    numbers = np.array([[_float(x) for x in row] for row in table])
    values = np.array([[_float(x) for x in row[1:]] for row in rows])
    return StRD(
        name=title[1],
        columns=dict(zip(names, numbers.T, strict=True)),
        names=tuple(row[0] for row in rows),
        starts=values[:, :2].T,
        certified=values[:, 2],
        deviations=values[:, 3],
        sum_of_squares=_number_after(text, "Residual Sum of Squares"),
        residual_deviation=_number_after(text, "Residual Standard Deviation"),
    )


def fit_strd(
    problem: StRD, model: Callable[..., Array], start: int = 0, *, max_steps: int = 1000
) -> Fit:
    """`y ≈ model(b, x…)` fitted from one of the two certified starts, 0 or 1.

    **Arguments:**

    - `model`: called with the parameters as one array `[p]` and each predictor `[n]`.

    **Errors:** `ParameterError` for another start.
    """
    if start not in range(len(problem.starts)):
        raise ParameterError(f"start is 0 or 1; got {start}")
    y, *x = (jnp.asarray(column) for column in problem.columns.values())

    def residuals(b: dict[str, Array]) -> Array:
        return y - model(jnp.stack([b[name] for name in problem.names]), *x)

    begin = dict(zip(problem.names, map(float, problem.starts[start]), strict=True))
    method = LevenbergMarquardt(max_steps=max_steps)
    return fit(residuals, begin, where=lambda b: b, method=method, progress=False)


def digits(found: PyTree, certified: ArrayLike) -> float:
    """Correct digits, −log₁₀ of the largest relative error: NIST's figure of merit."""
    error = np.max(np.abs(np.asarray(found) / np.asarray(certified) - 1))
    return float(-np.log10(max(error, 1e-16)))  # 16 where all digits agree


def digits_of(
    problem: StRD, models: Callable[..., Array], starts: Sequence[int]
) -> dict[str, float]:
    """Correct digits of values and standard deviations, the worst of these starts."""
    fits = [fit_strd(problem, models, k) for k in starts]

    def values(tree):
        return [float(tree[name]) for name in problem.names]

    return {
        "digits of values": min(digits(values(f.values), problem.certified) for f in fits),
        "digits of errors": min(
            digits(values(f.standard_errors), problem.deviations) for f in fits
        ),
        # A loss is half of the sum of squares.
        "digits of Σr²": min(digits(2 * f.loss, problem.sum_of_squares) for f in fits),
    }


def shipped_strd(name: str) -> StRD:
    """A data set of the collection that comes with physkit."""
    folder = resources.files("physkit.testing.validation") / "data"
    return read_strd((folder / f"{name}.dat").read_text("utf-8"))


def _number_after(text: str, label: str) -> float:
    found = re.search(rf"{label}:\s*({_NUMBER})", text)
    return _float(found[1]) if found else 0.0


def _float(text: str) -> float:
    # Fortran writes exponents of double precision as D.
    return float(text.upper().replace("D", "E"))
