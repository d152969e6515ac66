"""Two solitons of the Korteweg–de Vries equation: the faster overtakes the slower.

Both keep shape and speed, but are shifted: the faster ahead by ln 3, the slower behind by 2 ln 3.
"""

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

simulation, start = pk.systems.kdv_solitons(every=20)
run = pk.run(simulation, start, steps=2_600)
u, t, x = run["u"], run.times["u"], np.asarray(start.coordinates[0])

with pk.plot.style():
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(9.5, 4.2), layout="constrained", width_ratios=(1.25, 1)
    )
    image = left.pcolormesh(x, t, u, cmap="magma", shading="gouraud", rasterized=True)
    for x0, c in ((15, 4), (35, 1)):
        left.plot(x0 + c * t, t, color="white", lw=0.9, ls=(0, (4, 4)))
    left.set(xlabel="$x$", ylabel="$t$", title="dashed: each soliton alone", xlim=(0, 80))
    left.set_ylim(0, t[-1])
    fig.colorbar(image, ax=left, label="$u$", pad=0.02)

    for place, i in enumerate((0, 40, 60, 70, 90, 128)):
        right.plot(x, u[i] + 1.3 * place, color=plt.cm.viridis(place / 6), lw=1.6)
        right.text(1, 1.3 * place + 0.15, f"t = {t[i]:.1f}", fontsize=8.5)
    right.set(xlabel="$x$", xlim=(0, 80), yticks=[], title="before, during and after the collision")
    right.spines[["left", "top", "right"]].set_visible(False)
    fig.savefig("kdv_solitons.png", dpi=130)
