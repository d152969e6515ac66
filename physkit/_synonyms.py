"""Names by meaning: what is called otherwise in other codes, and what to use here. Data only.

From ASE, diffrax, Dedalus, exponax, GROMACS, HOOMD, JAX-CFD, JAX-MD, LAMMPS, Oceananigans, OpenMM, REBOUND and
SciPy. A test checks that every name in a remedy exists.
"""

_HOOK = "pk.run(simulation, state, steps, on_chunk=…), pk.fit(…, on_iteration=…)"
_FROM_XARRAY = "pk.interop.from_xarray(array)"
_TABLE = "pk.fitting.observations(table, time=…), for a fit"
_VERLET = "pk.VelocityVerlet(force)"
_LANGEVIN = "pk.BAOAB(force, temperature=…, friction=…)"
_NOSE_HOOVER = "pk.NoseHooverChain(force, temperature=…, period=…)"
_RESCALING = "pk.VelocityRescaling(pk.VelocityVerlet(force), temperature=…, relaxation_time=…)"
_BAROSTAT = (
    "pk.StochasticCellRescaling(thermostat, pressure=…, relaxation_time=…, compressibility=…)"
)
_MTK = "pk.integrators.MartynaTobiasKlein"
_BROWNIAN = "pk.Brownian(force, temperature=…, friction=…)"
_MINIMIZE = "pk.minimize(force, state)"
_UMBRELLA = "pk.HarmonicBias(variable, stiffness, center), in a pk.sweep over centers"
_EXCHANGE = "pk.replica_exchange((simulation, state), over=pk.SweepAxis(…))"
_ODE = (
    "pk.run(pk.Simulation(pk.RK4(lambda t, y: …), dt=…), y0, steps); for adaptive steps pk.Diffrax"
)
_SDE = "pk.integrators.EulerMaruyama(drift, diffusion=…), for Itô's equations"
_STRATONOVICH = "pk.integrators.StochasticHeun(drift, diffusion=…)"
_CONSTRAINTS = "pk.DistanceConstraints(pairs, lengths), in pk.Particles(…, constraints=…)"
_UNITS = "pk.units.metal.kelvin, …: constants in systems of units; temperatures are energies, k_B T"
_FDTD = "pk.electromagnetism.Yee(pk.electromagnetism.Maxwell(media, sources, layer))"
_SOUND = "pk.acoustics.StaggeredLeapfrog(pk.acoustics.KSpaceAcoustics(speed, density))"
_SENSORS = "pk.acoustics.Sensors(positions, part), in pk.Every(1, …)"
_PIC = "pk.electromagnetism.ParticleInCell(maxwell, species); without light pk.ParticleMesh(grid)"
_LBM = "pk.lattice_boltzmann.StreamAndCollide(pk.lattice_boltzmann.LatticeBoltzmann(viscosity))"
_TRT = "pk.lattice_boltzmann.TwoRelaxationTimes()"
_DIELECTRIC = "pk.electromagnetism.Dielectric(permittivity, shape=…)"
_ENERGY_FUNCTION = "pk.forces.EnergyFunction(function, parameters, cutoff=…)"
_GRAPH = "pk.potentials.MessagePassing(cutoff, key=…)"
_OPERATOR = "pk.equations.FourierNeuralOperator(channels, modes, key=…)"
_OPENMM = "pk.interop.from_openmm(system, topology, positions)"
_EVALUATE = "pk.evaluate(simulation, state, energy=pk.PotentialEnergy(), …)"
_RUN = "pk.run(simulation, state, steps)"
_SIMULATION = "pk.Simulation(integrator, dt=…)"
_GRID = "pk.Grid([…], (cells, …))"
_FCC = "pk.lattice.face_centered_cubic(cells, spacing=…)"
_MAXWELL = "pk.maxwell_boltzmann(key, particles, temperature=…)"
_LJ = "pk.Pairwise(pk.LennardJones(epsilon=…, sigma=…), cutoff=…)"
_PAIR = "pk.Pairwise(potential, cutoff=…), which keeps a neighbor list"
_EWALD = "pk.ParticleMeshEwald(cutoff, tolerance=…)"
_GRAVITY = (
    "pk.DirectGravity(…), pk.ParticleMesh(grid, pk.mesh.Gravity()), or pk.UniformAcceleration([…])"
)
_BONDS = "pk.HarmonicBonds(bonds, stiffness, length)"
_TORSIONS = "pk.PeriodicTorsions(quadruples, stiffness, multiplicity, phase)"
_IMPROPER = "pk.forces.HarmonicTorsions(quadruples, stiffness, angle), or pk.PeriodicTorsions"
_MAPS = "pk.forces.TorsionMaps(quintuples, values)"
_OWN_BONDS = "pk.BondedEnergy(places, function, parameters)"
_DIFFUSION = "pk.equations.Diffusion(diffusivity)"
_NLS = "pk.equations.Schroedinger(interaction=…)"
_POISSON = "pk.elliptic.solve_poisson(field)"
_RDF = "pk.RadialDistribution(interval, r_max=…)"
_REPORT = "pk.Every(interval, energy=pk.TotalEnergy())"
_DUMP = "pk.Every(interval, x=pk.Positions()), with pk.run(…, to=folder); pk.export writes other formats"
_FIT = "pk.fit(objective, model, where=…)"
_SWEEP = "pk.sweep((simulation, state), steps, over=pk.SweepAxis(…))"
_POSTERIOR = "pk.inference.sample_posterior(pk.inference.Posterior(objective, model, where=…))"
_FILTER = "pk.inference.ensemble_kalman_filter(sim, states, observations, …)"

