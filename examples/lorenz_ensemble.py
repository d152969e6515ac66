"""Ten thousand Lorenz systems by `vmap`: how long does a forecast stay accurate?

All start within 10⁻³ of one another. They stay together for some ten time units, then fill the
attractor.
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt

import physkit as pk

pk.use_compilation_cache()

# Starts that no measurement would tell apart.
members = 1_000 if "PHYSKIT_QUICK" in os.environ else 10_000
simulation, _ = pk.systems.lorenz()
center = jnp.array([-5.9, -5.5, 24.0])
starts = center + 1e-3 * jax.random.normal(jax.random.key(0), (members, 3))


# `simulate` is a pure function of one start; `vmap` makes it one of all.
@jax.jit
@jax.vmap
def forecast(start):
    return pk.simulate(simulation, start, steps=2_000).frames["position"]


path = forecast(starts)  # [members, time, 3]

fig, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharex=True, sharey=True, layout="constrained")
for ax, step in zip(axes, (0, 1_000, 1_400, 2_000), strict=True):
    ax.plot(path[0, :, 0], path[0, :, 2], color="#ced4da", lw=0.5, zorder=0)
    ax.scatter(path[:, step, 0], path[:, step, 2], s=2 if step else 20, color="#c1121f", lw=0)
    ax.set(title=f"t = {0.01 * step:g}", xlabel="x")
axes[0].set_ylabel("z")
fig.savefig("lorenz_ensemble.png", dpi=150)
