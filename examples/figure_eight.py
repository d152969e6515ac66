"""Three bodies chase one another along a figure of eight (Chenciner & Montgomery, 2000)."""

import jax
import matplotlib.pyplot as plt

import physkit as pk

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

simulation, bodies = pk.systems.figure_eight(steps_per_period=400)
run = pk.run(simulation, bodies, steps=400, progress=False)
path = run["position"]
print(f"after one period they are back to {abs(path[-1] - path[0]).max():.1e}")

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(*path[:, 0].T, color="#ced4da", lw=1, zorder=0)
for body, color in enumerate(("#c1121f", "#2a9d8f", "#1d3557")):
    tail = path[20:100, body]
    ax.scatter(*tail.T, s=range(1, 81), color=color, lw=0)
    ax.plot(*tail[-1], "o", color=color, ms=11)
ax.set(aspect="equal", xlabel="x", ylabel="y", title="Three equal masses on one orbit")
fig.savefig("figure_eight.png", dpi=150)
