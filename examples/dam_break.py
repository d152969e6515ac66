"""A dam breaks over a bump onto dry ground; and water rotates in Thacker's parabolic bowl."""

import os

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

CELLS = 50 if "PHYSKIT_QUICK" in os.environ else 160
grid = pk.Grid(pk.Box([10.0], False), (CELLS,))
(x,) = grid.coordinates()
ground = 0.4 * jnp.exp(-((x - 6) ** 2))
dam = pk.components.ShallowWaterState.of(
    grid, jnp.where(x < 4, 1.0, 0.0) * (1 - ground), boundary=pk.boundaries.Mirror()
)
flow = pk.CFLSubsteps(
    pk.SSPRK2(pk.equations.ShallowWaterFV(9.81, bed=ground, dry=1e-4)), cfl=0.45, max_substeps=8
)
simulation = pk.Simulation(
    flow, dt=0.02, observers=pk.Every(10, depth=lambda now: now.state.depth.data)
)
depths = np.asarray(pk.run(simulation, dam, 200, progress=False).frames["depth"])

fig, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained", width_ratios=(1, 1, 1.1))
for ax, frame in zip(axes, (4, 20), strict=False):
    ax.fill_between(x, ground, ground + depths[frame], color="#4a90d9", lw=0)
    ax.plot(x, ground + depths[0], color="k", lw=0.8, ls=":", label="t = 0 s")
    ax.fill_between(x, 0, ground, color="#8d6e4b", lw=0)
    ax.set(title=f"t = {0.2 * frame:.1f} s", xlabel="x / m", ylim=(0, 1.3), xlim=(0, 10))
axes[0].set_ylabel("height / m")
axes[0].legend(frameon=False)

cells = 24 if "PHYSKIT_QUICK" in os.environ else 36
bowl, water = pk.systems.thacker_bowl(cells)
steps = int(0.5 * np.pi / float(bowl.dt))
water = pk.run(bowl, water, steps, progress=False).carry.state
depth = np.asarray(water.depth.data)
image = axes[2].imshow(
    np.where(depth > 1e-3, depth, np.nan).T,
    origin="lower",
    extent=(-1.5, 1.5) * 2,
    cmap="Blues",
    vmin=0,
)
angle, t = np.linspace(0, 2 * np.pi, 200), steps * float(bowl.dt)
shore = 0.25 * np.cos(t) + np.cos(angle), 0.25 * np.sin(t) + np.sin(angle)
axes[2].plot(*shore, color="#c1121f", lw=1, label="exact shore")
axes[2].set(title="a bowl, after a quarter of a turn", xlabel="x", ylabel="y")
axes[2].legend(frameon=False, loc="lower left")
fig.colorbar(image, ax=axes[2], label="depth")
fig.savefig("dam_break.png", dpi=130)
