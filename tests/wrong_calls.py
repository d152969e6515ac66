"""What users mistype first, over the whole public API, and what the answer must say; and right calls."""

SETUP = """
import jax, jax.numpy as jnp, numpy as np, physkit as pk
X = jnp.array([[0.0, 0.0, 0.0], [1.2, 0.0, 0.0], [0.0, 1.2, 0.0], [0.0, 0.0, 1.2]])
box = pk.Box([8.0, 8.0, 8.0])
atoms = pk.Particles(X, space=box)
lj = pk.LennardJones()
force = pk.Pairwise(lj, cutoff=2.5)
trap = pk.HarmonicTrap(1.0)
verlet = pk.VelocityVerlet(trap)
sim = pk.Simulation(verlet, dt=0.01)
grid = pk.Grid([1.0], (16,))
u = pk.Field(jnp.zeros(16), grid)
heat = pk.equations.Diffusion(0.1)
hsim = pk.Simulation(pk.RK4(heat), dt=1e-4)
decay = pk.Simulation(pk.RK4(lambda t, y: -y), dt=0.1)
stiffness = lambda m: pk.find(m, pk.HarmonicTrap).stiffness
dt = lambda m: m[0].dt
push = lambda force: pk.run(pk.Simulation(pk.VelocityVerlet(force), dt=0.1), atoms, 1)
far_bond = pk.HarmonicBonds([[0, 99]], stiffness=1.0, length=1.0)
nobody = pk.Particles(jnp.zeros((0, 3)), space=box)
"""

