# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from . import cli as cli
from . import core as core
from . import coupling as coupling
from . import ensemble as ensemble
from . import fields as fields
from . import geometry as geometry
from . import html as html
from . import inference as inference
from . import integrators as integrators
from . import interop as interop
from . import native as native
from . import observe as observe
from . import parallel as parallel
from . import particles as particles
from . import plot as plot
from . import quantum as quantum
from . import reactions as reactions
from . import spins as spins
from . import storage as storage
from . import systems as systems
from . import testing as testing
from ._stubs import (
    acoustics as acoustics,
    adjoints as adjoints,
    boundaries as boundaries,
    bounds as bounds,
    components as components,
    designs as designs,
    devices as devices,
    electromagnetism as electromagnetism,
    elliptic as elliptic,
    equations as equations,
    errors as errors,
    fitting as fitting,
    forces as forces,
    guards as guards,
    kernels as kernels,
    lattice_boltzmann as lattice_boltzmann,
    limiters as limiters,
    mesh as mesh,
    observers as observers,
    operators as operators,
    potentials as potentials,
    priors as priors,
    quantities as quantities,
    reconstructions as reconstructions,
    reductions as reductions,
    riemann as riemann,
    sampling as sampling,
    schemes as schemes,
    spaces as spaces,
    statistics as statistics,
    sweeping as sweeping,
    terms as terms,
    units as units,
)
from .core import (
    AbstractTendency as AbstractTendency,
    Function as Function,
    Module as Module,
    Network as Network,
    PhyskitError as PhyskitError,
    SimulationDiverged as SimulationDiverged,
    data as data,
    find as find,
    param as param,
    static as static,
)
from .parallel import (
    show_versions as show_versions,
    use_compilation_cache as use_compilation_cache,
)
from .geometry import (
    Box as Box,
    Free as Free,
    Grid as Grid,
    SphericalGrid as SphericalGrid,
    Triclinic as Triclinic,
)
from .particles import (
    DistanceConstraints as DistanceConstraints,
    Particles as Particles,
    RigidBodies as RigidBodies,
    RigidWater as RigidWater,
    constrain as constrain,
    lattice as lattice,
    maxwell_boltzmann as maxwell_boltzmann,
    minimize as minimize,
    remove_drift as remove_drift,
)
from .particles.forces import (
    AbstractExternalForce as AbstractExternalForce,
    AbstractForce as AbstractForce,
    AbstractManyBodyPotential as AbstractManyBodyPotential,
    AbstractPairPotential as AbstractPairPotential,
    BondedEnergy as BondedEnergy,
    Coulomb as Coulomb,
    DirectGravity as DirectGravity,
    Ewald as Ewald,
    ExternalEnergy as ExternalEnergy,
    ExternalForce as ExternalForce,
    HarmonicAngles as HarmonicAngles,
    HarmonicBias as HarmonicBias,
    HarmonicBonds as HarmonicBonds,
    HarmonicTrap as HarmonicTrap,
    LennardJones as LennardJones,
    ManyBody as ManyBody,
    Pairwise as Pairwise,
    PeriodicTorsions as PeriodicTorsions,
    SiteForce as SiteForce,
    UniformAcceleration as UniformAcceleration,
    UniformField as UniformField,
)
from .fields import (
    AbstractEquation as AbstractEquation,
    Field as Field,
    stack as stack,
)
from .coupling import (
    Drag as Drag,
    ParticleMesh as ParticleMesh,
    ParticleMeshEwald as ParticleMeshEwald,
    deposit as deposit,
    interpolate as interpolate,
)
from .integrators import (
    AbstractIntegrator as AbstractIntegrator,
    AbstractOneStep as AbstractOneStep,
    Andersen as Andersen,
    BAOAB as BAOAB,
    BasinHopping as BasinHopping,
    Boris as Boris,
    Brownian as Brownian,
    CFLSubsteps as CFLSubsteps,
    Diffrax as Diffrax,
    ETDRK2 as ETDRK2,
    ETDRK4 as ETDRK4,
    Euler as Euler,
    Leapfrog as Leapfrog,
    Lie as Lie,
    Metadynamics as Metadynamics,
    MonteCarloBarostat as MonteCarloBarostat,
    NoseHooverChain as NoseHooverChain,
    RK4 as RK4,
    SSPRK2 as SSPRK2,
    SSPRK3 as SSPRK3,
    SplitStep as SplitStep,
    StochasticCellRescaling as StochasticCellRescaling,
    Strang as Strang,
    Subcycle as Subcycle,
    VelocityRescaling as VelocityRescaling,
    VelocityVerlet as VelocityVerlet,
)
from .observe import (
    AbstractObserver as AbstractObserver,
    AbstractQuantity as AbstractQuantity,
    Average as Average,
    BlockAverage as BlockAverage,
    BoxVectors as BoxVectors,
    Every as Every,
    FieldValues as FieldValues,
    Guard as Guard,
    KineticEnergy as KineticEnergy,
    MeanSquareDisplacement as MeanSquareDisplacement,
    Positions as Positions,
    PotentialEnergy as PotentialEnergy,
    Pressure as Pressure,
    RadialDistribution as RadialDistribution,
    Temperature as Temperature,
    TotalEnergy as TotalEnergy,
    Velocities as Velocities,
)
from .storage import (
    Checkpoints as Checkpoints,
    Recording as Recording,
    export as export,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from .simulate import (
    Carry as Carry,
    NestedCheckpoint as NestedCheckpoint,
    Result as Result,
    Reversible as Reversible,
    Run as Run,
    Simulation as Simulation,
    adjoint_report as adjoint_report,
    diagnose as diagnose,
    evaluate as evaluate,
    init as init,
    run as run,
    simulate as simulate,
)
from .fit import (
    Fit as Fit,
    fit as fit,
    gradient_audit as gradient_audit,
)
from .ensemble import (
    Ensemble as Ensemble,
    LocalWorkers as LocalWorkers,
    ParameterRange as ParameterRange,
    SlurmArray as SlurmArray,
    Sweep as Sweep,
    SweepAxis as SweepAxis,
    ensemble_mean as ensemble_mean,
    ensemble_statistics as ensemble_statistics,
    free_energies as free_energies,
    open as open,
    replica_exchange as replica_exchange,
    sweep as sweep,
)

__version__: str
