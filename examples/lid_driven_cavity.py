"""A lid-driven cavity at Re = 100: streamlines, and the profile beside the points of Ghia et al., 1982."""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit.systems import CAVITY_PROFILE, lid_driven_cavity

pk.use_compilation_cache()

CELLS, END = (16, 4.0) if "PHYSKIT_QUICK" in os.environ else (64, 15.0)
simulation, start = lid_driven_cavity(CELLS)
flow = pk.run(simulation, start, int(END / float(simulation.dt)), progress=False).carry.state

centers = (np.arange(CELLS) + 0.5) / CELLS
u, v = (np.asarray(part.data).T for part in flow.cell_velocity())
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.3), layout="constrained")
image = left.pcolormesh(centers, centers, np.hypot(u, v), cmap="Blues", vmax=0.7)
left.streamplot(centers, centers, u, v, color="k", density=1.6, linewidth=0.6, arrowsize=0.7)
left.set(title="streamlines", xlabel="x", ylabel="y", aspect="equal", xlim=(0, 1), ylim=(0, 1))
fig.colorbar(image, ax=left, label="speed, of the lid's")

y, table = CAVITY_PROFILE
profile = np.asarray(flow.velocity_x.data)[CELLS // 2]
right.plot([0, *profile, 1], [0, *centers, 1], color="#1d4e89", label=f"{CELLS}² cells")
right.plot(table, y, "o", color="#c1121f", ms=4, label="Ghia, Ghia & Shin 1982")
right.set(title="u at x = ½", xlabel="u", ylabel="y")
right.legend(frameon=False)
fig.savefig("lid_driven_cavity.png", dpi=130)
