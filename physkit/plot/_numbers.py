"""Numbers that are drawn: real ones, of shapes that go together."""

from collections.abc import Mapping

import numpy as np

from physkit.core import ParameterError, ShapeError, describe

from ._types import Numbers


def as_real(values: Numbers, name: str) -> np.ndarray:
    """`values` as floating numbers.

    **Errors:** `ParameterError` for complex ones, which would lose their imaginary parts, and for no numbers.
    """
    found = np.asarray(values)
    if np.iscomplexobj(found):
        raise ParameterError(
            f"{name} is complex: draw the real part, x.real, or the square of the magnitude, abs(x)**2"
        )
    try:
        return found.astype(float)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be numbers; got {describe(values)}") from None


def as_columns(given: Mapping[str, Numbers]) -> list[np.ndarray]:
    """Real numbers by name, all along one axis of one length.

    **Errors:** `ShapeError` otherwise, and where there are none; `ParameterError` for complex ones.
    """
    found = {name: as_real(values, name) for name, values in given.items()}
    shapes = {x.shape for x in found.values()}
    if len(shapes) > 1 or any(len(shape) != 1 or not shape[0] for shape in shapes):
        described = ", ".join(f"{name} {x.shape}" for name, x in found.items())
        raise ShapeError(f"{' and '.join(found)} need one axis of one length; got {described}")
    return list(found.values())


def as_errors(error: Numbers | None, values: np.ndarray) -> np.ndarray | None:
    """A standard error for each of `values`; None where none is given.

    **Errors:** `ShapeError` for what is neither one number nor one for each.
    """
    if error is None:
        return None
    found = as_real(error, "error")
    if found.shape not in ((), values.shape):
        raise ShapeError(
            f"error is one number or of shape {values.shape}, as the values are; got {found.shape}"
        )
    return np.broadcast_to(found, values.shape)