# A wrong call | what its error says, as a part of the text.
WRONG = r"""
pk.reactions.Populations({"X": 10}) | counts are a list, in the order
pk.Box() | needs lengths
pk.Box(8.0) | one length per axis
pk.Box(8.0, 8.0, 8.0) | one length per axis
pk.Box([8.0, 0.0]) | must be positive; got [8., 0.]
pk.Box(["a", "b"]) | must be a number or an array
pk.Box([8, 8], pbc=True) | did you mean periodic=
pk.Box(L=[8, 8]) | did you mean lengths=
pk.Box([8, 8], periodic=1) | one of these per axis
pk.Box([8, 8], periodic="xy") | one of these per axis
pk.Box([1j, 2]) | real numbers
pk.Box([[8, 0], [1, 8]]) | Triclinic(vectors)
pk.Box.cube("a") | must be a number
pk.Free(3) | Free: comm must be
pk.Grid(64) | needs shape
pk.Grid((64, 64), [1.0, 1.0]) | lengths come first
pk.Grid([1.0], (16.5,)) | whole numbers
pk.Grid([1.0], "16") | whole numbers
pk.Grid([1.0], cells=(16,)) | did you mean shape=
pk.Grid(pk.Free(), (16,)) | a grid fills a Box
pk.Particles() | needs position
pk.Particles([0.0, 1.0, 2.0]) | positions[:, None]
pk.Particles(jnp.zeros((3, 10))) | transpose
pk.Particles("x") | position must be numbers
pk.Particles([[0.0, 1j]]) | position must be real
pk.Particles([[0.0, 0.0], [1.0]]) | rows of equal length
pk.Particles(X, mass=[1.0, 2.0]) | mass must have shape (4,)
pk.Particles(X, mass=None) | mass must be numbers
pk.Particles(X, mass="1") | mass must be numbers
pk.Particles(X, masses=1.0) | did you mean mass=
pk.Particles(positions=X) | did you mean position=
pk.Particles(X, box=box) | did you mean space=
pk.Particles(X, space=[1.0, 1.0, 1.0]) | space must be an AbstractSpace
pk.Particles(X, space=pk.Free) | write Free(…)
pk.Particles(X, species=["Ar", 1, 1, 1]) | species must be numbers
pk.Particles(X, species=["Ar"] * 3) | species must have shape (4,)
pk.Particles(X, species=["Ar"] * 4, species_names=["Ne"]) | not among species_names
pk.Particles(X, species=[0, 1, 0, 1], species_names=["Ne"]) | species 1 has no name
pk.Particles(atoms) | position must be numbers; got a Particles
atoms.positions | did you mean 'position'
atoms.v | did you mean 'velocity'
u.values | did you mean 'data'
grid.dx | did you mean 'spacing'
sim.run(atoms, 10) | pk.run(simulation, state, steps)
sim.dt = 0.1 | Modules never change
atoms.position = X | replace(position=…)
pk.lattice.fcc(4, 0.8) | available:
pk.lattice.face_centered_cubic((2, 2, 2), rho=0.8) | did you mean density=
pk.maxwell_boltzmann(atoms, temperature=1.0) | needs particles
pk.maxwell_boltzmann("seed", atoms, temperature=1.0) | key is a whole number
pk.maxwell_boltzmann(0, atoms, T=1.0) | did you mean temperature=
pk.maxwell_boltzmann(0, X, temperature=1.0) | (Particles or RigidBodies)
pk.remove_drift(X) | (Particles or RigidBodies)
pk.minimize(atoms, force) | particles are the state
pk.minimize(lj, atoms) | Pairwise(LennardJones(…), cutoff=…)
pk.Pairwise(cutoff=2.5) | needs potential
pk.Pairwise(pk.LennardJones, cutoff=2.5) | write LennardJones(…)
pk.Pairwise(force, cutoff=2.5) | potential must be an AbstractPairPotential
pk.Pairwise(lambda r: r**2, cutoff=2.5) | a class with energy(self, r)
pk.Pairwise(lj, rcut=2.5) | did you mean cutoff=
pk.Pairwise(lj, cutoff="2.5") | cutoff must be a number
pk.Pairwise(lj, cutoff=[2.5]) | cutoff must be a number
pk.Pairwise(lj, cutoff=-2.5) | positive length
pk.LennardJones(eps=1.0) | did you mean epsilon=
pk.LennardJones(1.0, 1.0, 2.5) | nothing is called for 2.5
pk.LennardJones(sigma=[1.0]) | sigma must be
pk.HarmonicTrap(k=1.0) | did you mean stiffness=
pk.HarmonicTrap("1") | HarmonicTrap: stiffness: a parameter must be a number
pk.UniformAcceleration(9.81) | shape [d]
pk.HarmonicBonds([[0, 1]], k=1.0, length=1.0) | did you mean stiffness=
pk.ExternalForce(3.0) | function must be a function
trap + lj | Pairwise(LennardJones(…), cutoff=…)
trap + (lambda t, p: p.position) | ExternalForce
trap * 2 | scale its parameters
trap - trap | terms add
heat + heat | RK4(a, b)
pk.ParticleMesh((16, 16)) | grid must be
pk.VelocityVerlet() | needs force
pk.VelocityVerlet(lj) | Pairwise(LennardJones(…), cutoff=…)
pk.VelocityVerlet(pk.HarmonicTrap) | write HarmonicTrap(…)
pk.VelocityVerlet(force, dt=0.01) | Simulation(integrator, dt=…)
pk.VelocityVerlet(lambda t, x: -x) | ExternalForce
pk.VelocityVerlet([trap, trap]) | forces add
pk.RK4(lambda y, t: -y) | the time first
pk.equations.KuramotoSivashinsky(form="hight") | form is "slope" or "height"
push(pk.ExternalForce(lambda p: -p.position)) | called as function(t, particles)
pk.DirectGravity(1.0, softening=-0.1) | softening must not be negative
pk.VelocityVerlet(trap, force) | forces are summed: a + b
pk.VelocityVerlet(heat) | RK4(Diffusion(…))
pk.BAOAB(force, kT=1.0, friction=1.0) | did you mean temperature=
pk.BAOAB(force, temperature=1.0, gamma=1.0) | did you mean friction=
pk.Brownian() | needs force
pk.Brownian(temperature=1.0, friction=1.0) | needs force
pk.Brownian(force, temperature="hot", friction=1.0) | Brownian: temperature
pk.NoseHooverChain(force, temperature=1.0, tau=0.1) | did you mean period=
pk.RK4(trap) | EquationsOfMotion
pk.RK4(pk.equations.Diffusion) | is a class
pk.RK4(3.0) | must be
pk.RK4([heat, heat]) | must be
pk.Strang(trap, heat) | composes two or more integrators
pk.Subcycle(10, verlet) | integrator must be
pk.CFLSubsteps(hsim) | integrator must be
pk.SplitStep() | needs equation
pk.Simulation(verlet) | needs dt
pk.Simulation(pk.VelocityVerlet, dt=0.01) | write VelocityVerlet(…)
pk.Simulation(force, dt=0.01) | integrator must be an AbstractIntegrator
pk.Simulation(verlet, dt=0) | must be positive
pk.Simulation(verlet, dt=-0.01) | got dt = -0.01
pk.Simulation(verlet, dt="0.01") | Simulation: dt: a parameter must be a number
pk.Simulation(verlet, dt=[0.01, 0.02]) | dt must be one real number
pk.Simulation(verlet, dt=None) | dt must be one real number
pk.Simulation(verlet, dt=np.inf) | positive and finite
pk.Simulation(verlet, timestep=0.01) | did you mean dt=
pk.Simulation(verlet, 0.01, observer=[]) | did you mean observers=
pk.Simulation(verlet, 0.01, observers=pk.TotalEnergy()) | observers=[Every(
pk.Simulation(verlet, 0.01, observers={"energy": pk.TotalEnergy()}) | observers=[Every(
pk.Simulation(verlet, 0.01, observers=[pk.TotalEnergy]) | Every(10, name=quantity)
pk.Simulation(verlet, 0.01, observers=None) | observers=[Every(
pk.Simulation(verlet, 0.01, adjoint=pk.Reversible) | Reversible
pk.run(atoms, sim, 10) | the simulation comes first
pk.run(sim, 10, atoms) | the state comes second
pk.run(sim, atoms) | needs steps
pk.run(verlet, atoms, 10) | Simulation(VelocityVerlet(…), dt=…)
pk.run(force, atoms, 10) | an integrator and a time step
pk.run(sim, atoms, 10.5) | whole number
pk.run(sim, atoms, "10") | whole number
pk.run(sim, atoms, True) | whole number
pk.run(sim, atoms, t_end=1.0) | steps · dt
pk.run(sim, atoms, n_steps=10) | did you mean steps=
pk.run(sim, atoms, 10, seed=0) | did you mean key=
pk.run(sim, atoms, 10, 0) | nothing is called for 0
pk.run(sim, atoms, 10, key="a") | key is a whole number
pk.run(sim, atoms, 10, key=jax.random.split(jax.random.key(0))) | one key is needed
pk.run(sim, atoms, 10, to=5) | to must be a string or a path
pk.run(sim, atoms, 10, devices="tpu") | JAX finds no tpu
pk.run(sim, None, 10) | the state is None
pk.run(sim, "atoms", 10) | a state is
pk.run(sim, pk.Particles, 10) | the class Particles
pk.run(sim, {}, 10) | the state is empty
pk.simulate(sim, X, 10) | acts on particles
pk.simulate(sim, u, 10) | acts on particles
pk.simulate(sim, {"atoms": atoms}, 10) | component=
pk.simulate(hsim, atoms, 10) | moves a field
pk.simulate(decay, "a", 10) | a state is
pk.simulate(decay, jnp.array([1, 2]), 10) | made of floats
pk.simulate(pk.Simulation(pk.BAOAB(trap, 1.0, 1.0), 0.01), atoms, 10) | give a key
pk.simulate(pk.Simulation(pk.RK4(lambda y: -y), 0.1), 1.0, 10) | function(t, state)
pk.simulate(pk.Simulation(pk.RK4(lambda t, y: None), 0.1), 1.0, 10) | return missing
pk.simulate(pk.Simulation(pk.RK4(lambda t, y: "a"), 0.1), 1.0, 10) | returns numbers
pk.simulate(pk.Simulation(pk.RK4(lambda t, y: np.sin(y)), 0.1), 1.0, 10) | jnp.sin for np.sin
pk.simulate(pk.Simulation(pk.RK4(lambda t, y: y if y > 0 else -y), 0.1), 1.0, 10) | jnp.where
pk.init(atoms, sim) | the simulation comes first
jax.grad(lambda x: pk.run(decay, x, 10).state)(1.0) | use pk.simulate
jax.jit(lambda n: pk.simulate(decay, 1.0, n).state)(10) | static_argnums
pk.Field(grid, jnp.zeros(16)) | grid must be a Grid
pk.Field(lambda x: x, grid) | Field.from_function
pk.Field(jnp.zeros(15), grid) | the last axes of data
pk.Field(jnp.zeros(16), grid, bc=None) | did you mean boundary=
pk.Field(jnp.zeros(16), grid, location="center") | location must be
pk.Field.from_function(lambda x: x, grid) | grid must be a Grid
pk.Field.from_function(grid, lambda x, y: x) | function(x)
pk.Field.from_function(grid, 1.0) | function(x)
pk.operators.laplacian(jnp.zeros(16)) | must be
pk.operators.laplacian(u, scheme="spectral") | pk.schemes.Spectral()
pk.equations.Diffusion() | needs diffusivity
pk.equations.Diffusion(nu=0.1) | did you mean diffusivity=
pk.equations.Diffusion(0.1, scheme="spectral") | pk.schemes.Spectral()
pk.equations.Diffusion(0.1, pk.schemes.Spectral) | component must be a string
pk.equations.NavierStokes(Re=100) | Reynolds
pk.equations.CompressibleEuler(1.4, riemann="hllc") | pk.riemann.HLLC()
pk.equations.Wave(c=1.0) | did you mean speed=
pk.Every(10) | something to record
pk.Every(10, pk.TotalEnergy()) | nothing is called for a TotalEnergy
pk.Every(2.5, energy=pk.TotalEnergy()) | counts steps
pk.Every(10, energy=pk.TotalEnergy) | did you mean TotalEnergy()
pk.Every(10, energy=trap) | not a quantity
pk.simulate(pk.Simulation(verlet, 0.01, pk.Every(1, x=lambda now: now.position)), atoms, 1) | .state.position
pk.simulate(pk.Simulation(verlet, 0.01, pk.Every(1, x=lambda t, s: s)), atoms, 1) | function(snapshot)
pk.simulate(pk.Simulation(verlet, 0.01, pk.Every(1, x=lambda now: None)), atoms, 1) | returns numbers
pk.simulate(pk.Simulation(verlet, 0.01, pk.Every(1, x=pk.Positions("ions"))), atoms, 1) | no component 'ions'
pk.simulate(pk.Simulation(verlet, 0.01, pk.Every(1, x=pk.FieldValues())), atoms, 1) | about a field
pk.RadialDistribution(10) | needs r_max
pk.RadialDistribution(10, rmax=3.0) | did you mean r_max=
pk.MeanSquareDisplacement(10, max_lag=100) | did you mean lags=
pk.Guard(10, True) | holds must be
pk.Temperature(10) | component must be a string
pk.fit(lambda m: 0.0, sim) | needs where
pk.fit(lambda m: 0.0, sim, where="stiffness") | where is a function
pk.fit(lambda m: 0.0, sim, where=lambda m: None) | where selects nothing
pk.fit(lambda m: 0.0, sim, where=stiffness, lr=0.1) | the learning rate
pk.fit(stiffness, sim, where=stiffness, method="adam") | method is an object
pk.fit(3.0, sim, where=stiffness) | objective
pk.find(sim, pk.Pairwise) | no part of the model is a Pairwise
pk.sweep(sim, atoms, 10) | takes
pk.sweep((sim, atoms)) | steps are missing
pk.sweep((sim, atoms), 10, over={"dt": [0.1]}) | SweepAxis(where, values)
pk.sweep((sim, atoms), 10, n_workers=4) | did you mean engine=
pk.SweepAxis(0.1) | needs values
pk.LocalWorkers("4") | workers must be a whole number from 1
pk.SlurmArray(hours=1) | minutes
pk.open(5) | path must be a string or a path
pk.open("nowhere") | nowhere
pk.export(sim, "a.xyz") | must be a string or a path
pk.save_checkpoint(atoms, "a") | must be a string or a path
pk.Checkpoints("a", every="5 min") | did you mean
pk.plot.field(atoms) | must be a Field
pk.plot.series() | needs times and values
pk.plot.show() | available:
pk.adjoints.Binomial() | needs checkpoints
pk.adjoints.NestedCheckpoint(levels=3) | has no argument 'levels'
pk.adjoint_report(sim) | needs carry_or_state and steps
pk.simulate(pk.Simulation(pk.RK4(heat), 1e-4, adjoint=pk.Reversible()), u, 1) | cannot be taken back
pk.diagnose(sim) | diagnose needs
pk.deposit(atoms, grid) | needs
pk.AbstractForce() | is abstract
pk.minimize(force, X) | acts on particles
pk.minimize(force, u) | acts on particles
pk.minimize(force, [[0.0, 0.0, 0.0], [1.2, 0.0, 0.0]]) | acts on particles
pk.minimize(force, nobody) | there are no particles
pk.simulate(pk.Simulation(pk.VelocityVerlet(force), 0.01), nobody, 2) | there are no particles
pk.run(pk.Simulation(pk.VelocityVerlet(force), 0.01), nobody, 2) | there are no particles
lj + lj | Pairwise(a, cutoff=…) + Pairwise(b, cutoff=…)
1.0 + lj | add forces
2 * lj | scale a parameter
lj(1.5) | energy(r)
force(atoms) | Pairwise needs state and cache
force.energy(X) | Pairwise.energy needs state
trap.force(atoms) | HarmonicTrap.force needs state
heat(u) | Diffusion needs state and cache
heat.rate(u) | Diffusion.rate needs state
heat(0.0, u, None) | clock must be a Clock
verlet.step(atoms, 0.01) | VelocityVerlet.step needs
u + "a" | numbers, arrays and fields
"a" + u | numbers, arrays and fields
u * None | numbers, arrays and fields
u + [1.0] | numbers, arrays and fields
u + atoms | got a Particles
u ** "2" | numbers, arrays and fields
u + jnp.zeros(15) | do not fit
u @ u | (a * b).integral()
float(u) | field.mean()
int(u) | field.mean()
u[0] = 1.0 | x.replace(data=x.data.at[i].set(value))
atoms[0] = 1.0 | x.replace(position=x.position.at[i].set(value))
del atoms.position | Modules never change
pk.stack([u, 1.0]) | got 1.0 among them
pk.stack([]) | an empty list
pk.stack(u) | takes a list of fields
pk.stack(1.0) | takes a list of fields
pk.testing.check_force(force) | needs state
pk.testing.check_force(atoms, force) | got a Particles
pk.testing.check_force(lj, atoms) | check_potential
pk.testing.check_force(heat, u) | check_tendency
pk.testing.check_potential(lj) | needs radii
pk.testing.check_integrator(verlet, atoms) | needs dt
pk.testing.check_simulation(sim, atoms) | needs steps
pk.testing.check_gradient(sim, atoms) | function
pk.testing.check_tendency(force, atoms) | check_force
pk.plot.series("a", "b") | values must be numbers; got 'b'
pk.plot.fit([1.0], [1.0], [1.0], [1.0], axes=object()) | two axes, for curves and residuals; got 1
pk.plot.particles(u) | no particles
pk.plot.particles(X) | no particles
pk.Pairwise(lj, cutoff=2.5, capacity=0) | whole number from 1
pk.Pairwise(lj, cutoff=2.5, capacity=2.5) | whole number from 1
pk.LennardJones(epsilon=-1.0) | epsilon must not be negative
pk.LennardJones(sigma=[[1.0, -1.0], [-1.0, 1.0]]) | sigma must not be negative
pk.potentials.WCA(sigma=-1.0) | sigma must not be negative
pk.potentials.SoftSphere(exponent=-2.0) | exponent must be positive
pk.potentials.Morse(steepness=0.0) | steepness must be positive
pk.potentials.Yukawa(length=-1.0) | length must be positive
pk.Coulomb(screening=-1.0) | screening must be positive
pk.potentials.Buckingham(1.0, length=0.0, dispersion=1.0) | length must be positive
pk.HarmonicBonds([[0, 1]], stiffness=-1.0, length=1.0) | stiffness must not be negative
pk.init(pk.Simulation(pk.VelocityVerlet(far_bond), 0.01), atoms) | bonds name particle 99
pk.LennardJones(epsilon=1e-50) | LennardJones: epsilon: a parameter of 1e-50 becomes 0 in float32
pk.LennardJones(sigma=1e50) | becomes infinite in float32
pk.HarmonicTrap(np.full(3, 1e-40)) | becomes 0 in float32
pk.potentials.Buckingham(2e-16, 3.6e-11, 2.8e-77) | dispersion: a parameter of 2.8e-77 becomes 0 in float32
pk.Particles(X, mass=1e-50) | mass of 1e-50 becomes 0 in float32
pk.Particles(X, mass=np.full(4, 1e-50)) | mass of 1e-50 becomes 0
pk.systems.kepler(eccentricity=1.5) | below 1
pk.systems.kepler(eccentricity="a") | eccentricity must be a number
pk.systems.kepler(steps_per_orbit=0) | whole number from 1
pk.systems.kepler(mass=-1.0) | has no argument 'mass'
pk.systems.figure_eight(-400) | whole number from 1
pk.systems.lennard_jones_box(density=-0.7) | density must be positive
pk.systems.lennard_jones_box(cells=0) | cells must be a whole number
pk.systems.lennard_jones_box(temperature=-1.0) | temperature must not be negative
pk.systems.giant_planets(mass=-1.0) | mass must be positive
pk.systems.gray_scott(dt=0.0) | dt must be positive
pk.systems.gray_scott(cells=64) | cells is a tuple of 2 values
pk.systems.convection_cell(rayleigh=-1.0) | rayleigh must be positive
pk.systems.plasma_wave(wavenumber=0.0) | wavenumber must be positive
pk.systems.weibel_instability(speed=1.5) | slower than light
pk.systems.lorenz(dt=-0.01) | dt must be positive
pk.systems.taylor_green_2d(viscosity=-0.1) | viscosity must not be negative
pk.systems.taylor_green_2d(resolution=16.5) | whole number from 1
pk.systems.sod(cells="256") | whole number from 1
pk.systems.tunneling(length=np.nan) | length must be finite
force(pk.core.Clock.at(pk.core.StepCount.of(0), 0.0, 0.1), atoms, None) | init makes it, force.init(state)
class Own(pk.AbstractPairPotential): pass; Own() | `energy(self, r)`
class Own(pk.LennardJones): pass | which is final
"""

