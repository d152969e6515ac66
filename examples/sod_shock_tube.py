"""Sod's shock tube: two reconstructions against the exact solution.

A membrane between gas of high and of low pressure bursts: a rarefaction runs left, a contact and a
shock run right.
"""

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

CELLS, END = 100, 0.2
schemes = {
    "first order": pk.reconstructions.PiecewiseConstant(),
    "MUSCL, van Leer": pk.reconstructions.MUSCL(),
}
found = {}
for label, scheme in schemes.items():
    simulation, gas = pk.systems.sod(CELLS, reconstruction=scheme)
    found[label] = pk.run(simulation, gas, 5 * CELLS // 4, progress=False).state

x = np.linspace(0, 1, 1000)
exact = pk.systems.shock_tube_solution(*pk.systems.SOD, x, END)
centers = np.asarray(gas.density.coordinates[0])

fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharex=True, layout="constrained")
for ax, name, line in zip(axes, ("density", "velocity", "pressure"), exact, strict=True):
    ax.plot(x, line, color="#212529", lw=1, label="exact")
    for (label, end), color, marker in zip(
        found.items(), ("#8d99ae", "#c1121f"), "s.", strict=True
    ):
        fields = (end.density.data, end.velocity.data[0], end.pressure().data)
        values = dict(zip(("density", "velocity", "pressure"), fields, strict=True))[name]
        ax.plot(
            centers,
            values,
            marker,
            ms=3 if marker == "s" else 5,
            mec="none",
            color=color,
            label=label,
        )
    ax.set(title=name, xlabel="x", xlim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)
fig.savefig("sod_shock_tube.png", dpi=150)
