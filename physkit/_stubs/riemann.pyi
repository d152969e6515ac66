# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.finite_volume import (
    AUSMPlus as AUSMPlus,
    AbstractRiemannSolver as AbstractRiemannSolver,
    AdvectionParts as AdvectionParts,
    ExactRiemann as ExactRiemann,
    HLL as HLL,
    HLLC as HLLC,
    HLLD as HLLD,
    Roe as Roe,
    Rusanov as Rusanov,
    exact_riemann as exact_riemann,
)
