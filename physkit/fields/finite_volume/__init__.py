"""Finite volumes: conservation laws, reconstruction, limiters, Riemann solvers."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._ausm import AdvectionParts as AdvectionParts, AUSMPlus as AUSMPlus
    from ._conservation_law import (
        AbstractConservationLaw as AbstractConservationLaw,
        finite_volume_rate as finite_volume_rate,
    )
    from ._faces import reconstruct_faces as reconstruct_faces
    from ._hlld import HLLD as HLLD
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
    from ._roe import Roe as Roe
    from ._variables import as_rates as as_rates, component_fields as component_fields
    from ._weno import AWENO5 as AWENO5, WENO5 as WENO5
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
