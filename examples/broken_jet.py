"""A jet on the rotating Earth breaks into eddies.

Galewsky's test of weather models: shallow water on the sphere, a narrow jet of 80 m/s over the middle
latitudes, in balance, and a low bump on it. For four days nothing is seen but gravity waves; on the sixth the
jet has rolled up.
"""

import os

import jax
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

# Spherical harmonics up to wavenumber 85, for six days.
truncation, days = (21, 1) if "PHYSKIT_QUICK" in os.environ else (85, 6)
simulation, start = pk.systems.barotropic_jet(truncation, every=48 * truncation // 85)
steps_a_day = 4 * simulation.observers[0].interval
run = pk.run(simulation, start, days * steps_a_day, progress=False)

# Mass is conserved to rounding; a little energy is lost with the smallest waves.
law = pk.find(simulation, pk.equations.SphericalShallowWater)
mass, end = np.asarray(run["mass"])[:, 2], run.state
energy = jax.jit(lambda flow: law.energy(flow))
print(
    f"mass changes by {np.ptp(mass) / mass[0]:.1e}, energy by {energy(end) / energy(start) - 1:.1e}"
)

# The globe on three days, and the last of them as a map.
fig = plt.figure(figsize=(12, 6.6), layout="constrained")
top, bottom = fig.subfigures(2, 1, height_ratios=[1.5, 1])
frames = np.linspace(max(1, len(run["flow"]) // 2), len(run["flow"]) - 1, 3).astype(int)
for ax, frame in zip(top.subplots(1, 3), frames, strict=True):
    vorticity = end.with_values(1e5 * run["flow"][frame][0])
    pk.plot.globe(vorticity, longitude=-90, latitude=50, limits=(-10, 10), ax=ax, bar=False)
    ax.set_title(f"day {run.times['flow'][frame] / 86400:.1f}")
ax = bottom.subplots()
pk.plot.field(end.with_values(1e5 * end.data[0]), ax=ax, limits=(-10, 10), bar=False)
ax.set(ylim=(10, 80), title="vorticity at the end", aspect="auto")
bottom.colorbar(ax.images[0], ax=ax, label="10$^{-5}$ / s")
fig.savefig("broken_jet.png", dpi=130)
