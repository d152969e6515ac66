"""Two kinds of particles: the Kob–Andersen mixture, which refuses to crystallize.

Per-species tables for ε and σ; particles of kind B attract kind A more than one another, so that no
two B touch (Kob & Andersen, Phys. Rev. E 51, 4626 (1995)).
"""

import os

import jax
import matplotlib.pyplot as plt

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
# To write such a mixture yourself: docs/recipes/mixtures.md.
simulation, crystal = pk.systems.kob_andersen(4 if quick else 6, temperature=0.6)
steps = 400 if quick else 4_000
liquid = pk.run(simulation, crystal, steps, key=jax.random.key(1)).state
run = pk.run(simulation, liquid, steps, key=jax.random.key(2))

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, color in zip(("AA", "AB", "BB"), ("#1d3557", "#2a9d8f", "#c1121f"), strict=True):
    ax.plot(run[name]["r"], run[name]["value"], color=color, label=name)
ax.set(xlabel="r / σ$_{AA}$", ylabel="g(r)", xlim=(0.6, 2.5), title="A surrounds B; B avoids B")
ax.legend(frameon=False)
fig.savefig("two_component.png", dpi=150)
