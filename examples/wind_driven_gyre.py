"""A wind-driven gyre and its western boundary current, against Stommel's closed form of 1948."""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit.systems import stommel_gyre, stommel_streamfunction, streamfunction

pk.use_compilation_cache()

CELLS, DAMPING_TIMES = (16, 4) if "PHYSKIT_QUICK" in os.environ else (48, 8)
simulation, water = stommel_gyre(CELLS)
steps = int(DAMPING_TIMES / 2e-6 / float(simulation.dt))
water = pk.run(simulation, water, steps, progress=False).carry.state

psi = streamfunction(water)
x, y = psi.coordinates
exact = stommel_streamfunction(x, y)
km = np.asarray(x[:, 0]) / 1e3, np.asarray(y[0]) / 1e3

fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
levels = np.linspace(0, 320, 9)
for ax, values, title in zip(axes, (psi.data, exact), ("simulated", "Stommel 1948"), strict=False):
    image = ax.contourf(*km, np.asarray(values).T, levels, cmap="Blues", extend="max")
    ax.contour(*km, np.asarray(values).T, levels[1:], colors="k", linewidths=0.6)
    ax.set(title=title, xlabel="x / km", ylabel="y / km", aspect="equal")
fig.colorbar(image, ax=axes[1], label="streamfunction ψ / m² s⁻¹")

middle = CELLS // 2
axes[2].plot(km[0], exact[:, middle], color="k", lw=1, label="Stommel 1948")
axes[2].plot(km[0], psi.data[:, middle], ".", color="#c1121f", label="simulated")
axes[2].set(title="half-way north", xlabel="x / km", ylabel="ψ / m² s⁻¹")
axes[2].legend(frameon=False)
fig.savefig("wind_driven_gyre.png", dpi=130)
