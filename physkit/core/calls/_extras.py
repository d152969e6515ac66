"""Packages that physkit does without: they come with an extra, `pip install physkit[…]`."""

import importlib
from typing import Any

from .._errors import MissingExtraError


def import_extra(package: str, extra: str, purpose: str) -> Any:
    """The package of that name, an optional dependency.

    **Arguments:**

    - `extra`: the extra of physkit that brings it.
    - `purpose`: who needs it, as the message begins.

    **Errors:** `MissingExtraError` where it cannot be imported.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs {package}: pip install physkit[{extra}]"
        ) from error
