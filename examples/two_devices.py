"""One domain over two devices: a wave crosses the border between them.

Shallow water in a closed basin, sharded along x; each device holds one half, and a copy of the layer of cells
next to it. On a laptop the devices are emulated.
"""

import os

import jax
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

jax.config.update("jax_num_cpu_devices", 2)  # on a machine with GPUs, leave this line out
pk.use_compilation_cache()

n = 64 if "PHYSKIT_QUICK" in os.environ else 192
grid = pk.Grid(pk.Box([1.0, 1.0], periodic=False), (n, n))
x, y = grid.coordinates()
drop = 1 + 0.2 * jax.numpy.exp(-((x - 0.4) ** 2 + (y - 0.55) ** 2) / 0.004)
water = pk.components.CGridShallowWaterState.of(grid, drop)
simulation = pk.Simulation(pk.RK4(pk.equations.ShallowWater(gravity=1.0)), dt=0.3 / n)
print(pk.devices.communication_report(simulation, water, devices=2))

fig, axes = plt.subplots(1, 3, figsize=(10.5, 3.9), sharey=True, layout="constrained")
carry = water
for ax, t in zip(axes, (0.0, 0.3, 0.6), strict=True):
    if t:
        carry = pk.run(simulation, carry, n, devices=2, progress=False).carry
    depth = np.asarray((carry.state if t else water).depth.data)
    for device, (half, colors) in enumerate(zip(np.split(depth, 2), ("Blues", "Oranges"))):
        left = 0.5 * device
        box = (left, left + 0.5, 0, 1)
        ax.imshow(half.T, origin="lower", extent=box, cmap=colors, vmin=0.93, vmax=1.08)
        ax.text(left + 0.02, 0.97, f"device {device}", va="top")
    ax.axvline(0.5, color="0.2", lw=1, ls="--")
    ax.set(title=f"t = {t:g}", xlabel="x", xlim=(0, 1), ylim=(0, 1))
axes[0].set_ylabel("y")
fig.savefig("two_devices.png", dpi=130)

single = pk.run(simulation, water, 2 * n, progress=False).state
print("difference to one device:", float(abs(single.depth.data - carry.state.depth.data).max()))
