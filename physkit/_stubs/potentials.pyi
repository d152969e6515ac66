# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.particles.forces import (
    AbstractPairPotential as AbstractPairPotential,
    Buckingham as Buckingham,
    Coulomb as Coulomb,
    LennardJones as LennardJones,
    Morse as Morse,
    NeuralPair as NeuralPair,
    SoftSphere as SoftSphere,
    WCA as WCA,
    Yukawa as Yukawa,
    geometric as geometric,
    lorentz_berthelot as lorentz_berthelot,
)
