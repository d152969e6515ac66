# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.geometry import (
    AbstractSpace as AbstractSpace,
    Box as Box,
    Free as Free,
    Location as Location,
    Triclinic as Triclinic,
)
