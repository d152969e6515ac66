"""What some equations ask of a field."""

from physkit.core import ShapeError

from .._field import Field


def require_one_dimension(field: Field, what: str) -> None:
    """**Errors:** `ShapeError` unless the field has one axis of space."""
    if field.grid.dimension != 1:
        raise ShapeError(f"{what} is one on a line; this grid has {field.grid.dimension} axes")


def require_components(field: Field, count: int, what: str) -> None:
    """**Errors:** `ShapeError` unless the field has `count` components, and they are no vector."""
    if field.components != (count,):
        raise ShapeError(
            f"{what} moves a field with {count} components, data [{count}, *points]; this one has "
            f"components {field.components}"
        )
