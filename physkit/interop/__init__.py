"""Ways in and out: structures, force fields and calculators of other packages."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._ase import from_ase as from_ase, to_ase as to_ase
    from ._ase_calculator import ase_calculator as ase_calculator
    from ._labeled_fields import (
        LabeledField as LabeledField,
        from_xarray as from_xarray,
        to_xarray as to_xarray,
    )
    from ._mdanalysis import from_mdanalysis as from_mdanalysis
    from ._numpy import to_numpy as to_numpy
    from ._openqasm import read_openqasm as read_openqasm, write_openqasm as write_openqasm
    from ._read_structure import read_structure as read_structure
    from ._single_point import SinglePoint as SinglePoint, single_point as single_point
    from .openmm import MolecularSystem as MolecularSystem, from_openmm as from_openmm
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
