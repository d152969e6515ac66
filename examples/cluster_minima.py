"""The lowest minima of Lennard-Jones clusters, by basin hopping: many searches in one sweep."""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import sampling

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
# Atoms: the radius of the wall, steps, searches, and the lowest energy that is known.
CLUSTERS = {13: (2.3, 40, 8, -44.326801), 38: (3.2, 500, 12, -173.928427)}
if QUICK:
    CLUSTERS = {13: (2.3, 20, 4, -44.326801)}


def wall(t, particles, radius):
    """Keeps atoms from evaporating: nothing inside of the radius about the center."""
    x = particles.position
    square = jnp.sum((x - x.mean(axis=0, keepdims=True)) ** 2, axis=1)
    return jnp.sum(jnp.maximum(square - radius**2, 0) ** 2)


def ball(rng, atoms, radius):
    x = rng.normal(size=(atoms, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return pk.Particles(0.8 * radius * x * rng.uniform(size=(atoms, 1)) ** (1 / 3))


rng = np.random.default_rng(0)
fig = plt.figure(figsize=(5.2 * len(CLUSTERS), 7.5), layout="constrained")
for column, (atoms, (radius, steps, searches, known)) in enumerate(CLUSTERS.items()):
    force = pk.Pairwise(pk.LennardJones()) + pk.ExternalEnergy(wall, args=jnp.asarray(radius))
    search = pk.BasinHopping(force, temperature=0.8, displacement=0.4, allowed_force=1e-3)
    watch = (
        pk.Every(1, energy=sampling.LowestEnergy()),
        pk.Every(steps, x=sampling.LowestPositions()),
    )
    simulation = pk.Simulation(search, dt=1.0, observers=watch)
    starts = [ball(rng, atoms, radius) for _ in range(searches)]
    found = pk.sweep((simulation, starts[0]), steps, over=pk.SweepAxis("state", starts), key=1)

    energy = np.asarray(found["energy"])
    best = int(energy[:, -1].argmin())
    print(f"{atoms} atoms: {energy[best, -1]:.6f} ε, known {known}")

    top = fig.add_subplot(2, len(CLUSTERS), column + 1)
    top.plot(energy.T - known, lw=1, color="#1d3557", alpha=0.6)
    top.plot(energy[best] - known, lw=2, color="#c1121f")
    top.set(
        xscale="symlog", yscale="symlog", xlabel="steps", ylabel="lowest energy so far − known, ε"
    )
    lowest = f"{energy[best, -1]:.4f}".replace("-", "−")
    top.set_title(f"{atoms} atoms, {searches} searches: {lowest} ε")

    x = np.asarray(found["x"])[best, -1]
    x = x - x.mean(axis=0)
    r = np.linalg.norm(x[:, None] - x, axis=-1)
    bottom = fig.add_subplot(2, len(CLUSTERS), len(CLUSTERS) + column + 1, projection="3d")
    for a, b in zip(*np.where(np.triu((r > 0) & (r < 1.3))), strict=True):
        bottom.plot(*x[[a, b]].T, color="0.6", lw=1, zorder=1)
    distance = np.linalg.norm(x, axis=1)
    bottom.scatter(*x.T, c=distance, s=180, cmap="viridis_r", edgecolor="k", depthshade=False)
    bottom.set_box_aspect((1, 1, 1), zoom=1.4)
    bottom.set_axis_off()
fig.savefig("cluster_minima.png", dpi=150)
