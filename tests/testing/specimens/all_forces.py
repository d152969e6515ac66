"""All forces of the battery, and what is said of each mistake."""

from physkit.geometry import Free

from .compiled_forces import (
    BranchesOnPosition,
    CutOffPosition,
    FrozenWidth,
    HidesBoxFromDerivatives,
    NarrowsCache,
    NeverRecomputesForce,
    SingleConstant,
    WrongUnderVmap,
)
from .forces import (
    BreaksThirdLaw,
    DependsOnOrigin,
    EnergiesOfAllPairsTwice,
    EnergyTwice,
    FirstIsSpecial,
    HeatOfOneOfEachPair,
    KeepsFirstBox,
    NaNAtZeroDistance,
    NoVirial,
    PairForce,
    ParticleEnergies,
    ShearStress,
    VirialFromOutside,
    VirialWithoutMomentum,
    WrongSignForce,
)
from .listed_forces import ListedForce, NeverFits, NeverRebuilds
from .states import rectangular_box, tilted_box

GOOD_FORCES = [
    (PairForce, Free),
    (PairForce, rectangular_box),
    (PairForce, tilted_box),
    (ListedForce, rectangular_box),
    (ParticleEnergies, Free),
]
BROKEN_FORCES = [
    (WrongSignForce, Free, r"the force against −∂energy/∂position"),
    (EnergyTwice, Free, r"the force against −∂energy/∂position"),
    (BreaksThirdLaw, Free, r"the sum of all forces"),
    (DependsOnOrigin, Free, r"after translating all particles"),
    (NoVirial, rectangular_box, r"virial against minus the derivative of energy by strain"),
    (KeepsFirstBox, rectangular_box, r"energy with a cache against without, in a box that grew"),
    (ShearStress, rectangular_box, r"derivative of energy by strain \(shear\)"),
    (VirialWithoutMomentum, Free, r"virial against minus the derivative of energy by strain"),
    (VirialFromOutside, Free, r"virial against 0, as of any force from outside"),
    (EnergiesOfAllPairsTwice, Free, r"the sum of particle_energies against the energy"),
    (HeatOfOneOfEachPair, Free, r"heat_flux against Σ x \(F·v \+ dE/dt\)"),
    (FirstIsSpecial, Free, r"particles in another order"),
    (NaNAtZeroDistance, Free, r"∂energy/∂position.* not finite"),
    (FrozenWidth, Free, r"derivative by \['term'\]\.width.* of \['value'\]"),
    (CutOffPosition, Free, r"derivative by \['state'\]\.position.* of \['value'\]"),
    (NarrowsCache, Free, r"cache after a call: the value is float32\[\], expected float64"),
    (NeverRecomputesForce, Free, r"with a carried cache, after a small move"),
    (BranchesOnPosition, Free, r"reads the numbers of an array in Python"),
    (WrongUnderVmap, Free, r"vmap"),
    (SingleConstant, Free, r"against −∂energy/∂position|value is float32"),
    (HidesBoxFromDerivatives, rectangular_box, r"virial|space\.lengths"),
    (NeverRebuilds, rectangular_box, r"with a carried cache, after a squeeze"),
    (NeverFits, rectangular_box, r"its cache overflows after a squeeze.*, and growing it does not"),
]
