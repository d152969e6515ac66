"""Spaces, grids and boundaries. The only layer that speaks to devices."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from .boundaries._boundary import (
        AbstractBoundary as AbstractBoundary,
        Dirichlet as Dirichlet,
        Inflow as Inflow,
        Mirror as Mirror,
        Neumann as Neumann,
        NoSlip as NoSlip,
        Outflow as Outflow,
        Periodic as Periodic,
        Robin as Robin,
    )
    from .boundaries._conductors import (
        PerfectConductor as PerfectConductor,
        PerfectMagneticConductor as PerfectMagneticConductor,
    )
    from .boundaries._fixed_pressure import FixedPressure as FixedPressure
    from .boundaries._free_surface import FreeSurface as FreeSurface
    from .boundaries._parse_boundaries import (
        Boundaries as Boundaries,
        parse_boundaries as parse_boundaries,
        unknown_boundaries as unknown_boundaries,
    )
    from .boundaries._space_time_value import as_space_time_value as as_space_time_value
    from .boundaries._wall import Wall as Wall, shape_for_wall as shape_for_wall
    from .grids._blocks import (
        concatenate_blocks as concatenate_blocks,
        shard_array as shard_array,
        unshard_array as unshard_array,
    )
    from .grids._grid import Grid as Grid
    from .grids._spherical_grid import AnyGrid as AnyGrid, SphericalGrid as SphericalGrid
    from .spaces._box import Box as Box
    from .spaces._coordinates import Coordinates as Coordinates
    from .spaces._domain import AbstractDomain as AbstractDomain, with_comm as with_comm
    from .spaces._free import Free as Free
    from .spaces._location import AXES as AXES, Location as Location
    from .spaces._slab import Slab as Slab, require_box as require_box, slab_axis as slab_axis
    from .spaces._space import (
        AbstractSpace as AbstractSpace,
        Components as Components,
    )
    from .spaces._strained import StrainedSpace as StrainedSpace
    from .spaces._triclinic import (
        Triclinic as Triclinic,
        determinant as determinant,
        heights as heights,
        inverse_matrix as inverse_matrix,
    )
    from .transforms._cosine_sine import Parities as Parities, Parity as Parity
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