_EVOLVE = "pk.fit(loss, model, where=…, method=pk.fitting.CMAES())"

# A name elsewhere → what it is here. Names are found in any case, with or without underscores.
SYNONYMS: dict[str, str] = {
    # other tools
    "callback": _HOOK, "callbacks": _HOOK, "wandb": _HOOK, "TensorBoard": _HOOK,
    "from_numpy": "pk.Particles(position, velocity) or pk.Field(data, grid), which take NumPy arrays",
    "from_pandas": _TABLE, "read_csv": _TABLE, "from_arrow": _TABLE, "from_parquet": _TABLE,
    "from_netcdf": _FROM_XARRAY, "DataArray": _FROM_XARRAY, "open_dataset": _FROM_XARRAY,
    "DataFrame": "run.to_pandas() of pk.Run; pk.fitting.observations(table, time=…) of data",
    "to_pandas": "run.to_pandas() of pk.Run, pk.Recording and pk.Ensemble",
    "film": "pk.plot.animate(frames)",
    "report": "`physkit report FOLDER` on the command line",
    "error_bars": "standard_errors of pk.fit(residuals, …), or pk.statistics.block_average(series)",
    "uncertainty": "standard_errors of pk.fit(residuals, …), or pk.statistics.block_average(series)",
    "to_parquet": "pk.export(folder, 'file.parquet')", "print_versions": "pk.show_versions()",
    # searches without gradients
    "CMA_ES": _EVOLVE, "CMAEvolutionStrategy": _EVOLVE, "cma": _EVOLVE, "fmin2": _EVOLVE,
    "Open_ES": "pk.fit(…, method=pk.fitting.OpenES())",
    "differential_evolution": "pk.fit(…, method=pk.fitting.DifferentialEvolution())",
    "NelderMead": _EVOLVE, "basinhopping": "pk.fit(…, method=pk.fitting.CMAES(restarts=…))",
    # inference
    "emcee": _POSTERIOR, "mcmc": _POSTERIOR, "hmc": _POSTERIOR, "window_adaptation": _POSTERIOR,
    "rhat": "pk.inference.r_hat(draws)", "ess": "pk.inference.bulk_sample_size(draws)",
    "EnKF": _FILTER, "EnsembleKalmanFilter": _FILTER, "kalman": _FILTER,
    "EKI": "pk.inference.ensemble_kalman_inversion(posterior)",
    "HalfStudentT": "pk.priors.HalfCauchy(scale)",
    # integrators of particles
    "Verlet": _VERLET, "VerletIntegrator": _VERLET, "nve": _VERLET,
    "LeapfrogIntegrator": "pk.Leapfrog(force)",
    "WHFast": "pk.VelocityVerlet(pk.DirectGravity(…)); of higher order pk.integrators.Yoshida",
    "IAS15": "pk.integrators.Yoshida, or pk.Diffrax for adaptive steps",
    "Yoshida": "pk.integrators.Yoshida", "ForestRuth": "pk.integrators.Yoshida",
    "Langevin": _LANGEVIN, "LangevinIntegrator": _LANGEVIN, "LangevinMiddleIntegrator": _LANGEVIN,
    "nvt_langevin": _LANGEVIN, "NVT": f"{_RESCALING}, {_LANGEVIN} or {_NOSE_HOOVER}",
    "Bussi": _RESCALING, "CSVR": _RESCALING, "VRescale": _RESCALING, "BussiThermostat": _RESCALING,
    "Berendsen": f"{_RESCALING}, which also has the right fluctuations",
    "AndersenThermostat": "pk.Andersen(pk.VelocityVerlet(force), temperature=…, rate=…)",
    "NPT": _BAROSTAT, "Barostat": _BAROSTAT, "CRescale": _BAROSTAT, "npt_langevin": _BAROSTAT,
    "ParrinelloRahman": f"{_MTK}, or {_BAROSTAT}", "MTK": _MTK, "npt_nose_hoover": _MTK, "nph": _MTK,
    "MonteCarloAnisotropicBarostat": "pk.MonteCarloBarostat with shape=\"anisotropic\"",
    "NoseHoover": _NOSE_HOOVER, "nvt_nose_hoover": _NOSE_HOOVER, "NoseHooverIntegrator": _NOSE_HOOVER,
    "OverdampedLangevin": _BROWNIAN, "BrownianIntegrator": _BROWNIAN, "BrownianDynamics": _BROWNIAN,
    "BorisPusher": "pk.Boris",
    "SDE": _SDE, "MultiTerm": _SDE, "ControlTerm": _SDE, "ItoMilstein": _SDE, "SDEProblem": _SDE,
    "EulerHeun": _STRATONOVICH, "StratonovichMilstein": _STRATONOVICH, "NeuralSDE": _SDE,
    "NeuralODE": _ODE,
    # sampling
    "UmbrellaSampling": _UMBRELLA, "umbrella": _UMBRELLA, "CustomCVForce": _UMBRELLA, "colvars": _UMBRELLA,
    "PLUMED": f"{_UMBRELLA}; pk.Metadynamics fills a pk.sampling.GridBias",
    "WellTemperedMetadynamics": "pk.Metadynamics(integrator, height=…, width=…)",
    "metaD": "pk.Metadynamics(integrator, height=…, width=…)",
    "ParallelTempering": _EXCHANGE, "REMD": _EXCHANGE, "ReplicaExchangeMD": _EXCHANGE,
    "TemperReplicas": _EXCHANGE, "HREX": _EXCHANGE,
    "MBAR": "pk.free_energies(energies, temperature)", "pymbar": "pk.free_energies(energies, temperature)",
    "BAR": "pk.free_energies(energies, temperature)",
    "SoftCore": "pk.sampling.SoftCoreLennardJones(epsilon, sigma, coupling)",
    "FEP": "pk.sampling.SoftCoreLennardJones and pk.free_energies",
    "fix_adapt_fep": "pk.sampling.SoftCoreLennardJones and pk.free_energies",
    "FIRE": _MINIMIZE, "fire_descent": _MINIMIZE, "LocalEnergyMinimizer": _MINIMIZE,
    "energy_minimize": _MINIMIZE, "minimise": _MINIMIZE, "relax": _MINIMIZE,
    # integrators of rates
    "odeint": _ODE, "solve_ivp": _ODE, "diffeqsolve": _ODE, "ODEProblem": _ODE,
    "ODETerm": "pk.RK4(lambda t, y: …), or pk.Function(…)", "ODE": "pk.RK4(lambda t, y: …)",
    "Tsit5": "pk.Diffrax with solver=diffrax.Tsit5() for adaptive steps, pk.RK4 for fixed ones",
    "Dopri5": "pk.Diffrax with solver=diffrax.Dopri5() for adaptive steps, pk.RK4 for fixed ones",
    "Dopri8": "pk.Diffrax with solver=diffrax.Dopri8()",
    "RK45": "pk.Diffrax with solver=diffrax.Dopri5() for adaptive steps, pk.RK4 for fixed ones",
    "Kvaerno5": "pk.Diffrax with solver=diffrax.Kvaerno5()",
    "RungeKutta": "pk.RK4(rate)", "RungeKutta4": "pk.RK4(rate)", "RungeKutta3": "pk.SSPRK3(rate)",
    "TVDRK3": "pk.SSPRK3(rate)", "ForwardEuler": "pk.Euler(rate)", "ExplicitEuler": "pk.Euler(rate)",
    "ETDRK": "pk.ETDRK4(equation) or pk.ETDRK2(equation)", "ExponentialEuler": "pk.ETDRK2(equation)",
    "StrangSplitting": "pk.Strang(a, b)", "OperatorSplitting": "pk.Strang(a, b)",
    "LieTrotter": "pk.Lie(a, b)",
    "SplitOperator": "pk.SplitStep(pk.equations.Schroedinger(…))",
    "Respa": "pk.Strang(slow, pk.Subcycle(fast, count))",
    "MTSIntegrator": "pk.Strang(slow, pk.Subcycle(fast, count))",
    "AdaptiveTimeStep": "pk.CFLSubsteps(integrator, cfl=…) or pk.Diffrax",
    "TimeStepWizard": "pk.CFLSubsteps(integrator, cfl=…)",
    # states, spaces and grids
    "Atoms": "pk.Particles(position, velocity, mass, space)",
    "State": "pk.Particles(…), pk.Field(…), or a dict of components",
    "System": _SIMULATION, "Simulator": _SIMULATION, "Context": _SIMULATION, "Model": _SIMULATION,
    "Solver": _SIMULATION, "Timestepper": _SIMULATION,
    "NonhydrostaticModel": "pk.equations.NavierStokes in an integrator",
    "Periodic": "pk.Box([…]), which is periodic; the boundary of a field is pk.boundaries.Periodic()",
    "PeriodicGeneral": "pk.Box([…]) or pk.Triclinic(vectors)", "PeriodicBox": "pk.Box([…])",
    "Cell": "pk.Box([…]) or pk.Triclinic(vectors)", "OpenSpace": "pk.Free()",
    "RectilinearGrid": _GRID, "RegularGrid": _GRID, "UniformGrid": _GRID, "Mesh2D": _GRID,
    "GridArray": "pk.Field(data, grid)", "CenterField": "pk.Field(data, grid)",
    "GridVariable": "pk.Field(data, grid, boundary=…)",
    "bulk": _FCC, "fcc": _FCC, "FaceCenteredCubic": _FCC,
    "MaxwellBoltzmannDistribution": _MAXWELL, "create_velocities": _MAXWELL,
    "setVelocitiesToTemperature": _MAXWELL,
    "Stationary": "pk.remove_drift(particles)", "CMMotionRemover": "pk.remove_drift(particles)",
    # forces
    "LJ": _LJ, "lj_cut": _LJ, "lennard_jones_neighbor_list": _LJ, "PairPotential": _PAIR, "Pair": _PAIR,
    "NeighborList": _PAIR, "CustomNonbondedForce": f"{_PAIR}, with a pk.AbstractPairPotential of your own",
    "NonbondedForce": f"{_LJ} + {_EWALD}",
    "SoftSphereForce": "pk.potentials.SoftSphere()", "Screened": "pk.potentials.Yukawa()",
    "DebyeHueckel": "pk.potentials.Yukawa()",
    "CoulombForce": f"{_EWALD}; cheaper pk.potentials.DampedCoulomb; in a plasma pk.ParticleMesh(grid)",
    "EwaldSum": "pk.Ewald(cutoff, tolerance=…)", "PME": _EWALD, "SPME": _EWALD, "PPPM": _EWALD,
    "kspace_style": _EWALD,
    "DSF": "pk.Pairwise(pk.potentials.DampedCoulomb(damping), cutoff=…)",
    "NBody": "pk.DirectGravity(…)", "NewtonianGravity": _GRAVITY, "Gravitation": _GRAVITY,
    "Bond": _BONDS, "Bonds": _BONDS, "Angle": "pk.HarmonicAngles(triples, stiffness, angle)",
    "Angles": "pk.HarmonicAngles(triples, stiffness, angle)",
    "HarmonicBondForce": _BONDS, "bond_harmonic": _BONDS, "Spring": f"{_BONDS} or pk.HarmonicTrap(stiffness)",
    "Torsion": _TORSIONS, "Dihedral": _TORSIONS, "PeriodicTorsionForce": _TORSIONS, "Improper": _IMPROPER,
    "RBTorsionForce": "pk.forces.RyckaertBellemansTorsions(quadruples, coefficients)",
    "CMAP": _MAPS, "CMAPTorsionForce": _MAPS, "FENE": "pk.forces.FENEBonds(pairs, stiffness, max_length)",
    "MorseBond": "pk.forces.MorseBonds(pairs, depth, steepness, length)",
    "UreyBradley": "pk.forces.urey_bradley(triples, stiffness, length)",
    "special_bonds": "pk.Pairwise(…, exclude=pairs) + pk.forces.SpecialPairs(pairs, potential, scale)",
    "CustomBondForce": _OWN_BONDS, "CustomAngleForce": _OWN_BONDS, "CustomTorsionForce": _OWN_BONDS,
    "CustomCompoundBondForce": _OWN_BONDS,
    "HarmonicAngleForce": "pk.HarmonicAngles(…)", "HarmonicOscillator": "pk.HarmonicTrap(stiffness)",
    "CustomExternalForce": "pk.ExternalForce(lambda t, particles: …) or pk.ExternalEnergy(…)",
    "addforce": "pk.ExternalForce(lambda t, particles: …)", "efield": "pk.UniformField([…])",
    "MagneticField": "pk.Boris, which takes one", "PIC": "pk.ParticleMesh(grid)",
    "PM": "pk.ParticleMesh(grid, pk.mesh.Gravity())",
    # equations, operators, boundaries
    "Heat": _DIFFUSION, "HeatEquation": _DIFFUSION, "ScalarDiffusivity": _DIFFUSION,
    "Convection": "pk.equations.Advection(velocity)",
    "AdvectionDiffusion": "pk.RK4(pk.equations.Advection(velocity), pk.equations.Diffusion(diffusivity))",
    "WaveEquation": "pk.equations.Wave(…)", "KdV": "pk.equations.KortewegDeVries(…)",
    "KS": "pk.equations.KuramotoSivashinsky(…)",
    "FNO": _OPERATOR, "FourierOperator": _OPERATOR, "NeuralOperator": _OPERATOR,
    "LES": "pk.equations.Smagorinsky(…), or pk.equations.Closure with a model of your own",
    "PhaseField": "pk.equations.CahnHilliard(…) or pk.equations.AllenCahn(…)",
    "ModelA": "pk.equations.AllenCahn(…)", "ModelB": "pk.equations.CahnHilliard(…)",
    "CGLE": "pk.equations.ComplexGinzburgLandau(…)", "PFC": "pk.equations.PhaseFieldCrystal(…)",
    "PorousMedium": "pk.equations.NonlinearDiffusion(pk.equations.PowerLaw(…))",
    "KPZ": 'pk.equations.KuramotoSivashinsky(…, form="height") beside pk.equations.WhiteNoise(…)',
    "ReactionDiffusion": "pk.equations.GrayScott(…), or pk.equations.Diffusion beside a pk.Function",
    "Schrodinger": "pk.equations.Schroedinger(…)", "GrossPitaevskii": _NLS, "NLS": _NLS,
    "EulerEquations": "pk.equations.CompressibleEuler(gamma)",
    "Hydrodynamics": "pk.equations.CompressibleEuler(gamma)",
    "QGModel": "pk.equations.QuasiGeostrophic.two_layers(viscosity, deformation_radius, shear)",
    "LayeredModel": "pk.equations.QuasiGeostrophic(viscosity, depth, coupling)",
    "SQG": "pk.equations.SurfaceQuasiGeostrophic(viscosity)",
    "SQGModel": "pk.equations.SurfaceQuasiGeostrophic(viscosity)",
    "HydrostaticFreeSurfaceModel": "pk.equations.HydrostaticFlow(gravity, coriolis=…)",
    "PrimitiveEquations": "pk.equations.HydrostaticFlow(gravity, coriolis=…)",
    "SphereBasis": "pk.SphericalGrid(radius, truncation)",
    "SphericalHarmonics": "pk.SphericalGrid(radius, truncation)",
    "Sphere": "pk.SphericalGrid(radius, truncation); a solid ball in a flow is pk.equations.Ball",
    "SaintVenant": "pk.equations.ShallowWaterFV(…)",
    "VorticityEquation": "pk.equations.VorticityTransport(viscosity)",
    "PoissonSolver": _POISSON, "solve_fast_diag": _POISSON, "pressure_projection": "pk.elliptic.project",
    "Dx": "pk.operators.derivative(field, axis)", "ddx": "pk.operators.derivative(field, axis)",
    "grad": "pk.operators.gradient(field); derivatives of simulations are jax.grad",
    "div": "pk.operators.divergence(field)", "nabla": "pk.operators.gradient(field)",
    "FFT": "field.spectrum(), with pk.schemes.Spectral() in equations",
    "WENO": "pk.reconstructions.WENO5()", "ZeroGradient": "pk.boundaries.Neumann(0.0)",
    "FluxBoundaryCondition": "pk.boundaries.Neumann(…)",
    "GradientBoundaryCondition": "pk.boundaries.Neumann(…)",
    "ValueBoundaryCondition": "pk.boundaries.Dirichlet(…)", "ReflectingWall": "pk.boundaries.Mirror()",
    # observers
    "RDF": _RDF, "gofr": _RDF, "pair_correlation": _RDF,
    "MSD": "pk.MeanSquareDisplacement(interval, lags=…)",
    "VACF": "pk.observers.VelocityAutocorrelation(…)", "Sk": "pk.observers.StructureFactor(…)",
    "KE": "pk.KineticEnergy()", "PE": "pk.PotentialEnergy()", "etotal": "pk.TotalEnergy()",
    "Energy": "pk.TotalEnergy(), pk.KineticEnergy() or pk.PotentialEnergy()",
    "Temp": "pk.Temperature()", "Virial": "pk.quantities.StressTensor()",
    "StateDataReporter": _REPORT, "Reporter": _REPORT, "SaveAt": _REPORT, "Logger": _REPORT,
    "thermo": _REPORT, "Callback": "pk.Every(interval, x=lambda now: …)",
    "dump": _DUMP, "DCDReporter": _DUMP, "Trajectory": _DUMP,
    "DielectricConstant": "pk.statistics.dielectric_constant",
    "Permittivity": "pk.statistics.dielectric_constant",
    "Diffusivity": "pk.statistics.diffusion_coefficient", "GreenKubo": "pk.statistics.green_kubo",
    # verbs, files, pictures
    "save": "pk.run(…, to=folder) for frames, pk.save_checkpoint(…) for a state",
    "load": "pk.open(folder) for frames, pk.load_checkpoint(…) for a state", "read": "pk.open(folder)",
    "write": "pk.export(…)", "checkpoint": "pk.run(…, checkpoint=folder), or pk.Checkpoints(folder)",
    "restart": "pk.run(…, to=folder, resume=True)", "resume": "pk.run(…, to=folder, resume=True)",
    "solve": _RUN, "integrate": _RUN, "evolve": _RUN, "step": "pk.simulate(simulation, state, 1)",
    "rollout": "pk.simulate(simulation, state, steps), with pk.Every for what is recorded",
    "repeat": "pk.simulate(simulation, state, steps)",
    "animate": "pk.plot.animate", "movie": "pk.plot.animate", "imshow": "pk.plot.field",
    "show": "pk.plot.field, pk.plot.particles or pk.plot.series", "scatter": "pk.plot.particles",
    "optimize": _FIT, "train": _FIT, "calibrate": _FIT, "curve_fit": _FIT, "least_squares": _FIT,
    "scan": _SWEEP, "ParameterScan": _SWEEP, "LHS": "pk.designs.latin_hypercube",
    "Parameter": "pk.param()", "PRNGKey": "key=0, or jax.random.key(0)",
    # molecules
    "SHAKE": _CONSTRAINTS, "RATTLE": _CONSTRAINTS, "LINCS": _CONSTRAINTS,
    "SETTLE": "pk.RigidWater(molecules, oh, hh), in pk.Particles(…, constraints=…)",
    "RigidBody": "pk.RigidBodies.from_sites(positions, masses), with pk.SiteForce(force)",
    "EAM": "pk.ManyBody(pk.potentials.EmbeddedAtom(…))",
    "MACE": _ENERGY_FUNCTION, "NequIP": _ENERGY_FUNCTION,
    "SchNet": _GRAPH, "PaiNN": _GRAPH, "GNN": _GRAPH, "GraphNetwork": _GRAPH,
    "energy_fn": _ENERGY_FUNCTION, "ACSF": "pk.potentials.SymmetryFunctions(cutoff)",
    "ThreeBody": "pk.ManyBody(…) of your own pk.AbstractManyBodyPotential",
    "ForceField": _OPENMM, "Topology": _OPENMM, "PDBFile": "pk.interop.read_structure(path)",
    "kB": _UNITS, "constants": _UNITS,
    "RecursiveCheckpointAdjoint": "pk.NestedCheckpoint() or pk.adjoints.Binomial(…)",
    "BacksolveAdjoint": "pk.Reversible()", "DirectAdjoint": "pk.adjoints.Direct()",
    # qubits and open systems
    "Lindblad": "pk.quantum.Lindblad", "mesolve": "pk.quantum.Lindblad",
    "sesolve": "pk.quantum.UnitaryEvolution", "mcsolve": "pk.integrators.QuantumJumps",
    "QuantumCircuit": "pk.quantum.Circuit", "SparsePauliOp": "pk.quantum.PauliSum",
    "BouncingBall": "pk.integrators.Events", "ContinuousCallback": "pk.integrators.Events",
    "SSA": "pk.integrators.Gillespie", "StochasticSimulation": "pk.integrators.Gillespie",
    "MasterEquation": "pk.reactions.one_step_distribution",
    "JumpProblem": "pk.integrators.Gillespie", "CRN": "pk.reactions.ReactionNetwork",
    "Ising": "pk.systems.ising_model(temperature)", "Potts": "pk.systems.potts_model(q)",
    "HardSphere": "pk.integrators.HardSphereMonteCarlo", "HardDisks": "pk.integrators.HardSphereMonteCarlo",
    "HMCIntegrator": "pk.integrators.HybridMonteCarlo", "GHMC": "pk.integrators.HybridMonteCarlo",
    "Wolff": "pk.integrators.SwendsenWang", "Glauber": "pk.integrators.SpinHeatBath",
    "Qobj": "pk.quantum.LocalOperator(matrix, 0)",
    # gas
    "MHD": "pk.equations.IdealMHD", "Magnetohydrodynamics": "pk.equations.IdealMHD",
    "CompressibleNavierStokes": "pk.equations.CompressibleEuler(gamma, viscosity=…, conductivity=…)",
    "AUSM": "pk.riemann.AUSMPlus", "AUSMPlusUp": "pk.riemann.AUSMPlus(reference_mach)",
    "LaxFriedrichs": "pk.riemann.Rusanov", "LLF": "pk.riemann.Rusanov", "HLLE": "pk.riemann.HLL",
    "PLM": "pk.reconstructions.MUSCL", "PPM": "pk.reconstructions.WENO5 or AWENO5",
    "Jeans": "pk.equations.SelfGravity", "MHDState": "pk.components.MagnetizedGas",
    # sound and elastic waves
    "kWave": _SOUND, "kspaceFirstOrder": _SOUND, "kspaceFirstOrder2D": _SOUND, "kspaceFirstOrder3D": _SOUND,
    "kWaveMedium": "pk.acoustics.KSpaceAcoustics(speed, density, absorption=…)",
    "kWaveSensor": _SENSORS, "Hydrophone": _SENSORS, "Geophone": _SENSORS, "Receiver": _SENSORS,
    "kWaveSource": "pk.acoustics.PointSource(position, waveform)",
    "TimeHarmonicSource": "pk.acoustics.PointSource(position, pk.acoustics.ContinuousWave(frequency))",
    "alpha_coeff": "pk.acoustics.PowerLawAbsorption.from_decibels(coefficient, exponent)",
    "RickerSource": "pk.acoustics.WavePulse(frequency, width, center)",
    "SeismicModel": "pk.acoustics.ElasticWaves.from_speeds(p_speed, s_speed, density)",
    "Elastodynamics": "pk.acoustics.ElasticWaves(lame_lambda, lame_mu, density)",
    # light
    "FDTD": _FDTD, "MaxwellEquations": _FDTD, "Maxwells": _FDTD,
    "PML": "pk.electromagnetism.ConvolutionalPML(cells)",
    "CPML": "pk.electromagnetism.ConvolutionalPML(cells)",
    "MaterialGeometry": _DIELECTRIC, "GeometricObject": _DIELECTRIC, "epsilon": _DIELECTRIC,
    "EigenModeSource": "pk.electromagnetism.ModeSource(waveguide_mode(media, grid, axis, position, frequency), "
    "waveform)",
    "get_eigenmode_coefficients": "pk.electromagnetism.mode_amplitudes(spectrum, mode)",
    "ModeMonitor": "pk.electromagnetism.mode_amplitudes(spectrum, mode)",
    "ModePlaneSource": "pk.electromagnetism.ModeSource(mode, waveform)",
    "add_near2far": "pk.electromagnetism.FarField(interval, low, high, frequencies, directions)",
    "Near2FarRegion": "pk.electromagnetism.FarField(interval, low, high, frequencies, directions)",
    "GaussianSource": "pk.electromagnetism.WavePulse(frequency, width, center)",
    "add_flux": "pk.electromagnetism.FluxSpectrum(interval, axis, position, frequencies)",
    "FluxRegion": "pk.electromagnetism.FluxSpectrum(interval, axis, position, frequencies)",
    "get_potential_energy": _EVALUATE, "single_point": _EVALUATE, "measure": _EVALUATE,
    "at_every": "pk.Every(interval, name=function), in Simulation(…, observers=…)",
    # lattices
    "LBM": _LBM, "LatticeBoltzmannMethod": _LBM, "BGKCollision": "pk.lattice_boltzmann.BGK()",
    "TRT": _TRT, "MRT": "pk.lattice_boltzmann.CentralMoments()",
    "CumulantCollision": "pk.lattice_boltzmann.CentralMoments()",
    "BounceBack": "pk.boundaries.NoSlip()", "HalfwayBounceBack": "pk.boundaries.NoSlip()",
    "ZouHe": "pk.boundaries.Dirichlet([u, v]), pk.boundaries.FixedPressure(p)",
    "k_point": "pk.electromagnetism.Maxwell(…, wavevector=…)",
    "Esirkepov": _PIC, "CurrentDeposition": _PIC, "EMPIC": _PIC,
    "VayPusher": "pk.electromagnetism.Vay()",
    "HigueraCaryPusher": "pk.electromagnetism.HigueraCary()",
}  # fmt: skip

