"""Forces on particles."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._external import (
        ExternalEnergy as ExternalEnergy,
        ExternalForce as ExternalForce,
        HarmonicTrap as HarmonicTrap,
        UniformAcceleration as UniformAcceleration,
        UniformField as UniformField,
    )
    from ._external_wrench import ExternalWrench as ExternalWrench
    from ._force import (
        AbstractExternalForce as AbstractExternalForce,
        AbstractForce as AbstractForce,
        Forces as Forces,
        acts_from_outside as acts_from_outside,
    )
    from ._listed_force import AbstractListedForce as AbstractListedForce
    from ._scaled import AbstractScaledForce as AbstractScaledForce, Modulated as Modulated
    from ._scaled_charges import ScaledCharges as ScaledCharges
    from ._site_force import SiteForce as SiteForce, wrench as wrench
    from ._virtual_sites import VirtualSites as VirtualSites
    from .bias._bias import AbstractBias as AbstractBias, HarmonicBias as HarmonicBias
    from .bias._grid_bias import GridBias as GridBias
    from .bias._variables import (
        AbstractCollectiveVariable as AbstractCollectiveVariable,
        Angle as Angle,
        CollectiveVariable as CollectiveVariable,
        Distance as Distance,
        RadiusOfGyration as RadiusOfGyration,
        Torsion as Torsion,
    )
    from .bonded._angles import (
        AbstractAngles as AbstractAngles,
        CosineAngles as CosineAngles,
        CosineSquaredAngles as CosineSquaredAngles,
        HarmonicAngles as HarmonicAngles,
        urey_bradley as urey_bradley,
    )
    from .bonded._bonded import AbstractBonded as AbstractBonded
    from .bonded._bonded_energy import BondedEnergy as BondedEnergy
    from .bonded._bonds import (
        AbstractBonds as AbstractBonds,
        FENEBonds as FENEBonds,
        HarmonicBonds as HarmonicBonds,
        MorseBonds as MorseBonds,
    )
    from .bonded._sharded_tuples import ShardedTuples as ShardedTuples
    from .bonded._special_pairs import SpecialPairs as SpecialPairs
    from .bonded._torsion_maps import TorsionMaps as TorsionMaps
    from .bonded._torsions import (
        AbstractTorsions as AbstractTorsions,
        HarmonicTorsions as HarmonicTorsions,
        PeriodicTorsions as PeriodicTorsions,
        RyckaertBellemansTorsions as RyckaertBellemansTorsions,
    )
    from .bonded._tuples import Tuples as Tuples
    from .electrostatics._ewald import Ewald as Ewald
    from .electrostatics._ewald_cache import EwaldCache as EwaldCache
    from .electrostatics._ewald_sum import AbstractEwaldSum as AbstractEwaldSum
    from .electrostatics._lattice_energy import Modes as Modes
    from .many_body._eam_files import read_funcfl as read_funcfl, read_setfl as read_setfl
    from .many_body._edges import Edges as Edges
    from .many_body._embedded_atom import EmbeddedAtom as EmbeddedAtom
    from .many_body._energy_function import EnergyFunction as EnergyFunction
    from .many_body._many_body import ManyBody as ManyBody
    from .many_body._message_passing import MessagePassing as MessagePassing
    from .many_body._neighborhoods import Neighborhoods as Neighborhoods
    from .many_body._potential import AbstractManyBodyPotential as AbstractManyBodyPotential
    from .many_body._stillinger_weber import StillingerWeber as StillingerWeber
    from .many_body._symmetry_functions import SymmetryFunctions as SymmetryFunctions
    from .many_body._tersoff import Tersoff as Tersoff
    from .pairs._direct_gravity import DirectGravity as DirectGravity
    from .pairs._pair_cache import PairCache as PairCache
    from .pairs._pair_sum import (
        direct_sum as direct_sum,
        exact_pair_sum as exact_pair_sum,
        pair_sum as pair_sum,
    )
    from .pairs._pairwise import Pairwise as Pairwise
    from .pairs._truncation import (
        TRUNCATIONS as TRUNCATIONS,
        AbstractTruncated as AbstractTruncated,
        check_truncation as check_truncation,
        truncate as truncate,
    )
    from .potentials import (
        WCA as WCA,
        AbstractPairPotential as AbstractPairPotential,
        Buckingham as Buckingham,
        Coulomb as Coulomb,
        DampedCoulomb as DampedCoulomb,
        LennardJones as LennardJones,
        Morse as Morse,
        NeuralPair as NeuralPair,
        ReactionField as ReactionField,
        SmearedCoulomb as SmearedCoulomb,
        SoftCoreLennardJones as SoftCoreLennardJones,
        SoftSphere as SoftSphere,
        Yukawa as Yukawa,
        geometric as geometric,
        lorentz_berthelot as lorentz_berthelot,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
