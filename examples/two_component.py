"""Two kinds of particles: the Kob–Andersen mixture, which refuses to crystallize.

Per-species tables for ε and σ; particles of kind B attract kind A more than one another, so that no
two B touch (Kob & Andersen, Phys. Rev. E 51, 4626 (1995)).
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
potential = pk.LennardJones(
    epsilon=[[1.0, 1.5], [1.5, 0.5]],
    sigma=[[1.0, 0.8], [0.8, 0.88]],
)
position, box = pk.lattice.simple_cubic(cells=6 if quick else 10, density=1.2)
n = len(position)
species = jax.random.permutation(jax.random.key(0), jnp.arange(n) >= 0.8 * n).astype(int)
mixture = pk.Particles(position, space=box, species=species)

force = pk.Pairwise(potential, cutoff=2.5)
kinds = {"AA": (0, 0), "AB": (0, 1), "BB": (1, 1)}
thermostat = pk.BAOAB(force, temperature=0.6, friction=1.0)
record = [
    pk.RadialDistribution(20, r_max=2.6, bins=130, species=pair, name=name)
    for name, pair in kinds.items()
]
steps = 400 if quick else 4_000
liquid = pk.run(pk.Simulation(thermostat, dt=0.004), mixture, steps, key=jax.random.key(1)).state
run = pk.run(pk.Simulation(thermostat, 0.004, record), liquid, steps, key=jax.random.key(2))

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, color in zip(kinds, ("#1d3557", "#2a9d8f", "#c1121f"), strict=True):
    ax.plot(run[name]["r"], run[name]["value"], color=color, label=name)
ax.set(xlabel="r / σ$_{AA}$", ylabel="g(r)", xlim=(0.6, 2.6), title="A surrounds B; B avoids B")
ax.legend(frameon=False)
fig.savefig("two_component.png", dpi=150)
