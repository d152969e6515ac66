"""Gray and Scott's reaction: a spot grows and splits, until spots fill the plane.

`python examples/gray_scott.py 256` takes a larger plane, and as many more steps.
"""

import os
import sys

import matplotlib.pyplot as plt

import physkit as pk

pk.use_compilation_cache()

# Spots need longer to fill a larger plane: frames are as far apart as it is wide.
cells = int(sys.argv[1]) if len(sys.argv) > 1 else 128
cells = 64 if "PHYSKIT_QUICK" in os.environ else cells
every = 7 * cells
simulation, start = pk.systems.gray_scott(cells=(cells, cells), every=every)
run = pk.run(simulation, start, steps=12 * every)

with pk.plot.style():
    fig, axes = plt.subplots(1, 4, figsize=(12, 3.1), layout="constrained")
    for ax, i in zip(axes, (1, 3, 6, 12), strict=True):
        frame = start.replace(data=run["u"][i])
        last = i == 12
        pk.plot.field(
            frame, component=1, ax=ax, limits=(0, 0.42), cmap="inferno", bar=last, label="$v$"
        )
        ax.set(title=f"t = {run.times['u'][i]:.0f}", xticks=[], yticks=[], xlabel="", ylabel="")
    fig.savefig("gray_scott.png", dpi=130)
