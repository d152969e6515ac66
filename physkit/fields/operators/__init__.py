"""Derivatives of fields – finite differences, Fourier modes, staggered locations – and finite volumes:
reconstruction, limiters, Riemann solvers."""

from ..finite_volume._ideal_gas_riemann import (
    RiemannFan as RiemannFan,
    exact_riemann as exact_riemann,
)
from ..finite_volume._limiters import (
    AbstractLimiter as AbstractLimiter,
    Minmod as Minmod,
    MonotonizedCentral as MonotonizedCentral,
    Superbee as Superbee,
    VanLeer as VanLeer,
)
from ..finite_volume._reconstruction import (
    MUSCL as MUSCL,
    WENO5 as WENO5,
    AbstractReconstruction as AbstractReconstruction,
    PiecewiseConstant as PiecewiseConstant,
)
from ..finite_volume._riemann_solvers import (
    HLL as HLL,
    HLLC as HLLC,
    AbstractRiemannSolver as AbstractRiemannSolver,
    ExactRiemann as ExactRiemann,
    Rusanov as Rusanov,
    Variables as Variables,
)
from ._derivative_schemes import (
    AbstractScheme as AbstractScheme,
    Central as Central,
    Spectral as Spectral,
)
from ._differential import (
    curl as curl,
    derivative as derivative,
    divergence as divergence,
    gradient as gradient,
    laplacian as laplacian,
)
from ._staggered import (
    average as average,
    difference as difference,
    staggered_curl as staggered_curl,
    staggered_divergence as staggered_divergence,
    staggered_gradient as staggered_gradient,
)
