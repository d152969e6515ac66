# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.simulate import (
    Binomial as Binomial,
    Direct as Direct,
    Forward as Forward,
    NestedCheckpoint as NestedCheckpoint,
    Reversible as Reversible,
    adjoint_report as adjoint_report,
    reversibility_report as reversibility_report,
)
