"""Floor 2: spaces. The only floor that speaks to devices."""

from ._box import Box as Box
from ._free import Free as Free
from ._space import AbstractSpace as AbstractSpace, Components as Components
from ._triclinic import (
    Triclinic as Triclinic,
    determinant as determinant,
    heights as heights,
    inverse_matrix as inverse_matrix,
)
