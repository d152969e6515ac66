"""The miniprotein Trp-cage folds and unfolds as a Gō model: native contacts in time and by temperature.

Its native geometry is computed from the torsions of its three helices.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
steps, temperatures = (4_000, [0.4, 1.0]) if quick else (140_000, [0.4, 0.5, 0.6, 0.7, 0.8, 1.0])
native = pk.systems.trp_cage()
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
mean, shown = [], {temperatures[0]: "#1d3557", temperatures[len(temperatures) // 2]: "#2a9d8f",
                   temperatures[-1]: "#c1121f"}  # fmt: skip
for temperature in temperatures:
    sim, chain = pk.systems.go_model(native, temperature=temperature)
    run = pk.run(sim, chain, steps, key=0, progress=False)
    contacts = np.asarray(run["contacts"])
    blocks = contacts[len(contacts) // 5 :][: len(contacts) // 10 * 8].reshape(8, -1).mean(axis=1)
    mean.append((np.mean(blocks), np.std(blocks) / np.sqrt(7)))
    if temperature in shown:
        smooth = np.convolve(contacts, np.ones(10) / 10, "valid")
        t = run.times["contacts"][: len(smooth)]
        left.plot(t, smooth, lw=0.7, color=shown[temperature], label=f"T = {temperature:g}")
    print(f"T = {temperature:g}: contacts {mean[-1][0]:.3f} ± {mean[-1][1]:.3f}")
value, error = np.array(mean).T
left.set(xlabel="time", ylabel="fraction of native contacts", title="along a run", ylim=(0, 1.05))
left.legend(frameon=False, loc="lower center", ncols=3)
right.errorbar(temperatures, value, error, fmt="o-", color="#6a4c93", capsize=3)
right.set(xlabel="temperature / ε", title="mean")
inset = right.inset_axes([0.04, 0.04, 0.42, 0.4])
_, _, axes = np.linalg.svd(native - native.mean(axis=0))
axes[2] *= np.linalg.det(axes)  # not its mirror image
x, y, depth = axes @ (native - native.mean(axis=0)).T  # seen from where it is widest
inset.plot(x, y, "-", color="#999999", lw=1, zorder=1)
inset.scatter(x, y, c=np.arange(len(x)), cmap="viridis", s=40 + 3 * depth, zorder=2)
inset.set(aspect="equal", title="native")
inset.set_axis_off()
fig.savefig("folding.png", dpi=150)
