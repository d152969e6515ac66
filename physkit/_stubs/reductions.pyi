# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.ensemble import (
    Converged as Converged,
    Histogram as Histogram,
    Mean as Mean,
    Quantiles as Quantiles,
    Reduction as Reduction,
    Retry as Retry,
    Variance as Variance,
)
