"""Kelvin–Helmholtz instability: a shear layer between light and heavy gas rolls up."""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

CELLS = 32 if "PHYSKIT_QUICK" in os.environ else 80
simulation, gas = pk.systems.kelvin_helmholtz(
    CELLS, reconstruction=pk.reconstructions.MUSCL(pk.limiters.MonotonizedCentral())
)

fig, axes = plt.subplots(1, 3, figsize=(11, 3.9), sharey=True, layout="constrained")
carry = gas
for ax, t in zip(axes, (0.0, 1.0, 2.0), strict=True):
    if t:
        carry = pk.run(simulation, carry, 10 * CELLS, progress=False).carry
    density = np.asarray((gas if not t else carry.state).density.data)
    image = ax.imshow(
        density.T,
        origin="lower",
        extent=(0, 1, 0, 1),
        cmap="magma",
        vmin=1,
        vmax=2,
        interpolation="bilinear",
    )
    ax.set(title=f"t = {t:g}", xlabel="x", xticks=(0, 0.5, 1))
axes[0].set_ylabel("y")
fig.colorbar(image, ax=axes, label="density", shrink=0.9)
fig.savefig("kelvin_helmholtz.png", dpi=130)
