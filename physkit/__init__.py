"""physkit: simulations as Python scripts on differentiable arrays.

Everything that scripts use is reachable as `pk.Name`. Names are fetched from their folder on first
use, so that `import physkit` – and `physkit --help` – does not wait for JAX.
"""

import importlib
import sys
import types
from typing import Any

__version__ = "0.1.0"

# Folder → the names that scripts use as `pk.Name`; `__init__.pyi` says the same to type checkers.
_EXPORTS: dict[str, tuple[str, ...]] = {
    "core": (
        "AbstractComponent", "AbstractTendency", "AbstractTerm", "CapacityError", "Clock",
        "ClusterError", "ComponentError", "ConvergenceError", "CutoffError", "DamagedFileError",
        "DeclarationError",
        "DeviceError", "DiskFullError", "Fault", "Faults", "FileError", "FileInUseError", "Function",
        "GradientError", "Health", "MismatchError", "MissingExtraError", "Module", "Network",
        "NoEnergyError", "NotReversible", "ObjectiveError", "ObserverError", "OverlapError",
        "ParameterError", "PhyskitError", "RangeError", "SamplingError", "SelectionError",
        "ShapeError", "SimulationDiverged", "StepSizeError", "SweepError", "Tendencies", "data",
        "param", "static",
    ),
    "geometry": (
        "AbstractBoundary", "AbstractSpace", "Box", "Dirichlet", "Free", "Grid", "Inflow",
        "Location", "Neumann", "NoSlip", "Outflow", "Mirror", "Triclinic", "Periodic",
    ),
    "particles": (
        "MinimizationResult", "ParticleIncrement", "Particles", "angular_momentum", "center_of_mass",
        "degrees_of_freedom", "kinetic_energy", "lattice", "maxwell_boltzmann", "minimize",
        "random_positions", "temperature", "total_momentum", "remove_drift",
    ),
    "particles.neighbors": ("NeighborList", "neighbor_list"),
    "particles.forces": (
        "AbstractForce", "AbstractPairPotential", "Buckingham", "Coulomb", "DirectGravity",
        "ExternalEnergy", "ExternalForce", "Forces", "HarmonicAngles", "HarmonicBonds",
        "HarmonicTrap", "LennardJones", "Modulated", "Morse", "NeuralPair", "Pairwise",
        "SoftSphere", "UniformAcceleration", "UniformField", "WCA", "Yukawa", "geometric",
        "lorentz_berthelot",
    ),
    "fields": (
        "AbstractConservationLaw", "AbstractEquation", "AbstractFieldGroup", "FieldIncrement", "Field", "Gas",
        "GasInflow", "PowerSpectrum", "Spectrum", "CGridShallowWaterState", "ShallowWaterState", "power_spectrum",
        "stack",
    ),
    "fields.operators": (
        "AbstractLimiter", "AbstractReconstruction", "AbstractRiemannSolver", "AbstractScheme",
        "Central", "PiecewiseConstant", "ExactRiemann", "HLL", "HLLC", "MUSCL", "Minmod",
        "MonotonizedCentral", "Rusanov", "Spectral", "Superbee", "VanLeer", "WENO5", "average",
        "curl", "derivative", "difference", "divergence", "exact_riemann", "gradient", "laplacian",
        "staggered_curl", "staggered_divergence", "staggered_gradient",
    ),
    "fields.elliptic": (
        "Helmholtz", "Poisson", "project", "solve_elliptic", "solve_helmholtz", "solve_poisson",
    ),
    "fields.equations": (
        "AbstractSecondOrder", "Advection", "AdvectionByField", "BodyForce", "Brusselator", "Burgers",
        "Closure", "CompressibleEuler", "Diffusion", "FisherKPP", "ShallowWaterFV", "GravityWaves",
        "GrayScott", "KolmogorovForcing", "KortewegDeVries", "KuramotoSivashinsky", "NavierStokes",
        "Schroedinger", "ShallowWater", "VorticityTransport", "Wave", "project_solenoidal",
        "velocity_from_vorticity", "vorticity",
    ),
    "coupling": (
        "AbstractKernel", "AbstractMeshInteraction", "PassiveTracers", "CIC", "Comoving", "Drag",
        "Electrostatics", "Gravity", "Nearest", "PCS", "ParticleMesh", "TSC", "deposit",
        "interpolate",
    ),
    "integrators": (
        "ARS222", "ARS343", "AbstractIntegrator", "AbstractOneStep", "BAOAB", "BlanesMoan", "Boris",
        "Brownian", "Composition", "CFLSubsteps", "Diffrax", "DormandPrince5", "ETDRK2", "ETDRK4", "Euler",
        "ExactLinear", "ExactWave", "Heun", "KahanLi", "Leapfrog", "Lie", "Midpoint", "EquationsOfMotion",
        "NoseHooverChain", "PEFRL", "PotentialPropagator", "RK38", "RK4", "Ralston", "RemoveMomentum",
        "RungeKutta", "SSPRK2", "SSPRK3", "SplitStep", "Strang", "Subcycle", "Suzuki", "Tableau",
        "ThermostatChain", "VelocityVerlet", "Yoshida", "ground_state",
    ),
    "observe": (
        "AbstractObserver", "AbstractQuantity", "AngularMomentum", "Average", "BlockAverage",
        "CenterOfMass", "ConservedEnergy", "CourantLimit", "Dissipation", "EnergyDrift",
        "Enstrophy", "Estimate", "Every", "Expression", "FieldEnergy", "Finite", "FirstPassage",
        "FlowEnergy",
        "Guard", "Integral", "KineticEnergy", "MeanSquareDisplacement", "MeshDensity",
        "MeshPotential", "ModeAmplitude", "Momentum", "Positions", "PositivityGuard", "PotentialEnergy",
        "Pressure", "RadialDistribution", "RootMeanSquare", "Snapshot", "StressTensor",
        "StructureFactor", "Temperature", "TotalEnergy", "FieldValues", "Velocities",
        "VelocityAutocorrelation", "block_average", "diffusion_coefficient", "green_kubo",
        "shell_average", "wavevectors_within",
    ),
    "storage": (
        "Checkpoints", "Recording", "Series", "export", "load_checkpoint", "save_checkpoint",
    ),
    "simulate": (
        "Binomial", "Carry", "Diagnosis", "Direct", "Forward", "NestedCheckpoint", "Progress",
        "Result", "Reversible", "Run", "Simulation", "CommunicationReport", "adjoint_report", "diagnose", "reversibility_report", "run",
        "simulate", "init", "communication_report",
    ),
    "fit": (
        "PositiveBound", "AbstractBounds", "AutocorrelatedErrors", "BFGS", "EquilibriumSamples", "Fit",
        "GaussNewton", "GradientAudit", "IndependentErrors", "Interval", "LevenbergMarquardt",
        "Likelihood", "MultipleShooting", "Optax", "Simplex", "Unbounded", "fit", "fit_in_windows",
        "frames_at", "gradient_audit", "gradient_growth", "reweight",
    ),
    "ensemble": (
        "ParameterRange", "Converged", "Ensemble", "Histogram", "LocalWorkers", "Mean", "SweepAxis", "Quantiles",
        "Reduction", "Retry", "SlurmArray", "Sweep", "Variance", "posterior_samples", "bootstrap",
        "ensemble_mean", "ensemble_statistics",
        "latin_hypercube", "open", "passage_rate", "cartesian_product", "sobol", "sweep", "initial_states",
        "zip_axes",
    ),
}  # fmt: skip
_FOLDERS = (
    "cli", "core", "coupling", "ensemble", "fields", "geometry", "integrators", "observe", "parallel",
    "particles", "plot", "storage", "systems",
    "testing",
)  # fmt: skip
_HOME = {name: folder for folder, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"physkit.{_HOME[name]}"), name)
    elif name in _FOLDERS:
        value = importlib.import_module(f"physkit.{name}")
    else:
        import difflib

        close = difflib.get_close_matches(name, [*_HOME, *_FOLDERS], n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"physkit has no {name!r}{hint}")
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({"__version__", *_HOME, *_FOLDERS})


class _Package(types.ModuleType):
    """This package: where a folder is named like the verb in it, `pk.simulate` is the verb."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Python puts every folder that it imports on the package, over what was there.
        if _HOME.get(name) == name and isinstance(value, types.ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
