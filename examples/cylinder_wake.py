"""The wake of a cylinder in a channel at Re = 100: a vortex street, and the lift that it makes."""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit.systems import cylinder_in_channel

pk.use_compilation_cache()

CELLS, END = (16, 0.2) if "PHYSKIT_QUICK" in os.environ else (64, 7.0)
simulation, start = cylinder_in_channel(CELLS, reynolds=100.0, record=10)
steps = int(END / float(simulation.dt)) // 10 * 10
run = pk.run(simulation, start, steps, progress=False)
flow = run.carry.state

vorticity = np.asarray(flow.at_time(0.0).vorticity()[0].data)
x, y = np.linspace(0, 2.2, vorticity.shape[0]), np.linspace(0, 0.41, vorticity.shape[1])
fig, (top, bottom) = plt.subplots(2, 1, figsize=(9, 5), layout="constrained")
image = top.pcolormesh(x, y, vorticity.T, cmap="RdBu_r", vmin=-40, vmax=40, shading="gouraud")
top.add_patch(plt.Circle((0.2, 0.2), 0.05, color="0.4"))
top.set(title="vorticity", xlabel="x / m", ylabel="y / m", aspect="equal")
fig.colorbar(image, ax=top, label="1/s", shrink=0.7)

force = np.asarray(run.frames["force"]) * 2 / (1.0**2 * 0.1)
time = np.arange(len(force)) * 10 * float(simulation.dt)
bottom.plot(time[5:], force[5:, 0], color="#1d4e89", label="drag")
bottom.plot(time[5:], force[5:, 1], color="#c1121f", label="lift")
bottom.set(title="coefficients", xlabel="t / s", ylim=(-1.5, 4))
bottom.legend(frameon=False, ncols=2)
fig.savefig("cylinder_wake.png", dpi=130)
