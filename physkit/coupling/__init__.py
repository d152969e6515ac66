"""Particles and fields together."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._comoving import Comoving as Comoving
    from ._current import deposit_current as deposit_current
    from ._drag import Drag as Drag
    from ._kernels import (
        CIC as CIC,
        PCS as PCS,
        TSC as TSC,
        AbstractKernel as AbstractKernel,
        Nearest as Nearest,
        QuarticSpline as QuarticSpline,
        QuinticSpline as QuinticSpline,
    )
    from ._mesh_interactions import (
        AbstractMeshInteraction as AbstractMeshInteraction,
        Electrostatics as Electrostatics,
        Gravity as Gravity,
    )
    from ._particle_mesh import ParticleMesh as ParticleMesh
    from ._particle_mesh_ewald import ParticleMeshEwald as ParticleMeshEwald
    from ._passive_tracers import PassiveTracers as PassiveTracers
    from ._transfer import (
        deposit as deposit,
        interpolate as interpolate,
        require_box_of_grid as require_box_of_grid,
    )
    from .immersed._immersed_body import ImmersedBody as ImmersedBody
    from .immersed._immersed_motion import ImmersedMotion as ImmersedMotion
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
