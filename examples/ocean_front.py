"""A front across a channel of the ocean breaks into eddies.

Eady's problem with walls: warm water lies beside cold, and a current that grows with height keeps the slope of
buoyancy in balance. Waves some four deformation radii long feed on it, near the rate of linear theory, and
roll up.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

cells, steps = ((16, 16, 4), 100) if "PHYSKIT_QUICK" in os.environ else ((48, 48, 8), 4800)
simulation, start = pk.systems.baroclinic_channel(cells, every=50)
run = pk.run(simulation, start, steps, progress=False)

buoyancy, times = np.asarray(run["buoyancy"]), np.asarray(run.times["kinetic"])
kinetic = np.asarray(run["kinetic"])
radius = float(start.buoyancy.grid.space.lengths[0]) / 6

fig, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained", width_ratios=[1, 1, 1, 1.1])
for ax, frame in zip(axes, (0.6, 0.8, 1.0), strict=False):
    index = int(frame * (len(buoyancy) - 1))
    image = ax.imshow(
        buoyancy[index].T, origin="lower", extent=(0, 6, 0, 6), cmap="RdYlBu_r",
        vmin=buoyancy[0].min(), vmax=buoyancy[0].max(), interpolation="bilinear",
    )  # fmt: skip
    ax.set(
        title=f"t = {times[index]:.0f} / f",
        xlabel="x f / NH",
        ylabel="y f / NH" if ax is axes[0] else "",
    )
fig.colorbar(image, ax=axes[2], label="buoyancy of the top layer / ($f^2 H$)")

# Eady's rate of the fastest wave along x that fits, with the half wave that walls allow across.
half = np.pi / 6
waves = 2 * np.pi / 6 * np.arange(1, 8)
mu = np.sqrt(waves**2 + half**2)
square = (1 / np.tanh(mu / 2) - mu / 2) * (mu / 2 - np.tanh(mu / 2))
rate = 0.1 * np.max(waves / mu * np.sqrt(np.maximum(square, 0)))  # f Λ/N = 0.1 f
axes[3].semilogy(times, kinetic, color="#1d4e89", label="eddies")
begin = int(0.4 * len(times))
axes[3].semilogy(
    times, kinetic[begin] * np.exp(2 * rate * (times - times[begin])), "k--",
    label=f"Eady's theory, σ = {rate:.4f} f",
)  # fmt: skip
axes[3].set(title="kinetic energy", xlabel="t f", ylim=(kinetic[1:].min() / 500, kinetic.max() * 3))
axes[3].legend(frameon=False, loc="lower right")
fig.savefig("ocean_front.png", dpi=130)
