"""A Taylor–Green vortex becomes turbulent: how fast energy is lost.

The higher the Reynolds number, the later the peak. Dots are −dE/dt of the energy that
is left, lines 2ν⟨½|ω|²⟩: the same, if nothing is lost to the grid.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
cells, steps = (16, 60) if quick else (40, 90)

with pk.plot.style():
    fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for reynolds, color in ((50, "#a8dadc"), (100, "#457b9d"), (200, "#1d3557")):
        simulation, start = pk.systems.taylor_green_3d(
            reynolds, resolution=cells, dt=12 / steps, every=1
        )
        frames = pk.run(simulation, start, steps=steps, progress=False).frames
        t = 12 / steps * np.arange(steps + 1)
        ax.plot(t, frames["dissipation"], color=color, label=f"Re = {reynolds}")
        lost = -np.gradient(np.asarray(frames["energy"], float), t)
        ax.plot(t[2:-2:4], lost[2:-2:4], "o", color=color, ms=4)
    ax.set(xlabel="t", ylabel="dissipation", xlim=(0, 12), ylim=(0, None))
    ax.legend(frameon=False)
    fig.savefig("taylor_green.png", dpi=130)
