"""The free energy of a double well three ways: umbrella windows, metadynamics, and what it is."""

import os

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import sampling

pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
TEMPERATURE = 0.15


def well(x):
    return x**4 - 2 * x**2 + 0.3 * x


def energy(t, particles):
    return well(particles.position[0, 0])


def first(particles):
    return particles.position[0, 0]


x = sampling.CollectiveVariable(first)
start = pk.Particles(jnp.ones((1, 1)))

# Umbrella sampling: a spring in each of 17 windows, all of them members of one sweep.
centers, stiffness = np.linspace(-1.6, 1.6, 17), 12.0
springs = pk.ExternalEnergy(energy) + pk.HarmonicBias(x, stiffness)
windows = pk.Simulation(
    pk.BAOAB(springs, temperature=TEMPERATURE, friction=1.0),
    dt=0.05,
    observers=pk.Every(20, x=sampling.CollectiveVariables()),
)
over = pk.SweepAxis(lambda model: pk.find(model, pk.HarmonicBias).center, centers)
steps = 10_000 if QUICK else 60_000
samples = np.asarray(pk.sweep((windows, start), steps, over=over, key=0)["x"])[:, 100:]
found = pk.free_energies(sampling.umbrella_energies(samples, stiffness, centers), TEMPERATURE)
profile = found.profile(samples, np.linspace(-1.5, 1.5, 41), target=0.0)

# Metadynamics: hills fill the wells up until the particle crosses freely.
hills = pk.Metadynamics(
    pk.BAOAB(
        pk.ExternalEnergy(energy) + sampling.GridBias(x, -2.2, 2.2, nodes=111),
        temperature=TEMPERATURE,
        friction=1.0,
    ),
    height=0.03,
    width=0.15,
    bias_factor=8.0,
    interval=50,
)
watch = pk.Every(500, F=sampling.MetadynamicsFreeEnergy(), x=sampling.CollectiveVariables())
steps = 50_000 if QUICK else 400_000
run = pk.run(pk.Simulation(hills, dt=0.1, observers=watch), start, steps, key=0)
nodes = np.linspace(-2.2, 2.2, 111)
filled = np.asarray(run["F"])
later = filled[len(filled) // 2 :].mean(axis=0)

exact = well(nodes) - well(nodes).min()
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.plot(nodes, exact, color="#1d3557", lw=2, label="exact")
left.plot(nodes, later - later.min(), color="#fb8500", lw=1.5, label="metadynamics")
left.errorbar(
    profile.centers, profile.free_energy, 2 * profile.error, fmt="o", ms=3.5, color="#c1121f",
    label="umbrella windows, MBAR (2 σ)",
)  # fmt: skip
left.set(
    xlim=(-1.6, 1.6),
    ylim=(-0.1, 1.9),
    xlabel="x",
    ylabel="F(x)",
    title="Free energy of a double well",
)
left.legend(frameon=False)

colors = plt.get_cmap("viridis")
snapshots = [k for k in (2, 5, 10, 20, 40, 100) if k < len(filled)]
for number, k in enumerate(snapshots):
    # The bias itself, V = −(1 − 1/γ) F, up to a constant: zero where no hill has been.
    bias = filled[k].max() - filled[k]
    bias = (1 - 1 / 8.0) * bias
    right.plot(
        nodes,
        well(nodes) + bias,
        color=colors(number / len(snapshots)),
        lw=1.3,
        label=f"{10 * k} hills",
    )
right.plot(nodes, well(nodes), color="#1d3557", lw=2)
right.set(
    xlim=(-1.8, 1.8), ylim=(-1.5, 1.6), xlabel="x", ylabel="U + V", title="Wells that fill up"
)
right.legend(frameon=False, fontsize=8)
fig.savefig("double_well_free_energy.png", dpi=150)
