# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.particles.forces import (
    AbstractBias as AbstractBias,
    AbstractCollectiveVariable as AbstractCollectiveVariable,
    Angle as Angle,
    CollectiveVariable as CollectiveVariable,
    Distance as Distance,
    GridBias as GridBias,
    HarmonicBias as HarmonicBias,
    RadiusOfGyration as RadiusOfGyration,
    ScaledCharges as ScaledCharges,
    SoftCoreLennardJones as SoftCoreLennardJones,
    Torsion as Torsion,
)
from physkit.integrators import (
    BasinHopping as BasinHopping,
    Metadynamics as Metadynamics,
    ReplicaExchange as ReplicaExchange,
    Replicas as Replicas,
)
from physkit.observe import (
    BiasEnergy as BiasEnergy,
    CollectiveVariables as CollectiveVariables,
    EnergiesAt as EnergiesAt,
    EnergyDerivative as EnergyDerivative,
    LowestEnergy as LowestEnergy,
    LowestPositions as LowestPositions,
    MetadynamicsFreeEnergy as MetadynamicsFreeEnergy,
    PerReplica as PerReplica,
    ReplicaIndex as ReplicaIndex,
    SwapAcceptance as SwapAcceptance,
)
from physkit.ensemble import (
    FreeEnergies as FreeEnergies,
    Profile as Profile,
    free_energies as free_energies,
    replica_exchange as replica_exchange,
    thermodynamic_integration as thermodynamic_integration,
    umbrella_energies as umbrella_energies,
    wham as wham,
)
