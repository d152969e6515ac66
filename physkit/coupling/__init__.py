"""Floor 5: particles and fields together."""

from ._kernels import (
    CIC as CIC,
    PCS as PCS,
    TSC as TSC,
    AbstractKernel as AbstractKernel,
    Nearest as Nearest,
)
from ._transfer import deposit as deposit, interpolate as interpolate
