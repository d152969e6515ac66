# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.coupling import (
    AbstractKernel as AbstractKernel,
    CIC as CIC,
    Nearest as Nearest,
    PCS as PCS,
    QuarticSpline as QuarticSpline,
    QuinticSpline as QuinticSpline,
    TSC as TSC,
)
