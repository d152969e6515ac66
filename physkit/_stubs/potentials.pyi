# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.particles.forces import (
    AbstractManyBodyPotential as AbstractManyBodyPotential,
    AbstractPairPotential as AbstractPairPotential,
    Buckingham as Buckingham,
    Coulomb as Coulomb,
    DampedCoulomb as DampedCoulomb,
    EmbeddedAtom as EmbeddedAtom,
    LennardJones as LennardJones,
    Morse as Morse,
    Neighborhoods as Neighborhoods,
    NeuralPair as NeuralPair,
    ReactionField as ReactionField,
    SmearedCoulomb as SmearedCoulomb,
    SoftSphere as SoftSphere,
    StillingerWeber as StillingerWeber,
    Tersoff as Tersoff,
    WCA as WCA,
    Yukawa as Yukawa,
    geometric as geometric,
    lorentz_berthelot as lorentz_berthelot,
    read_setfl as read_setfl,
)
