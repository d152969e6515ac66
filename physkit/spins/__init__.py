"""Spins on lattices: their states, and energies of neighbors."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._neighbors import (
        has_neighbors as has_neighbors,
        neighbor_values as neighbor_values,
        site_index as site_index,
    )
    from ._spin_models import (
        AbstractSpinModel as AbstractSpinModel,
        IsingModel as IsingModel,
        PottsModel as PottsModel,
    )
    from ._spins import UNDEFINED as UNDEFINED, Spins as Spins
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
