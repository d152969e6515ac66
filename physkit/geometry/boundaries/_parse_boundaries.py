"""Parse `boundary=`: one boundary per axis and side, from the forms that a user may write."""

from typing import Any

from physkit.core import ParameterError

from ..spaces._location import AXES, axis_number
from ._boundary import AbstractBoundary, Periodic

Sides = tuple[AbstractBoundary, AbstractBoundary]  # (low, high)
# One pair per axis; None where it is unknown: between walls, for fields that were computed from others.
Boundaries = tuple[Sides | None, ...]


def parse_boundaries(periodic: tuple[bool, ...], given: Any) -> Boundaries:
    """Parse `boundary=` to one pair of boundaries per axis.

    **Arguments:**

    - `periodic`: which axes are periodic: they have `Periodic` on both sides, and take nothing else.
    - `given`: one boundary, for every side of an axis that is not periodic; or a dict by axis (`"x"`, or 0)
      or side (`"x_low"`, `"x_high"`), whose values are a boundary or a pair (low, high); or None.

    **Errors:** `ParameterError` for a side without a boundary, or with two; for a boundary on a periodic axis
    that is named; for `Periodic` on an axis that is not.
    """
    # One boundary for all sides skips periodic axes, so that it fits channels and closed boxes alike.
    if given is None or isinstance(given, AbstractBoundary):
        given = {} if given is None else {k: given for k, wraps in enumerate(periodic) if not wraps}
    if not isinstance(given, dict):
        raise ParameterError(
            f"boundary= takes one boundary, or a dict by axis and side; got {given!r}"
        )
    sides: dict[tuple[int, int], AbstractBoundary] = {}
    for key, value in given.items():
        axis, named_sides = _parse_key(key, len(periodic))
        pair = value if isinstance(value, tuple) else (value, value)
        if len(pair) != 2:
            raise ParameterError(f"{key!r}: one boundary, or a pair (low, high); got {len(pair)}")
        for side in named_sides:
            if (axis, side) in sides:
                raise ParameterError(f"the boundary at {_side_name(axis, side)} is given twice")
            _require_boundary(pair[side], axis, side, periodic[axis])
            sides[axis, side] = pair[side]
    missing = [
        _side_name(axis, side)
        for axis, wraps in enumerate(periodic)
        for side in (0, 1)
        if not wraps and (axis, side) not in sides
    ]
    if missing:
        raise ParameterError(
            f"no boundary at {', '.join(missing)}, where the box is not periodic. Give, e.g., "
            "boundary=Dirichlet(0.0), or a dict by axis and side"
        )
    both_periodic = (Periodic(), Periodic())
    return tuple(
        both_periodic if wraps else (sides[axis, 0], sides[axis, 1])
        for axis, wraps in enumerate(periodic)
    )


def unknown_boundaries(periodic: tuple[bool, ...]) -> Boundaries:
    """The boundaries of a field that was computed: periodic where the box is, else unknown."""
    return tuple((Periodic(), Periodic()) if wraps else None for wraps in periodic)


def _parse_key(key: int | str, dimension: int) -> tuple[int, tuple[int, ...]]:
    """`"x"` or 0 → (0, (0, 1)), `"x_low"` → (0, (0,)), `"x_high"` → (0, (1,)): an axis, and its sides."""
    name, _, side = key.partition("_") if isinstance(key, str) else (key, "", "")
    if side not in ("", "low", "high"):
        raise ParameterError(f"no side {key!r}; sides are called like 'x', 'x_low', 'x_high'")
    return axis_number(name, dimension), {"": (0, 1), "low": (0,), "high": (1,)}[side]


def _require_boundary(boundary: Any, axis: int, side: int, wraps: bool) -> None:
    if not isinstance(boundary, AbstractBoundary):
        raise ParameterError(f"{_side_name(axis, side)}: expected a boundary, got {boundary!r}")
    if wraps and not isinstance(boundary, Periodic):
        raise ParameterError(
            f"{_side_name(axis, side)}: the box is periodic along {AXES[axis]}, where there is no wall for "
            f"{boundary!r}; Box(lengths, periodic=…) makes walls"
        )
    if isinstance(boundary, Periodic) and not wraps:
        raise ParameterError(
            f"{_side_name(axis, side)}: Periodic, but the box is not periodic along {AXES[axis]}"
        )


def _side_name(axis: int, side: int) -> str:
    return f"{AXES[axis]}_{('low', 'high')[side]}"
