"""Forces on particles."""

from ._force import AbstractForce as AbstractForce, Forces as Forces
from ._truncation import (
    TRUNCATIONS as TRUNCATIONS,
    AbstractTruncated as AbstractTruncated,
    check_truncation as check_truncation,
    truncated as truncated,
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
