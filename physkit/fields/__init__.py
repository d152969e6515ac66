"""Fields on grids, and the equations that move them.

The field itself stands here. Folders, each importing only from those before it: `operators` (derivatives),
`states` (components of several fields), `finite_volume` (conservation laws), `elliptic` (Poisson and its like),
`equations` (partial differential equations, one a file).
"""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._collocation import require_same_location as require_same_location
    from ._equation import AbstractEquation as AbstractEquation
    from ._field import Field as Field
    from ._field_increment import FieldIncrement as FieldIncrement
    from ._point_spread import (
        band_limited as band_limited,
        hat as hat,
        interpolate_at_points as interpolate_at_points,
    )
    from ._power_spectrum import PowerSpectrum as PowerSpectrum, power_spectrum as power_spectrum
    from ._spectrum import (
        Spectrum as Spectrum,
        derivative_symbol as derivative_symbol,
        square_wavenumber as square_wavenumber,
    )
    from ._stack import stack as stack
    from .finite_volume import (
        AbstractConservationLaw as AbstractConservationLaw,
        as_rates as as_rates,
        component_fields as component_fields,
        finite_volume_rate as finite_volume_rate,
        reconstruct_faces as reconstruct_faces,
    )
    from .states._acoustic_field import AcousticField as AcousticField
    from .states._c_grid_shallow_water_state import CGridShallowWaterState as CGridShallowWaterState
    from .states._elastic_field import ElasticField as ElasticField
    from .states._electromagnetic_field import ElectromagneticField as ElectromagneticField
    from .states._field_group import (
        AbstractFieldGroup as AbstractFieldGroup,
        require_one_grid as require_one_grid,
    )
    from .states._flow_state import FlowState as FlowState
    from .states._gas import Gas as Gas
    from .states._gas_inflow import GasInflow as GasInflow
    from .states._hydrostatic_state import HydrostaticState as HydrostaticState
    from .states._layer_memory import LayerMemory as LayerMemory
    from .states._magnetized_gas import MagnetizedGas as MagnetizedGas
    from .states._shallow_water_state import ShallowWaterState as ShallowWaterState
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
