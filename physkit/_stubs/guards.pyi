# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.observe import (
    AbstractGuard as AbstractGuard,
    CourantLimit as CourantLimit,
    EnergyDrift as EnergyDrift,
    Finite as Finite,
    Guard as Guard,
    NormDrift as NormDrift,
    PositiveDensity as PositiveDensity,
    PositivityGuard as PositivityGuard,
)
