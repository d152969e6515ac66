# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.ensemble import (
    Histogram as Histogram,
    Mean as Mean,
    Quantiles as Quantiles,
    Reduction as Reduction,
    Variance as Variance,
)
