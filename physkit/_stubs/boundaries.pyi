# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.geometry import (
    AbstractBoundary as AbstractBoundary,
    Dirichlet as Dirichlet,
    FixedPressure as FixedPressure,
    FreeSurface as FreeSurface,
    Inflow as Inflow,
    Mirror as Mirror,
    Neumann as Neumann,
    NoSlip as NoSlip,
    Outflow as Outflow,
    PerfectConductor as PerfectConductor,
    PerfectMagneticConductor as PerfectMagneticConductor,
    Periodic as Periodic,
    Robin as Robin,
)
from physkit.fields import (
    GasInflow as GasInflow,
)
