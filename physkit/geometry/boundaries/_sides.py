"""The boundaries of a field: one per axis and side, from what a user writes."""

from typing import Any

from physkit.core import ParameterError

from ..spaces._location import AXES, axis_number
from ._boundary import AbstractBoundary, Periodic

Sides = tuple[AbstractBoundary, AbstractBoundary]
# One pair per axis; None where nothing is known: on bounded axes of fields that were computed.
Boundaries = tuple[Sides | None, ...]


def parse_boundaries(periodic: tuple[bool, ...], given: Any) -> Boundaries:
    """One boundary per axis and side, every one accounted for.

    **Arguments:**

    - `periodic`: which axes repeat: they wrap, and take nothing else.
    - `given`: one boundary for every side that does not wrap; or a dict by axis (`"x"`, or 0) and
      side (`"x_low"`, `"x_high"`), whose values are a boundary or a pair (low, high); or None.

    **Errors:** `ParameterError` for a side without a boundary, or with two; for a boundary that names a
    periodic axis (one for all sides skips those); for `Periodic` on one that does not repeat.
    """
    if given is None or isinstance(given, AbstractBoundary):
        given = {} if given is None else {k: given for k, wraps in enumerate(periodic) if not wraps}
    if not isinstance(given, dict):
        raise ParameterError(
            f"boundary= takes one boundary, or a dict by axis and side; got {given!r}"
        )
    sides: dict[tuple[int, int], AbstractBoundary] = {}
    for key, value in given.items():
        axis, which = _parsed(key, len(periodic))
        pair = value if isinstance(value, tuple) else (value, value)
        if len(pair) != 2:
            raise ParameterError(f"{key!r}: one boundary, or a pair (low, high); got {len(pair)}")
        for side in which:
            if (axis, side) in sides:
                raise ParameterError(f"the boundary at {_name(axis, side)} is given twice")
            sides[axis, side] = _checked(pair[side], axis, side, periodic[axis])
    missing = [
        _name(axis, side)
        for axis, wraps in enumerate(periodic)
        for side in (0, 1)
        if not wraps and (axis, side) not in sides
    ]
    if missing:
        raise ParameterError(
            f"no boundary at {', '.join(missing)}: the box does not repeat there. Say, e.g., "
            "boundary=Dirichlet(0.0), or a dict by axis and side"
        )
    wrap = (Periodic(), Periodic())
    return tuple(
        wrap if wraps else (sides[axis, 0], sides[axis, 1]) for axis, wraps in enumerate(periodic)
    )


def unknown_boundaries(periodic: tuple[bool, ...]) -> Boundaries:
    """What a computed field has: it wraps where the box does, and knows nothing of its walls."""
    return tuple((Periodic(), Periodic()) if wraps else None for wraps in periodic)


def _parsed(key: Any, dimension: int) -> tuple[int, tuple[int, ...]]:
    name, _, side = key.partition("_") if isinstance(key, str) else (key, "", "")
    if side not in ("", "low", "high"):
        raise ParameterError(f"no side {key!r}; sides are called like 'x', 'x_low', 'x_high'")
    which = {"": (0, 1), "low": (0,), "high": (1,)}[side]
    return axis_number(name, dimension), which


def _checked(boundary: Any, axis: int, side: int, wraps: bool) -> AbstractBoundary:
    if not isinstance(boundary, AbstractBoundary):
        raise ParameterError(f"{_name(axis, side)}: expected a boundary, got {boundary!r}")
    if wraps and not isinstance(boundary, Periodic):
        raise ParameterError(
            f"{_name(axis, side)}: the box repeats along {AXES[axis]}, so {boundary!r} has no place "
            "there; say Box(lengths, periodic=…) for walls"
        )
    if isinstance(boundary, Periodic) and not wraps:
        raise ParameterError(
            f"{_name(axis, side)}: Periodic, but the box does not repeat along {AXES[axis]}"
        )
    return boundary


def _name(axis: int, side: int) -> str:
    return f"{AXES[axis]}_{('low', 'high')[side]}"
