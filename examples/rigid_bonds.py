"""Chains of three atoms with rigid bonds, or with stiff springs: the angle between the bonds differs."""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

n = 500 if "PHYSKIT_QUICK" in os.environ else 10_000
rng = np.random.default_rng(0)
bonds = rng.normal(size=(n, 2, 3))
bonds /= np.linalg.norm(bonds, axis=2, keepdims=True)
x = np.stack([bonds[:, 0], np.zeros((n, 3)), bonds[:, 1]], axis=1).reshape(-1, 3)
middle = 3 * np.arange(n) + 1
pairs = np.concatenate([np.stack([middle, middle + side], axis=1) for side in (-1, 1)])


def cosines(now):
    ends = now.state.position.reshape(-1, 3, 3)
    a, b = ends[:, 0] - ends[:, 1], ends[:, 2] - ends[:, 1]
    return jnp.sum(a * b, axis=1) / jnp.linalg.norm(a, axis=1) / jnp.linalg.norm(b, axis=1)


def sample(force, dt, constraints=None):
    """cos θ of all chains, every time unit."""
    chains = pk.Particles(x, constraints=constraints)
    thermostat = pk.BAOAB(force, temperature=1.0, friction=1.0)
    every = round(1 / dt)
    simulation = pk.Simulation(thermostat, dt=dt, observers=pk.Every(every, c=cosines))
    run = pk.run(simulation, chains, steps=20 * every, key=jax.random.key(1))
    return run["c"][5:].ravel()


rigid = sample(pk.HarmonicTrap(0.0), 0.1, pk.DistanceConstraints(pairs, 1.0))
springs = sample(pk.HarmonicBonds(pairs, 500.0, 1.0), 0.02)

c = np.linspace(-1, 1, 201)
fixman = np.sqrt(4 - c**2)
fixman /= np.trapezoid(fixman, c)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for values, color, label in (
    (springs, "#f4a261", "stiff springs"),
    (rigid, "#2a9d8f", "rigid bonds"),
):
    density, edges = np.histogram(values, bins=25, range=(-1, 1), density=True)
    ax.stairs(density, edges, color=color, lw=2, label=label)
ax.plot(
    c, fixman, color="#1d3557", ls="--", label=r"$\propto\sqrt{4 - \cos^2\theta}$ (Fixman 1974)"
)
ax.axhline(0.5, color="#9c4a00", ls=":", label="uniform")
ax.set(xlabel="cos θ", ylabel="probability density", ylim=(0.4, 0.56))
ax.set_title("Rigid bonds are not the limit of stiff ones")
ax.legend(frameon=False, ncols=2)
fig.savefig("rigid_bonds.png", dpi=150)
