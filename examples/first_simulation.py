"""A Lennard-Jones crystal melts: energies every ten steps, the radial distribution of the liquid."""

import os

import jax

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ

position, box = pk.lattice.face_centered_cubic(cells=4 if quick else 6, density=0.8442)
atoms = pk.Particles(position, space=box)
atoms = pk.maxwell_boltzmann(jax.random.key(0), atoms, temperature=1.44)

force = pk.Pairwise(pk.LennardJones(epsilon=1.0, sigma=1.0), cutoff=2.5)
simulation = pk.Simulation(
    pk.VelocityVerlet(force),
    dt=0.004,
    observers=[
        pk.Every(10, energy=pk.TotalEnergy(), temperature=pk.Temperature()),
        pk.RadialDistribution(50, r_max=3.3 if quick else 5.0, bins=150),
    ],
)
liquid = pk.run(simulation, atoms, steps=500).state
run = pk.run(simulation, liquid, steps=500 if quick else 5_000)
print(run)

radial = run["radial_distribution"]
ax = pk.plot.radial_distribution(radial["r"], radial["value"], error=radial["error"], unit="σ")
ax.set_title(f"A Lennard-Jones liquid, T = {run['temperature'].mean():.2f}")
ax.figure.savefig("first_simulation.png", dpi=150)
