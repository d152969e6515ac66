"""Fluids by the lattice Boltzmann equation."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._collisions import (
        BGK as BGK,
        AbstractCollision as AbstractCollision,
        CentralMoments as CentralMoments,
        TwoRelaxationTimes as TwoRelaxationTimes,
    )
    from ._heat import Heat as Heat
    from ._lattice import (
        D2Q5 as D2Q5,
        D2Q9 as D2Q9,
        D3Q7 as D3Q7,
        D3Q19 as D3Q19,
        D3Q27 as D3Q27,
        Lattice as Lattice,
    )
    from ._lattice_boltzmann import LatticeBoltzmann as LatticeBoltzmann
    from ._populations import Populations as Populations, require_populations as require_populations
    from ._shan_chen import ShanChen as ShanChen
    from ._time_step import time_step as time_step
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
