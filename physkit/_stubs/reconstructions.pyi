# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.finite_volume import (
    AWENO5 as AWENO5,
    AbstractReconstruction as AbstractReconstruction,
    MUSCL as MUSCL,
    PiecewiseConstant as PiecewiseConstant,
    WENO5 as WENO5,
)
