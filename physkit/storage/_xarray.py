"""Import xarray, an optional dependency."""

from typing import Any

from physkit.core import MissingExtraError


def require_xarray() -> Any:
    """The package xarray.

    **Errors:** `MissingExtraError` without the extra `physkit[xarray]`.
    """
    try:
        import xarray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError("to_xarray needs xarray: pip install physkit[xarray]") from error
    return xarray
