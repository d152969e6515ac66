"""Published numbers, computed again: one file per group of cases, run by tests and `physkit validate`."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._case import (
        Case as Case,
        Found as Found,
        Published as Published,
        evaluate as evaluate,
        missing_data as missing_data,
        reference_data as reference_data,
    )
    from ._cases import cases as cases
    from .inference._strd import (
        StRD as StRD,
        digits as digits,
        fit_strd as fit_strd,
        read_strd as read_strd,
        shipped_strd as shipped_strd,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
