# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.core import (
    SI as SI,
    UnitSystem as UnitSystem,
    atomic as atomic,
    lennard_jones_units as lennard_jones_units,
    metal as metal,
    molecular as molecular,
    real as real,
)
