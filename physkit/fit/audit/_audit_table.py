"""The result of an audit, which prints as a table."""

import dataclasses
from pathlib import Path

import numpy as np

from physkit.core import GradientError
from physkit.html import Markup, fragment, paragraph, span, table
from physkit.storage import to_path

from ..files._audit_file import read_audit, write_audit
from ._verdicts import AuditRow

TRUSTED_VERDICTS = ("right", "zero", "unused", "kink", "jumps", "cut")
# From the gravest on: `check` names the worst.
_WORST = ("NaN", "FAILS", "WRONG", "CUT", "JUMPS", "MODES", "UNREAD", "chaotic")


@dataclasses.dataclass(frozen=True)
class GradientAudit:
    """The derivatives of a run, one row each; prints as a table.

    Verdicts in capitals are errors:

    - `right`: the Taylor remainder falls as it must, and both modes agree.
    - `zero`: exactly 0, and so is the change of the run to first order. `unused`: never read.
    - `kink`: right on one side, and the run has two slopes here.
    - `chaotic`: the run amplifies too much for any test: take fewer steps.
    - `NaN`: not finite; `nan_origin` says where from. `WRONG`: differs from finite differences.
    - `CUT`: exactly 0, where the run changes smoothly. `JUMPS`: exactly 0, where it changes in jumps
      (`cut` and `jumps` where `ignore` says that this may be).
    - `MODES`: forward and reverse mode disagree. `UNREAD`: a parameter that the run never reads.
    - `FAILS`: JAX cannot differentiate it; `reverse_mode_error` says why reverse mode cannot.
    """

    rows: tuple[AuditRow, ...]
    steps: int
    dtype: str
    nan_origin: str | None = None
    reverse_mode_error: str = ""

    @property
    def ok(self) -> bool:
        """Whether every derivative can be trusted."""
        return all(row.verdict in TRUSTED_VERDICTS for row in self.rows)

    def __getitem__(self, name: str) -> AuditRow:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"no {name!r} in this audit; available: {[row.name for row in self.rows]}")

    def check(self) -> None:
        """Raise where one is not right.

        **Errors:** `GradientError` that names the worst.
        """
        if self.ok:
            return
        bad = [row for row in self.rows if row.verdict not in TRUSTED_VERDICTS]
        worst = min(bad, key=lambda row: _WORST.index(row.verdict))
        more = f" ({len(bad) - 1} more)" if len(bad) > 1 else ""
        origin = f"\n{self.nan_origin}" if self.nan_origin and worst.verdict == "NaN" else ""
        raise GradientError(
            f"the derivative by {worst.name} after {self.steps} steps: {worst.verdict}"
            + (f" – {worst.note}" if worst.note else "")
            + more
            + origin
        )

    def save(self, folder: str | Path) -> None:
        """Write it to `audit.nc` in a folder, beside a fit or a run: `physkit report` shows it with them.

        **Errors:** `FileError`.
        """
        write_audit(to_path(folder), self)

    @classmethod
    def load(cls, folder: str | Path) -> "GradientAudit":
        """The audit in a folder.

        **Errors:** `FileError` where there is none, `DamagedFileError`.
        """
        found = read_audit(to_path(folder))
        return cls(rows=tuple(AuditRow(**row) for row in found.pop("rows")), **found)

    def _repr_html_(self) -> str:
        rows = []
        for row in self.rows:
            kind = "good" if row.verdict in TRUSTED_VERDICTS else "wrong"
            verdict = Markup(span(kind, row.verdict))
            shape = "×".join(map(str, row.shape))
            numbers = (_finite(row.order, ".2f", 1), _finite(row.mismatch, ".1e", 1))
            rows.append((row.name, shape, verdict, *numbers, _finite(row.size, ".3g", 1), row.note))
        header = ("leaf", "shape", "verdict", "order", "modes", "|gradient|", "")
        title = f"Gradient audit: {self.steps} steps, {self.dtype}, {len(self.rows)} leaves"
        body = span("kind", title) + table(header, rows)
        body += "".join(
            paragraph(x, "wrong") for x in (self.nan_origin, self.reverse_mode_error) if x
        )
        all_right = "all derivatives can be trusted", "good"
        body += paragraph(*(all_right if self.ok else ("NOT all derivatives are right", "wrong")))
        return fragment(body)

    def __repr__(self) -> str:
        name_width = max(len("leaf"), *(len(row.name) for row in self.rows))
        shapes = ["×".join(map(str, row.shape)) or "·" for row in self.rows]
        shape_width = max(len("shape"), *map(len, shapes))
        lines = [
            f"Gradient audit: {self.steps} steps, {self.dtype}, {len(self.rows)} leaves",
            f"{'leaf':{name_width}}  {'shape':>{shape_width}}  verdict  order  modes    |gradient|",
        ]
        for row, shape in zip(self.rows, shapes, strict=True):
            lines.append(
                f"{row.name:{name_width}}  {shape:>{shape_width}}  {row.verdict:7}  "
                f"{_finite(row.order, '5.2f', 5)}  {_finite(row.mismatch, '7.1e', 7)}  "
                f"{_finite(row.size, '9.3g', 9)}" + (f"  {row.note}" if row.note else "")
            )
        lines += [line for line in (self.nan_origin, self.reverse_mode_error) if line]
        if self.dtype == "float32":
            lines.append(
                "In single precision only errors above some 1e-3 show; audit in float64 too."
            )
        lines.append(
            "all derivatives can be trusted" if self.ok else "NOT all derivatives are right"
        )
        return "\n".join(lines)


def _finite(x: float, form: str, width: int) -> str:
    return f"{x:{form}}" if np.isfinite(x) else f"{'–':>{width}}"
