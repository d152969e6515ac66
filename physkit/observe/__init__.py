"""Observers: what a simulation records while it runs, statistics over time, and guards that end a bad run."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._observer import (
        AbstractGuard as AbstractGuard,
        AbstractObserver as AbstractObserver,
        AbstractQuantity as AbstractQuantity,
        Every as Every,
        Expression as Expression,
        Finite as Finite,
        Guard as Guard,
        as_observer as as_observer,
    )
    from ._per_replica import (
        PerReplica as PerReplica,
        ReplicaIndex as ReplicaIndex,
        SwapAcceptance as SwapAcceptance,
        observe_replicas as observe_replicas,
    )
    from ._selection import particles_in as particles_in
    from ._snapshot import Snapshot as Snapshot
    from .guards._energy_drift import EnergyDrift as EnergyDrift
    from .guards._flow_guards import (
        CourantLimit as CourantLimit,
        PositivityGuard as PositivityGuard,
    )
    from .guards._quantum_guards import NormDrift as NormDrift, PositiveDensity as PositiveDensity
    from .quantities._dipole_moment import DipoleMoment as DipoleMoment
    from .quantities._electromagnetic_quantities import (
        ElectromagneticEnergy as ElectromagneticEnergy,
        RelativisticKineticEnergy as RelativisticKineticEnergy,
        require_maxwell as require_maxwell,
    )
    from .quantities._energies import (
        ConservedEnergy as ConservedEnergy,
        KineticEnergy as KineticEnergy,
        PotentialEnergy as PotentialEnergy,
        Temperature as Temperature,
        TotalEnergy as TotalEnergy,
    )
    from .quantities._field_quantities import (
        EddyEnergy as EddyEnergy,
        FieldValues as FieldValues,
        FreeEnergy as FreeEnergy,
        Integral as Integral,
        RootMeanSquare as RootMeanSquare,
        require_field as require_field,
    )
    from .quantities._flow_quantities import (
        Dissipation as Dissipation,
        Enstrophy as Enstrophy,
        FlowEnergy as FlowEnergy,
        FluidDensity as FluidDensity,
        FluidPressure as FluidPressure,
        FluidTemperature as FluidTemperature,
        FluidVelocity as FluidVelocity,
        NusseltNumber as NusseltNumber,
        SolidForce as SolidForce,
    )
    from .quantities._forces import ParticleForces as ParticleForces
    from .quantities._heat_flux import (
        HeatFlux as HeatFlux,
        ParticleEnergies as ParticleEnergies,
    )
    from .quantities._mesh_quantities import (
        FieldEnergy as FieldEnergy,
        MeshDensity as MeshDensity,
        MeshPotential as MeshPotential,
        ModeAmplitude as ModeAmplitude,
    )
    from .quantities._momenta import (
        AngularMomentum as AngularMomentum,
        CenterOfMass as CenterOfMass,
        Momentum as Momentum,
    )
    from .quantities._pressure import Pressure as Pressure, StressTensor as StressTensor
    from .quantities._quantum_quantities import (
        EntanglementEntropy as EntanglementEntropy,
        Expectation as Expectation,
        Fidelity as Fidelity,
        Probabilities as Probabilities,
        Purity as Purity,
    )
    from .quantities._sampling import (
        Acceptance as Acceptance,
        BiasEnergy as BiasEnergy,
        CollectiveVariables as CollectiveVariables,
        EnergiesAt as EnergiesAt,
        EnergyDerivative as EnergyDerivative,
        LowestEnergy as LowestEnergy,
        LowestPositions as LowestPositions,
        MetadynamicsFreeEnergy as MetadynamicsFreeEnergy,
    )
    from .quantities._spin_quantities import (
        Magnetization as Magnetization,
        SpinEnergy as SpinEnergy,
        SpinValues as SpinValues,
    )
    from .quantities._trajectories import (
        AngularVelocities as AngularVelocities,
        BoxVectors as BoxVectors,
        Orientations as Orientations,
        Positions as Positions,
        Velocities as Velocities,
    )
    from .quantities._wave_quantities import Sensors as Sensors, WaveEnergy as WaveEnergy
    from .statistics._averages import Average as Average, BlockAverage as BlockAverage
    from .statistics._block_average import (
        BlockAverageResult as BlockAverageResult,
        block_average as block_average,
    )
    from .statistics._correlation import (
        AbstractCorrelation as AbstractCorrelation,
        MeanSquareDisplacement as MeanSquareDisplacement,
        VelocityAutocorrelation as VelocityAutocorrelation,
    )
    from .statistics._dielectric import dielectric_constant as dielectric_constant
    from .statistics._far_field import FarField as FarField
    from .statistics._first_passage import FirstPassage as FirstPassage
    from .statistics._flux_spectrum import (
        FluxSpectrum as FluxSpectrum,
        mode_amplitudes as mode_amplitudes,
    )
    from .statistics._hard_sphere_pressure import (
        HardSpherePressure as HardSpherePressure,
        hard_sphere_pressure as hard_sphere_pressure,
    )
    from .statistics._jackknife import Jackknife as Jackknife, jackknife as jackknife
    from .statistics._radial_distribution import RadialDistribution as RadialDistribution
    from .statistics._spin_averages import (
        SpinAverages as SpinAverages,
        spin_averages as spin_averages,
    )
    from .statistics._structure_factor import (
        StructureFactor as StructureFactor,
        shell_average as shell_average,
        wavevectors_within as wavevectors_within,
    )
    from .statistics._transport import (
        Estimate as Estimate,
        diffusion_coefficient as diffusion_coefficient,
        green_kubo as green_kubo,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
