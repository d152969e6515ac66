"""The public names: the front page, and families of names that belong together.

Scripts use the names of the front page as `pk.Name`. A family is a namespace whose members completion shows
together after `pk.limiters.`; those of everyday use are on the front page, too. This file holds data only, so
that `import physkit` does not wait for JAX.
"""

# Layer → the names that scripts use as `pk.Name`.
FRONT_PAGE: dict[str, tuple[str, ...]] = {
    "core": (
        "AbstractTendency", "Function", "Module", "Network", "PhyskitError", "SimulationDiverged",
        "data", "find", "param", "static",
    ),
    "parallel": ("show_versions", "use_compilation_cache"),
    "geometry": ("Box", "Free", "Grid", "SphericalGrid", "Triclinic"),
    "particles": (
        "DistanceConstraints", "Particles", "RigidBodies", "RigidWater", "constrain", "lattice",
        "maxwell_boltzmann", "minimize", "remove_drift",
    ),
    "particles.forces": (
        "AbstractExternalForce", "AbstractForce", "AbstractManyBodyPotential", "AbstractPairPotential",
        "BondedEnergy", "Coulomb", "DirectGravity", "Ewald", "ExternalEnergy", "ExternalForce",
        "HarmonicAngles", "HarmonicBonds", "HarmonicBias", "HarmonicTrap", "LennardJones", "ManyBody",
        "Pairwise", "PeriodicTorsions", "SiteForce", "UniformAcceleration", "UniformField",
    ),
    "fields": ("AbstractEquation", "Field", "stack"),
    "coupling": ("Drag", "ParticleMesh", "ParticleMeshEwald", "deposit", "interpolate"),
    "integrators": (
        "AbstractIntegrator", "AbstractOneStep", "Andersen", "BAOAB", "BasinHopping", "Boris", "Brownian",
        "CFLSubsteps", "Diffrax", "ETDRK2", "ETDRK4", "Euler", "Leapfrog", "Lie", "Metadynamics",
        "MonteCarloBarostat", "NoseHooverChain", "RK4", "SSPRK2", "SSPRK3", "SplitStep",
        "StochasticCellRescaling", "Strang", "Subcycle", "VelocityRescaling", "VelocityVerlet",
    ),
    "observe": (
        "AbstractObserver", "AbstractQuantity", "Average", "BlockAverage", "BoxVectors", "Every",
        "FieldValues", "Guard", "KineticEnergy", "MeanSquareDisplacement", "Positions", "PotentialEnergy",
        "Pressure", "RadialDistribution", "Temperature", "TotalEnergy", "Velocities",
    ),
    "storage": ("Checkpoints", "Recording", "export", "load_checkpoint", "save_checkpoint"),
    "simulate": (
        "Carry", "NestedCheckpoint", "Result", "Reversible", "Run", "Simulation",
        "adjoint_report", "diagnose", "evaluate", "init", "run", "simulate",
    ),
    "fit": ("Fit", "fit", "gradient_audit"),
    "ensemble": (
        "Ensemble", "LocalWorkers", "ParameterRange", "SlurmArray", "Sweep", "SweepAxis",
        "ensemble_mean", "ensemble_statistics", "free_energies", "open", "replica_exchange", "sweep",
    ),
}  # fmt: skip

