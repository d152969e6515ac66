# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fit import (
    AbstractBounds as AbstractBounds,
    Interval as Interval,
    PositiveBound as PositiveBound,
    Simplex as Simplex,
    Unbounded as Unbounded,
)
