"""A disk sinks in a box of fluid and stirs it: where it is, the vortices behind it, and how fast it gets."""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

CELLS, END = (24, 0.2) if "PHYSKIT_QUICK" in os.environ else (96, 0.75)
simulation, start = pk.systems.settling_disk(CELLS, record=10)
steps = int(END / float(simulation.dt)) // 10 * 10
run = pk.run(simulation, start, steps, progress=False)

time = np.asarray(run.frames["velocity"]).shape[0] * 10 * float(simulation.dt)
speed = -np.asarray(run.frames["velocity"])[:, 0, 1]
t = np.linspace(0, time, len(speed), endpoint=False)
flow, disk = run.state["flow"].at_time(0.0), run.state["disk"]
vorticity = np.asarray(flow.vorticity()[0].data)
u, v = (np.asarray(part.data) for part in flow.cell_velocity())

with pk.plot.style():
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(7.5, 5.2), layout="constrained", width_ratios=[1, 1.6]
    )
    x, y = np.linspace(0, 2, vorticity.shape[0]), np.linspace(0, 6, vorticity.shape[1])
    largest = 0.4 * np.max(np.abs(vorticity))
    image = left.pcolormesh(
        x, y, vorticity.T, cmap="RdBu_r", vmin=-largest, vmax=largest, shading="gouraud"
    )
    center = np.asarray(disk.position)[0, :2]
    left.add_patch(plt.Circle(center, 0.125, color="0.3"))
    left.set(
        title=f"vorticity at t = {t[-1]:.2f} s", xlabel="x / cm", ylabel="y / cm", aspect="equal"
    )
    fig.colorbar(image, ax=left, label="1/s", shrink=0.7)
    area, mass = np.pi * 0.125**2, float(disk.mass[0])
    free = 981.0 * (mass - area) / (mass + area) * t
    right.plot(t, speed, label="in the fluid")
    right.plot(t, free, "--", color="0.5", label="without friction: (m − ρV) g t/(m + ρV)")
    right.set(xlabel="t / s", ylabel="speed / cm s⁻¹", ylim=(0, 1.3 * speed.max()), title="speed")
    right.legend(loc="lower right")
    fig.savefig("sinking_disk.png", dpi=120)
# By the density of the disk, 1.25, as in the paper.
print(f"fastest: {speed.max():.3f} cm/s, Re = {1.25 * speed.max() * 0.25 / 0.1:.2f}")
