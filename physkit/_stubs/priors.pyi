# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.inference import (
    AbstractPrior as AbstractPrior,
    HalfCauchy as HalfCauchy,
    HalfNormal as HalfNormal,
    LogNormal as LogNormal,
    Normal as Normal,
    Uniform as Uniform,
)
