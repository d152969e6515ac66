"""What may become of a draw."""

import dataclasses
import re
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from physkit.core import PhyskitError


@dataclasses.dataclass(frozen=True)
class Outcome:
    """`kind` is "agrees", "named" (an error or a fault that names the cause), "chaotic", "kink" or "WRONG"."""

    kind: str
    text: str

    @property
    def is_finding(self) -> bool:
        return self.kind == "WRONG"


def show_fields(draw: object) -> str:
    """What was drawn, "name=value, …"."""
    return ", ".join(f"{f.name}={getattr(draw, f.name)}" for f in dataclasses.fields(draw))


def judge(work: Callable[[], str], causes: Sequence[str]) -> Outcome:
    """Run `work`, which returns "" where all agrees, or what does not.

    - `causes`: patterns of what is wrong with the draw, one of which an error must name; none for a draw
      that is right, which nothing may refuse.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            difference = work()
        except PhyskitError as error:
            text = f"{type(error).__name__}: {error}"
            if any(re.search(cause, text, re.IGNORECASE) for cause in causes):
                return Outcome("named", text)
            return Outcome("WRONG", f"refused, though {list(causes) or 'nothing is wrong'}: {text}")
        except FaultFound as fault:
            return Outcome(fault.kind, str(fault))
        except Exception as error:
            return Outcome("WRONG", f"raw error {type(error).__name__}: {error}")
    if not difference:
        return Outcome("agrees", "")
    for kind in ("chaotic", "kink"):
        if difference.startswith(kind):
            return Outcome(kind, difference)
    for warning in caught:
        if any(re.search(cause, str(warning.message), re.IGNORECASE) for cause in causes):
            return Outcome("named", f"warning: {warning.message}")
    return Outcome("WRONG", difference)


class FaultFound(Exception):  # noqa: N818
    """Health that says what is wrong, beside numbers."""

    def __init__(self, kind: str, text: str):
        super().__init__(text)
        self.kind = kind


def check_health(health, numbers: Sequence, causes: Sequence[str]) -> None:
    """Raise for a fault: it must be a cause of the draw, and must have poisoned the numbers."""
    if health.ok:
        return
    name = str(health.faults())
    if all(np.all(np.isfinite(x)) for x in numbers):
        raise FaultFound("WRONG", f"{name} is set, but the numbers are finite")
    health.check()  # as its error, which `judge` compares with the causes


def compare(name: str, got, expected, tolerance) -> str:
    """What differs by more than the tolerance, elementwise."""
    got, expected = np.asarray(got, float), np.asarray(expected, float)
    if got.shape != expected.shape:
        return f"{name} has shape {got.shape}, expected {expected.shape}; "
    with np.errstate(all="ignore"):
        same = (np.isnan(got) & np.isnan(expected)) | (np.abs(got - expected) <= tolerance)
    if np.all(same):
        return ""
    at = np.unravel_index(int(np.argmin(same)), same.shape)
    allowed = np.broadcast_to(tolerance, got.shape)[at]
    return f"{name}{[int(i) for i in at]} is {got[at]:.9g}, expected {expected[at]:.9g} ± {allowed:.2g}; "