_ACTIVE = "active particles: write a step of your own with pk.AbstractOneStep and clock.key"
_MULTISTEP = "multistep methods: take pk.RK4, pk.SSPRK3 or pk.ETDRK4"

# A name elsewhere → what is not there, and what comes closest.
ABSENT: dict[str, str] = {
    "ReaxFF": "reactive force fields: pk.ManyBody takes an energy of neighbors of your own",
    "Joint": "joints of rigid bodies: pk.SiteForce(pk.HarmonicBonds(…)) ties sites of them together",
    "DPD": "dissipative particle dynamics: pk.BAOAB has a thermostat of its own",
    "SPH": "smoothed particle hydrodynamics: pk.equations.CompressibleEuler is gas on a grid",
    "DEM": "granular contacts: pk.potentials.SoftSphere() repels without friction",
    "VOF": "volumes of fluid: pk.lattice_boltzmann.ShanChen() is a fluid in two phases",
    "FEM": "finite elements: a pk.Grid is uniform", "AMR": "adaptive meshes: a pk.Grid is uniform",
    "AdamsBashforth": _MULTISTEP, "AB2": _MULTISTEP, "QuasiAdamsBashforth2": _MULTISTEP,
    "RunAndTumble": _ACTIVE, "ActiveBrownian": _ACTIVE, "Vicsek": _ACTIVE,
    "MonteCarlo": "Metropolis moves: pk.integrators.HybridMonteCarlo, HardSphereMonteCarlo, SpinMetropolis",
    "GCMC": "particles that come and go: the number of pk.Particles is fixed",
    "NEB": "paths of least energy: pk.minimize finds minima, pk.Metadynamics barriers",
    "TransitionPathSampling": "sampling of paths: pk.Metadynamics and pk.HarmonicBias find barriers",
    "ABF": "adaptive biasing forces: pk.Metadynamics grows a bias",
    "WangLandau": "flat histograms: pk.replica_exchange and pk.Metadynamics sample over barriers",
}  # fmt: skip


def explain_foreign(name: str) -> str | None:
    """What to use for a `name` of another code; None for a name in neither table."""
    plain = _plain(name)
    for other, remedy in SYNONYMS.items():
        if _plain(other) == plain:
            return f"physkit has no {name!r}; use {remedy}"
    for other, what in ABSENT.items():
        if _plain(other) == plain:
            return f"physkit has no {name!r}; it does not have {what}"
    return None


def _plain(name: str) -> str:
    """A name without case and underscores."""
    return name.replace("_", "").lower()
