"""Floor 2: spaces, grids and boundaries. The only floor that speaks to devices."""

from ._blocks import (
    cut_array as cut_array,
    joined_array as joined_array,
    joined_axis as joined_axis,
    need_divisible as need_divisible,
)
from ._boundary import (
    AbstractBoundary as AbstractBoundary,
    Dirichlet as Dirichlet,
    Inflow as Inflow,
    Neumann as Neumann,
    NoSlip as NoSlip,
    Outflow as Outflow,
    Reflect as Reflect,
    Wall as Wall,
    Wrap as Wrap,
    as_value as as_value,
)
from ._box import Box as Box
from ._free import Free as Free
from ._grid import Grid as Grid
from ._location import AXES as AXES, Location as Location
from ._sides import (
    Boundaries as Boundaries,
    boundaries as boundaries,
    unknown as unknown,
)
from ._slab import Slab as Slab, need_box as need_box, slab_axis as slab_axis
from ._space import (
    AbstractSpace as AbstractSpace,
    Components as Components,
    on_devices as on_devices,
)
from ._transforms import Parities as Parities, Parity as Parity
from ._triclinic import (
    Triclinic as Triclinic,
    determinant as determinant,
    heights as heights,
    inverse_matrix as inverse_matrix,
)
