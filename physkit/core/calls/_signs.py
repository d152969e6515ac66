"""Signs of parameters, where their numbers can be seen."""

import numpy as np

from .._errors import ParameterError
from .._module import Module
from ._concrete import concrete_value


def require_nonnegative(module: Module, *names: str) -> None:
    """**Errors:** `ParameterError` for a negative number or NaN among the fields `names`; a trace hides it."""
    _refuse(module, names, "must not be negative", lambda numbers: ~(numbers >= 0))


def require_positive(module: Module, *names: str) -> None:
    """**Errors:** `ParameterError` for a number among the fields `names` that is not positive, likewise."""
    _refuse(module, names, "must be positive", lambda numbers: ~(numbers > 0))


def require_above(module: Module, limit: float, *names: str) -> None:
    """**Errors:** `ParameterError` for a number among the fields `names` that is not above `limit`."""
    _refuse(module, names, f"must be above {limit:g}", lambda numbers: ~(numbers > limit))


def _refuse(module: Module, names: tuple[str, ...], what: str, is_wrong) -> None:
    for name in names:
        numbers = concrete_value(getattr(module, name))
        # Only numbers have signs: placeholders in their place, such as shapes or masks, pass.
        is_number = numbers is not None and np.issubdtype(numbers.dtype, np.floating)
        if is_number and is_wrong(numbers).any():
            raise ParameterError(f"{type(module).__name__}: {name} {what}; got {numbers.min():g}")
