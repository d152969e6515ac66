"""Finite volumes: conservation laws, reconstruction, limiters, Riemann solvers."""

from ._conservation_law import (
    AbstractConservationLaw as AbstractConservationLaw,
    as_rates as as_rates,
    component_fields as component_fields,
    finite_volume_rate as finite_volume_rate,
    reconstruct_faces as reconstruct_faces,
)
from ._ideal_gas_riemann import (
    RiemannFan as RiemannFan,
    exact_riemann as exact_riemann,
)
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
    PiecewiseConstant as PiecewiseConstant,
)
from ._riemann_solvers import (
    HLL as HLL,
    HLLC as HLLC,
    AbstractRiemannSolver as AbstractRiemannSolver,
    ExactRiemann as ExactRiemann,
    Rusanov as Rusanov,
    Variables as Variables,
)
