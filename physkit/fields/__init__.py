"""Floor 4: fields on grids, and the equations that move them."""

from ._change import Change as Change
from ._equation import AbstractEquation as AbstractEquation
from ._field import Field as Field, need_same_place as need_same_place, stack as stack
from ._spectrum import (
    Spectrum as Spectrum,
    derivative_symbol as derivative_symbol,
    square_wavenumber as square_wavenumber,
)
