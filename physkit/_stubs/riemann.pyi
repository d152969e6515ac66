# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.finite_volume import (
    AbstractRiemannSolver as AbstractRiemannSolver,
    ExactRiemann as ExactRiemann,
    HLL as HLL,
    HLLC as HLLC,
    Rusanov as Rusanov,
    exact_riemann as exact_riemann,
)