# What works | what must be true of it (`it`); the first warning, if any, must say so.
RIGHT = r"""
pk.Box(np.eye(3) * 8) | it.lengths.tolist() == [8, 8, 8]
pk.Box((8, 8), periodic=np.array([True, False])) | it.periodic == (True, False)
pk.Grid(1.0, 16) | it.shape == (16,)
pk.Grid([1.0], (np.int64(16),)) | it.shape == (16,)
pk.Particles([[0, 0], [1, 1]]) | it.position.dtype == jnp.float32
sum([trap, trap]) | len(it.terms) == 2
pk.Every(np.int64(10), e=pk.TotalEnergy()) | it.interval == 10
pk.Every(10.0, e=pk.TotalEnergy()) | it.interval == 10
pk.maxwell_boltzmann(0, atoms, temperature=1.0) | it.velocity.shape == (4, 3)
pk.init(decay, 1) | it.state.dtype == jnp.float32
pk.init(decay, [1.0, 2]) | it.state.tolist() == [1.0, 2.0]
pk.init(decay, (1.0, 2.0)) | it.state.tolist() == [1.0, 2.0]
pk.init(sim, atoms, key=0) | it.key == jax.random.key(0)
pk.init(sim, atoms, key=jax.random.PRNGKey(0)) | it.key.shape == (2,)
pk.HarmonicTrap(-1.0) | it.stiffness == -1
pk.LennardJones(sigma=[[1.0, 0.0], [0.0, 0.0]]) | it.sigma.shape == (2, 2)
jax.jit(lambda e: pk.LennardJones(epsilon=e).energy(1.0))(-1.0) | it == 0
pk.potentials.Buckingham(1e-20, 1e-6, 1e-37).force_over_distance(jnp.array(1e-12)) | -1e12 < it < -5e10
pk.systems.lennard_jones_box(cells=2, cutoff=1.5, key=0)[1] | it.num_particles == 32
pk.simulate(decay, 1.0, 10.0) | abs(float(it.state) - np.exp(-1)) < 1e-5
"""
