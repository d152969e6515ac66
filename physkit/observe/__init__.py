"""Floor 7: what is recorded of a simulation."""

from ._averages import Average as Average, BlockAverage as BlockAverage
from ._blocks import BlockAverageResult as BlockAverageResult, block_average as block_average
from ._correlation import (
    AbstractCorrelation as AbstractCorrelation,
    MeanSquareDisplacement as MeanSquareDisplacement,
    VelocityAutocorrelation as VelocityAutocorrelation,
)
from ._drift import EnergyDrift as EnergyDrift
from ._energies import (
    ConservedEnergy as ConservedEnergy,
    KineticEnergy as KineticEnergy,
    PotentialEnergy as PotentialEnergy,
    Temperature as Temperature,
    TotalEnergy as TotalEnergy,
)
from ._fields import (
    Integral as Integral,
    RootMeanSquare as RootMeanSquare,
    Values as Values,
    the_field as the_field,
)
from ._flow import Dissipation as Dissipation, Enstrophy as Enstrophy, FlowEnergy as FlowEnergy
from ._flow_guards import CourantLimit as CourantLimit, Positive as Positive
from ._mesh import (
    FieldEnergy as FieldEnergy,
    MeshDensity as MeshDensity,
    MeshPotential as MeshPotential,
    ModeAmplitude as ModeAmplitude,
)
from ._momenta import (
    AngularMomentum as AngularMomentum,
    CenterOfMass as CenterOfMass,
    Momentum as Momentum,
)
from ._observer import (
    AbstractObserver as AbstractObserver,
    AbstractQuantity as AbstractQuantity,
    Every as Every,
    Expression as Expression,
    Finite as Finite,
    Frame as Frame,
    Guard as Guard,
)
from ._passage import FirstPassage as FirstPassage
from ._pressure import Pressure as Pressure, StressTensor as StressTensor
from ._radial import RadialDistribution as RadialDistribution
from ._recorders import Positions as Positions, Velocities as Velocities
from ._snapshot import Snapshot as Snapshot
from ._structure import (
    StructureFactor as StructureFactor,
    shell_average as shell_average,
    wavevectors_within as wavevectors_within,
)
from ._transport import (
    Estimate as Estimate,
    diffusion_coefficient as diffusion_coefficient,
    green_kubo as green_kubo,
)
