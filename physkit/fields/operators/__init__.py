"""Derivatives of fields – finite differences, Fourier modes, staggered locations – and finite volumes:
reconstruction, limiters, Riemann solvers."""

from ._differential import (
    curl as curl,
    derivative as derivative,
    divergence as divergence,
    gradient as gradient,
    laplacian as laplacian,
)
from ._ideal_gas import RiemannFan as RiemannFan, exact_riemann as exact_riemann
from ._limiters import (
    AbstractLimiter as AbstractLimiter,
    Minmod as Minmod,
    MonotonizedCentral as MonotonizedCentral,
    Superbee as Superbee,
    VanLeer as VanLeer,
)
from ._reconstruction import (
    MUSCL as MUSCL,
    WENO5 as WENO5,
    AbstractReconstruction as AbstractReconstruction,
    Constant as Constant,
)
from ._riemann import (
    HLL as HLL,
    HLLC as HLLC,
    AbstractRiemannSolver as AbstractRiemannSolver,
    ExactRiemann as ExactRiemann,
    Rusanov as Rusanov,
    Variables as Variables,
)
from ._schemes import AbstractScheme as AbstractScheme, Central as Central, Spectral as Spectral
from ._staggered import (
    average as average,
    difference as difference,
    staggered_curl as staggered_curl,
    staggered_divergence as staggered_divergence,
    staggered_gradient as staggered_gradient,
)