# Family → what it is, and its names by layer.
FAMILIES: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "acoustics": (
        "Sound and elastic waves: fluids and solids, sources, sensors, absorbing layers.",
        {
            "fields.equations": (
                "AbstractAcousticSource", "AbstractElasticSource", "AbstractStaggeredWave",
                "ContinuousWave", "ConvolutionalPML", "ElasticWaves", "ExtendedSource", "KSpaceAcoustics",
                "MomentSource", "PointForce", "PointSource", "PowerLawAbsorption", "WavePulse",
            ),
            "fields": ("AcousticField", "ElasticField"),
            "geometry": ("FreeSurface",),
            "integrators": ("StaggeredLeapfrog",),
            "observe": ("Sensors", "WaveEnergy"),
        },
    ),
    "adjoints": (
        "How a derivative goes back through the steps: what is stored, what is computed again.",
        {
            "simulate": (
                "Binomial", "Direct", "Forward", "NestedCheckpoint", "Reversible", "adjoint_report",
                "reversibility_report",
            ),
        },
    ),
    "boundaries": (
        "What a field does at a side of its grid.",
        {
            "geometry": (
                "AbstractBoundary", "Dirichlet", "FixedPressure", "FreeSurface", "Inflow", "Mirror", "Neumann",
                "NoSlip", "Outflow", "PerfectConductor", "PerfectMagneticConductor", "Periodic", "Robin",
            ),
            "fields": ("GasInflow",),
        },
    ),
    "bounds": (
        "Where a fitted parameter may go.",
        {"fit": ("AbstractBounds", "Interval", "PositiveBound", "Simplex", "Unbounded")},
    ),
    "components": (
        "What a state is made of, and what can be added to it.",
        {
            "core": ("AbstractComponent", "Clock"), "particles": (
                "ParticleIncrement", "Particles", "RigidBodies", "RigidBodyIncrement",
                "random_orientations",
            ),
            "fields": (
                "AbstractFieldGroup", "AcousticField", "CGridShallowWaterState", "ElasticField",
                "ElectromagneticField", "Field", "FieldIncrement", "FlowState", "Gas", "HydrostaticState",
                "MagnetizedGas", "ShallowWaterState", "Spectrum",
            ),
        },
    ),
    "designs": (
        "Which values a sweep takes.",
        {
            "ensemble": (
                "ParameterRange", "SweepAxis", "cartesian_product", "grid", "initial_states",
                "latin_hypercube", "posterior_samples", "random", "sobol", "zip_axes",
            ),
        },
    ),
    "devices": (
        "What several devices send to one another in a step.",
        {"simulate": ("CommunicationReport", "communication_report")},
    ),
    "elliptic": (
        "Poisson's and Helmholtz's equations, and projections.",
        {
            "fields.elliptic": (
                "Helmholtz", "Poisson", "project", "solve_diffusion", "solve_elliptic", "solve_helmholtz",
                "solve_poisson",
            ),
        },
    ),
    "equations": (
        "Partial differential equations: the rates of fields.",
        {
            "fields": ("AbstractConservationLaw", "AbstractEquation"),
            "coupling": ("ImmersedBody", "ImmersedMotion"),
            "fields.equations": (
                "AbstractBalancedFlow", "AbstractGradientFlow", "AbstractSecondOrder", "AbstractSolid",
                "Advection", "AdvectionByField", "AllenCahn", "Ball", "BarotropicVorticity", "BodyForce",
                "Brusselator", "Buoyancy", "Burgers", "CahnHilliard", "Closure", "ComplexGinzburgLandau",
                "CompressibleEuler", "Diffusion", "FisherKPP", "FitzHughNagumo", "FourierNeuralOperator",
                "GravityWaves", "GrayScott", "HydrostaticFlow", "IdealMHD", "IncompressibleFlow",
                "KellerSegel", "KolmogorovForcing", "KortewegDeVries", "KuramotoSivashinsky",
                "NavierStokes", "NonlinearDiffusion", "Oregonator", "OrnsteinUhlenbeckNoise",
                "PhaseFieldCrystal", "PowerLaw", "QuasiGeostrophic", "ScalarTransport", "Schroedinger",
                "SelfGravity", "ShallowWater", "ShallowWaterFV", "Smagorinsky", "SphericalShallowWater",
                "Sponge", "SurfaceQuasiGeostrophic", "SwiftHohenberg", "VariableDiffusion",
                "VorticityTransport", "Wave", "WhiteNoise",
            ),
        },
    ),
    "electromagnetism": (
        "Maxwell's equations: media, sources, absorbing layers.",
        {
            "fields.equations": (
                "AbstractDispersiveMedium", "AbstractMedium", "AbstractSource", "ContinuousWave",
                "ConvolutionalPML", "CurrentSheet", "Dielectric", "Drude", "Lorentz", "Maxwell",
                "ModeSource", "PlaneWave", "PointDipole", "WavePulse", "WaveguideMode", "waveguide_mode",
            ),
            "observe": (
                "ElectromagneticEnergy", "FarField", "FluxSpectrum", "RelativisticKineticEnergy",
                "mode_amplitudes",
            ),
            "fields": ("ElectromagneticField",),
            "geometry": ("PerfectConductor", "PerfectMagneticConductor"),
            "coupling": ("deposit_current",),
            "integrators": (
                "AbstractPusher", "HigueraCary", "ParticleInCell", "RelativisticBoris",
                "RelativisticMotion", "Vay", "Yee",
            ),
        },
    ),
    "errors": (
        "What physkit raises, and the faults that travel as data.",
        {
            "core": (
                "CapacityError", "ClusterError", "ComponentError", "ConvergenceError", "CutoffError",
                "DamagedFileError", "DeclarationError", "DeviceError", "DiskFullError", "Fault", "Faults",
                "FileError", "FileInUseError", "GradientError", "Health", "MismatchError",
                "MissingExtraError", "NoEnergyError", "NoVirialError", "NotReversible", "ObjectiveError",
                "ObserverError", "OverlapError", "ParameterError", "PhyskitError", "PhyskitWarning",
                "RangeError", "SamplingError", "SelectionError", "ShapeError", "SimulationDiverged",
                "StepSizeError", "SweepError",
            ),
            "simulate": ("Diagnosis",),
        },
    ),
    "fitting": (
        "Methods of `fit`, models of errors, and what helps where trajectories are chaotic.",
        {
            "fit": (
                "AutocorrelatedErrors", "BFGS", "EquilibriumSamples", "Fit", "FitProgress", "GaussNewton",
                "GradientAudit", "IndependentErrors", "LBFGS", "LevenbergMarquardt", "Likelihood",
                "LikelihoodProfile", "MultipleShooting", "Observations", "Optax", "fit", "fit_in_windows",
                "frames_at", "gradient_audit", "gradient_growth", "observations", "profile_likelihood",
                "reweight",
            ),
            "ensemble": ("CMAES", "DifferentialEvolution", "OpenES"),
        },
    ),
    "forces": (
        "Forces on particles.",
        {
            "particles.forces": (
                "AbstractAngles", "AbstractBonded", "AbstractBonds", "AbstractExternalForce",
                "AbstractForce", "AbstractTorsions", "BondedEnergy", "CosineAngles", "CosineSquaredAngles",
                "DirectGravity", "Edges", "EnergyFunction", "Ewald", "ExternalEnergy", "ExternalForce",
                "ExternalWrench", "FENEBonds", "Forces", "HarmonicAngles", "HarmonicBonds",
                "HarmonicTorsions", "HarmonicTrap", "ManyBody", "Modulated", "MorseBonds", "Pairwise",
                "PeriodicTorsions", "RyckaertBellemansTorsions", "SiteForce", "SpecialPairs",
                "TorsionMaps", "UniformAcceleration", "VirtualSites", "UniformField", "urey_bradley",
            ),
            "coupling": ("Comoving", "ParticleMesh", "ParticleMeshEwald"),
        },
    ),
    "guards": (
        "Observers whose frame must stay true; `run` stops where one does not.",
        {
            "observe": (
                "AbstractGuard", "CourantLimit", "EnergyDrift", "Finite", "Guard", "NormDrift",
                "PositiveDensity", "PositivityGuard",
            ),
        },
    ),
    "kernels": (
        "How particles and meshes share: the weights of interpolation and deposition.",
        {
            "coupling": ("AbstractKernel", "CIC", "Nearest", "PCS", "QuarticSpline", "QuinticSpline", "TSC"),
        },
    ),
    "lattice_boltzmann": (
        "Fluids by the lattice Boltzmann equation: lattices, collisions, sides, heat, two phases.",
        {
            "fields.lattice_boltzmann": (
                "AbstractCollision", "BGK", "CentralMoments", "D2Q5", "D2Q9", "D3Q7", "D3Q19", "D3Q27",
                "Heat", "Lattice", "LatticeBoltzmann", "Populations", "ShanChen", "TwoRelaxationTimes",
                "time_step",
            ),
            "fields.equations": ("AbstractSolid", "Ball"), "geometry": ("FixedPressure",),
            "integrators": ("StreamAndCollide",),
            "observe": ("FluidDensity", "FluidPressure", "FluidTemperature", "FluidVelocity", "SolidForce"),
        },
    ),
    "limiters": (
        "Slope limiters of MUSCL.",
        {
            "fields.finite_volume": (
                "AbstractLimiter", "Minmod", "MonotonizedCentral", "Superbee", "VanLeer",
            ),
        },
    ),
    "mesh": (
        "What a mesh does to particles, and particles to a field.",
        {
            "coupling": (
                "AbstractMeshInteraction", "Drag", "Electrostatics", "Gravity", "ParticleMesh",
                "PassiveTracers", "deposit", "interpolate",
            ),
        },
    ),
    "observers": (
        "What is recorded every n steps, averaged or correlated on the way.",
        {
            "observe": (
                "AbstractObserver", "Average", "BlockAverage", "Every", "FirstPassage", "FluxSpectrum",
                "MeanSquareDisplacement", "RadialDistribution", "Snapshot", "StructureFactor",
                "VelocityAutocorrelation",
            ),
            "simulate": ("RunProgress",),
        },
    ),
    "operators": (
        "Derivatives of fields.",
        {
            "fields.operators": (
                "average", "curl", "derivative", "difference", "divergence", "gradient", "laplacian",
                "staggered_curl", "staggered_divergence", "staggered_gradient", "weighted_laplacian",
            ),
            "fields.equations": ("project_solenoidal", "velocity_from_vorticity", "vorticity"),
        },
    ),
    "potentials": (
        "Pair potentials, and rules that mix their parameters.",
        {
            "particles.forces": (
                "AbstractManyBodyPotential", "AbstractPairPotential", "Buckingham", "Coulomb",
                "DampedCoulomb", "EmbeddedAtom", "LennardJones", "MessagePassing", "Morse", "NeuralPair",
                "Neighborhoods", "ReactionField", "SmearedCoulomb", "SoftSphere", "StillingerWeber",
                "SymmetryFunctions", "Tersoff", "WCA", "Yukawa", "geometric", "lorentz_berthelot",
                "read_funcfl", "read_setfl",
            ),
        },
    ),
    "priors": (
        "What is known of a parameter before the data.",
        {
            "inference": ("AbstractPrior", "HalfCauchy", "HalfNormal", "LogNormal", "Normal", "Uniform"),
        },
    ),
    "quantities": (
        "Numbers of one snapshot, for `Every`, `Average` and guards.",
        {
            "observe": (
                "AbstractQuantity", "Acceptance", "AngularMomentum", "AngularVelocities", "BoxVectors",
                "CenterOfMass", "ConservedEnergy", "DipoleMoment", "Dissipation", "EddyEnergy",
                "ElectromagneticEnergy", "Enstrophy", "EntanglementEntropy", "Expectation", "Expression",
                "Fidelity", "FieldEnergy", "FieldValues", "FlowEnergy", "FreeEnergy", "HeatFlux",
                "Integral", "KineticEnergy", "Magnetization", "MeshDensity", "MeshPotential",
                "ModeAmplitude", "Momentum", "NusseltNumber", "Orientations", "ParticleEnergies",
                "ParticleForces", "Positions", "PotentialEnergy", "Pressure", "Probabilities", "Purity",
                "RootMeanSquare", "Sensors", "SolidForce", "SpinEnergy", "SpinValues", "StressTensor",
                "Temperature", "TotalEnergy", "Velocities", "WaveEnergy",
            ),
        },
    ),
    "reconstructions": (
        "From cell averages to values at faces.",
        {
            "fields.finite_volume": (
                "AWENO5", "AbstractReconstruction", "MUSCL", "PiecewiseConstant", "WENO5",
            ),
        },
    ),
    "reductions": (
        "Statistics over the members of a sweep, updated chunk by chunk.",
        {"ensemble": ("Histogram", "Mean", "Quantiles", "Reduction", "Variance")},
    ),
    "riemann": (
        "Riemann solvers: the flux between two states.",
        {
            "fields.finite_volume": (
                "AUSMPlus", "AbstractRiemannSolver", "AdvectionParts", "ExactRiemann", "HLL", "HLLC",
                "HLLD", "Roe", "Rusanov", "exact_riemann",
            ),
        },
    ),
    "sampling": (
        "Rare events and free energies: collective variables, biases, exchanges, alchemical states, minima.",
        {
            "particles.forces": (
                "AbstractBias", "AbstractCollectiveVariable", "Angle", "CollectiveVariable", "Distance",
                "GridBias", "HarmonicBias", "RadiusOfGyration", "ScaledCharges", "SoftCoreLennardJones",
                "Torsion",
            ),
            "integrators": ("BasinHopping", "Metadynamics", "ReplicaExchange", "Replicas"),
            "observe": (
                "BiasEnergy", "CollectiveVariables", "EnergiesAt", "EnergyDerivative", "LowestEnergy",
                "LowestPositions", "MetadynamicsFreeEnergy", "PerReplica", "ReplicaIndex",
                "SwapAcceptance",
            ),
            "ensemble": (
                "FreeEnergies", "Profile", "free_energies", "replica_exchange",
                "thermodynamic_integration", "umbrella_energies", "wham",
            ),
        },
    ),
    "schemes": (
        "How a derivative is taken.",
        {"fields.operators": ("AbstractScheme", "Central", "Spectral")},
    ),
    "spaces": (
        "Where particles move.",
        {"geometry": ("AbstractSpace", "Box", "Free", "Location", "Triclinic")},
    ),
    "statistics": (
        "Numbers from recorded frames, with their errors.",
        {
            "fields": ("PowerSpectrum", "power_spectrum"),
            "observe": (
                "Estimate", "HardSpherePressure", "Jackknife", "SpinAverages", "block_average",
                "dielectric_constant", "diffusion_coefficient", "green_kubo", "hard_sphere_pressure",
                "jackknife", "shell_average", "spin_averages", "wavevectors_within",
            ),
            "storage": ("Series",),
            "ensemble": ("bootstrap", "ensemble_mean", "ensemble_statistics", "passage_rate"),
        },
    ),
    "sweeping": (
        "How a sweep is computed: by which workers, until when, and what if a member fails.",
        {
            "ensemble": (
                "Converged", "LocalWorkers", "Retry", "SlurmArray", "Sweep", "SweepProgress", "sweep",
            ),
        },
    ),
    "terms": (
        "Pieces of physics as rates, for Runge–Kutta and splittings; base classes of own ones.",
        {"core": ("AbstractTendency", "AbstractTerm", "Function", "Network", "Tendencies")},
    ),
    "units": (
        "Systems of units: what a femtosecond, a kelvin or a bar is in each.",
        {
            "core": ("SI", "UnitSystem", "atomic", "lennard_jones_units", "metal", "molecular", "real"),
        },
    ),
}  # fmt: skip

# Layers that scripts use whole: `pk.plot.field`, `pk.systems.kepler`, `pk.integrators.Yoshida`.
SHOWN_LAYERS = (
    "inference", "integrators", "interop", "parallel", "particles", "plot", "quantum", "reactions",
    "spins", "systems", "testing",
)  # fmt: skip
# The others are for authors of new physics: there when asked for, not among the completions.
OTHER_LAYERS = (
    "cli", "core", "coupling", "ensemble", "fields", "geometry", "html", "native", "observe", "storage",
)  # fmt: skip
