"""Pair potentials, one a file."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._buckingham import Buckingham as Buckingham
    from ._coulomb import Coulomb as Coulomb
    from ._damped_coulomb import DampedCoulomb as DampedCoulomb, SmearedCoulomb as SmearedCoulomb
    from ._lennard_jones import LennardJones as LennardJones
    from ._mixing import geometric as geometric, lorentz_berthelot as lorentz_berthelot
    from ._morse import Morse as Morse
    from ._neural import NeuralPair as NeuralPair
    from ._potential import AbstractPairPotential as AbstractPairPotential
    from ._reaction_field import ReactionField as ReactionField
    from ._soft_core import SoftCoreLennardJones as SoftCoreLennardJones
    from ._soft_sphere import SoftSphere as SoftSphere
    from ._wca import WCA as WCA
    from ._yukawa import Yukawa as Yukawa
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
