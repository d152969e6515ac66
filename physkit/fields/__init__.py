"""Floor 4: fields on grids, and the equations that move them."""

from ._change import Change as Change
from ._conservation import (
    AbstractConservationLaw as AbstractConservationLaw,
    as_rates as as_rates,
    face_states as face_states,
    fields_of as fields_of,
    flux_divergence as flux_divergence,
)
from ._equation import AbstractEquation as AbstractEquation
from ._field import Field as Field, stack as stack
from ._gas import Gas as Gas
from ._gas_inflow import GasInflow as GasInflow
from ._group import AbstractFields as AbstractFields, need_one_grid as need_one_grid
from ._place import need_same_place as need_same_place
from ._power import PowerSpectrum as PowerSpectrum, power_spectrum as power_spectrum
from ._spectrum import (
    Spectrum as Spectrum,
    derivative_symbol as derivative_symbol,
    square_wavenumber as square_wavenumber,
)
from ._staggered_water import StaggeredWater as StaggeredWater
from ._water import Water as Water
