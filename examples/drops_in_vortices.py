"""Drops in a Taylor–Green vortex, with drag both ways: where do they gather?

Light drops follow the flow; heavier ones are thrown out of the vortices and meet on the lines between
them. What the drops gain in momentum the flow loses, to rounding.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

count, steps = (2_000, 40) if "PHYSKIT_QUICK" in os.environ else (12_000, 100)
fig, axes = plt.subplots(1, 3, figsize=(11, 3.9), sharex=True, sharey=True, layout="constrained")
for ax, stokes in zip(axes, (0.1, 0.5, 5.0), strict=True):
    simulation, start = pk.systems.particle_laden_taylor_green(stokes, 0.02, count=count, cells=32)
    end = pk.simulate(simulation, start, steps).state
    total = lambda s: pk.particles.total_momentum(s["drops"]) + s["flow"].integral()
    assert np.allclose(total(end), total(start), atol=1e-3)
    vorticity = pk.operators.curl(end["flow"], pk.schemes.Spectral())
    shades = ax.imshow(
        vorticity.data.T, origin="lower", extent=(0, 2 * np.pi, 0, 2 * np.pi), cmap="RdBu_r",
        vmin=-2, vmax=2, interpolation="bicubic", alpha=0.6,
    )  # fmt: skip
    x, y = end["drops"].position.T
    ax.plot(x, y, ".", ms=1.4, mew=0, color="#111827")
    ax.set(
        title=f"stopping time {stokes:g}",
        xlabel="x",
        aspect="equal",
        xlim=(0, 6.28),
        ylim=(0, 6.28),
    )
axes[0].set_ylabel("y")
fig.colorbar(shades, ax=axes, label="vorticity", shrink=0.85)
fig.savefig("drops_in_vortices.png", dpi=110)
