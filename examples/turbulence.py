"""Turbulence in the plane: random vortices merge into fewer and larger ones.

Energy moves to large scales and is lost slowly; enstrophy moves into filaments that viscosity removes.
"""

import os

import matplotlib.pyplot as plt

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
cells = 64 if quick else 256
simulation, start = pk.systems.decaying_turbulence(
    8e-4 * (256 / cells) ** 2, resolution=cells, dt=2.5 / cells, every=cells // 4
)
result = pk.run(simulation, start, steps=4 * cells, progress=False)

energy, enstrophy = result.frames["energy"], result.frames["enstrophy"]
t = result.times["energy"]
with pk.plot.style():
    fig, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
    for ax, n in zip(axes, (0, 5, 16), strict=False):
        vortices = start.replace(data=result.frames["vorticity"][n])
        pk.plot.field(vortices, ax=ax, limits=(-20, 20), bar=False)
        ax.set(title=f"t = {t[n]:.3g}", xticks=[], yticks=[], xlabel="", ylabel="")
    axes[3].plot(t, energy / energy[0], color="#1d3557", label="energy")
    axes[3].plot(t, enstrophy / enstrophy[0], color="#c1121f", label="enstrophy")
    axes[3].set(xlabel="t", ylim=(0, 1.05), title="what is left")
    axes[3].legend(frameon=False)
    fig.savefig("turbulence.png", dpi=78)
