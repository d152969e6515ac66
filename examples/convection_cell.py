"""Convection between a hot and a cold wall at Ra = 10⁵: isotherms, streamlines, and the Nusselt number."""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit.systems import CONVECTION_NUSSELT, convection_cell

pk.use_compilation_cache()

CELLS, END, RAYLEIGH = (16, 0.02, 1e4) if "PHYSKIT_QUICK" in os.environ else (48, 0.2, 1e5)
simulation, start = convection_cell(CELLS, rayleigh=RAYLEIGH, record=20)
steps = int(END / float(simulation.dt)) // 20 * 20
run = pk.run(simulation, start, steps, progress=False)
flow, heat = run.carry.state["flow"], run.carry.state["heat"]

centers = (np.arange(CELLS) + 0.5) / CELLS
u, v = (np.asarray(part.data).T for part in flow.cell_velocity())
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.3), layout="constrained")
temperature = np.asarray(heat.data).T
image = left.imshow(
    temperature, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=0, vmax=1,
    interpolation="bicubic",
)  # fmt: skip
left.contour(
    centers, centers, temperature, np.linspace(0.1, 0.9, 9), colors="white", linewidths=0.8
)
left.streamplot(centers, centers, u, v, color="k", density=1.2, linewidth=0.6, arrowsize=0.7)
power = chr(0x2074 + round(np.log10(RAYLEIGH)) - 4)
left.set(title=f"Ra = 10{power}", xlabel="x", ylabel="y", aspect="equal", xlim=(0, 1), ylim=(0, 1))
fig.colorbar(image, ax=left, label="temperature", ticks=[0, 0.5, 1])

nusselt = np.asarray(run.frames["nusselt"])
time = np.arange(len(nusselt)) * 20 * float(simulation.dt)
right.plot(time, nusselt, color="#1d4e89", label="hot wall")
right.axhline(CONVECTION_NUSSELT[RAYLEIGH], color="#c1121f", ls="--", label="de Vahl Davis 1983")
right.set(title="Nusselt number", xlabel="t / (L²/κ)", ylim=(0, None))
right.locator_params(axis="x", nbins=5)
right.legend(frameon=False)
fig.savefig("convection_cell.png", dpi=130)
