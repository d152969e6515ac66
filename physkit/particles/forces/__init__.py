"""Forces on particles."""

from ._external import (
    ExternalEnergy as ExternalEnergy,
    ExternalForce as ExternalForce,
    HarmonicTrap as HarmonicTrap,
    UniformAcceleration as UniformAcceleration,
    UniformField as UniformField,
)
from ._force import (
    AbstractExternalForce as AbstractExternalForce,
    AbstractForce as AbstractForce,
    Forces as Forces,
)
from ._scaled import AbstractScaledForce as AbstractScaledForce, Modulated as Modulated
from .bonded._angles import HarmonicAngles as HarmonicAngles
from .bonded._bonded import AbstractBonded as AbstractBonded
from .bonded._bonds import HarmonicBonds as HarmonicBonds
from .bonded._sharded_tuples import ShardedTuples as ShardedTuples
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
    LennardJones as LennardJones,
    Morse as Morse,
    NeuralPair as NeuralPair,
    SoftSphere as SoftSphere,
    Yukawa as Yukawa,
    geometric as geometric,
    lorentz_berthelot as lorentz_berthelot,
)
