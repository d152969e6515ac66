"""Force fields from OpenMM: one file for each kind of force."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._system import MolecularSystem as MolecularSystem, from_openmm as from_openmm
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
