"""All cases, in the order in which they are shown."""

from . import (
    _baths,
    _cosmology,
    _ensembles,
    _fits,
    _fluids_spectral,
    _gas,
    _gravity,
    _inverse,
    _liquids,
    _ocean,
    _orders,
    _plasma,
    _quantum,
    _reaction,
    _reversal,
    _waves,
)
from ._case import Case

_GROUPS = (
    _liquids,
    _gravity,
    _baths,
    _ensembles,
    _orders,
    _reversal,
    _waves,
    _reaction,
    _quantum,
    _plasma,
    _cosmology,
    _fluids_spectral,
    _gas,
    _ocean,
    _fits,
    _inverse,
)


def cases() -> tuple[Case, ...]:
    """Every case that ships with physkit."""
    return tuple(case for group in _GROUPS for case in group.CASES)
