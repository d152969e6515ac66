"""A published number, and how it is computed again."""

import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from physkit.core import DeclarationError, Module, ParameterError, static

REFERENCE_DATA = "PHYSKIT_REFERENCE_DATA"


class Published(Module):
    """One published number and how closely it must be met.

    **Arguments:**

    - `name`: the key under which the case's function returns it.
    - `value`: the published number.
    - `tolerance`: how far off it may be.
    - `kind`: `"absolute"` |computed − value| ≤ tolerance · `"relative"` the same over |value| ·
      `"at most"` computed ≤ value + tolerance · `"at least"` computed ≥ value − tolerance.
    """

    name: str = static()
    value: float = static(converter=float)
    tolerance: float = static(converter=float)
    kind: Literal["absolute", "relative", "at most", "at least"] = static(default="absolute")

    def accepts(self, computed: float) -> bool:
        """Whether `computed` is close enough; NaN never is."""
        # NaN compares false with everything: each line must be true to accept, never false to reject.
        difference = computed - self.value
        if self.kind == "at most":
            return difference <= self.tolerance
        if self.kind == "at least":
            return -difference <= self.tolerance
        scale = abs(self.value) if self.kind == "relative" else 1.0
        return abs(difference) <= self.tolerance * scale

    @property
    def allowed(self) -> str:
        """The tolerance as a table shows it."""
        if self.kind == "relative":
            return f"{100 * self.tolerance:.3g} %"
        sign = {"absolute": "±", "at most": "≤ +", "at least": "≥ −"}[self.kind]
        return f"{sign}{self.tolerance:.3g}"


class Case(Module):
    """Published numbers of one piece of physics, and the function that computes them again.

    The function's docstring says what is simulated. Cases ship with the package, so that
    `physkit validate` shows them to a user; `tests/validation` runs the same ones.

    **Arguments:**

    - `name`: how `physkit validate NAME` calls it.
    - `compute`: returns a number for every name in `published`; runs in double precision.
    - `published`: the numbers.
    - `source`: paper, equation or table.
    - `slow`: takes more than about ten seconds; left out of quick runs.
    - `needs_reference_data`: reads files from `reference_data()`; skipped where there are none. The name of a
      file, where not every such folder has it: skipped where this one lacks it.

    **Errors:** `DeclarationError` for a case without numbers, or with one name twice.
    """

    name: str = static()
    compute: Callable[[], Mapping[str, Any]] = static()
    published: tuple[Published, ...] = static(converter=tuple)
    source: str = static()
    slow: bool = static(default=False)
    needs_reference_data: bool | str = static(default=False)

    def __check_init__(self):
        names = [p.name for p in self.published]
        if not names or len(set(names)) != len(names):
            raise DeclarationError(
                f"case {self.name!r} needs distinct published names; got {names}"
            )


class Found(Module):
    """What a case computed for one of its published numbers."""

    case: Case
    published: Published
    computed: float = static()
    seconds: float = static()
    note: str = static(default="")

    @property
    def passed(self) -> bool:
        """Whether the computed number is as close as it must be."""
        return self.published.accepts(self.computed)

    @property
    def label(self) -> str:
        """Case and number, as a table names them."""
        return f"{self.case.name}: {self.published.name}"


def evaluate(case: Case) -> list[Found]:
    """Compute a case; one that raises gives NaN for all its numbers and says so in `note`.

    **Errors:** `DeclarationError` where the function returns other names than the case published.
    """
    began = time.monotonic()
    note = ""
    try:
        numbers = {name: float(x) for name, x in case.compute().items()}
    except Exception as error:  # one broken case must not hide the others
        numbers = {p.name: math.nan for p in case.published}
        note = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - began
    expected = {p.name for p in case.published}
    if set(numbers) != expected:
        raise DeclarationError(
            f"case {case.name!r} computes {sorted(numbers)} but publishes {sorted(expected)}"
        )
    return [Found(case, p, numbers[p.name], seconds, note) for p in case.published]


def missing_data(case: Case) -> str:
    """Why the case cannot run here; empty if it can."""
    needed, folder = case.needs_reference_data, os.environ.get(REFERENCE_DATA)
    if not needed:
        return ""
    if not folder:
        return f"needs files: set {REFERENCE_DATA}"
    if isinstance(needed, str) and not (Path(folder) / needed).is_file():
        return f"needs {needed} in {REFERENCE_DATA}"
    return ""


def reference_data() -> Path:
    """The folder of reference data, which is no part of the package.

    **Errors:** `ParameterError` if `PHYSKIT_REFERENCE_DATA` names none.
    """
    folder = Path(os.environ.get(REFERENCE_DATA, ""))
    if not os.environ.get(REFERENCE_DATA) or not folder.is_dir():
        raise ParameterError(f"{REFERENCE_DATA}={folder} is not a folder with reference data")
    return folder
