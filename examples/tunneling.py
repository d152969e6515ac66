"""A wave packet at a barrier of twice its energy: 7 % of it pass.

The transmitted fraction, against that of a plane wave and of the packet's own spectrum.
"""

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

simulation, start = pk.systems.tunneling(dt=0.04, every=150)
run = pk.run(simulation, start, steps=6_000)
x, t = np.asarray(start.coordinates[0]) - 256, run.times["psi"]
density = abs(run["psi"]) ** 2
passed = np.sum(density[:, x > 1], axis=1) * (x[1] - x[0])

k = np.linspace(0.75, 1.25, 1_001)  # σ_x = 20 makes σ_k = 1/40
weight = np.exp(-((k - 1) ** 2) / (2 * 0.025**2))
fraction = np.asarray(pk.systems.transmission(0.5 * k**2, 1.0, 2.0))
average = np.sum(weight * fraction) / np.sum(weight)

with pk.plot.style():
    fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    for i, color in ((0, "#56B4E9"), (20, "#E69F00"), (40, "#0072B2")):
        left.plot(x, density[i], color=color, lw=1, label=f"t = {t[i]:.0f}")
    behind = x > 1
    left.fill_between(x[behind], 20 * density[40][behind], color="#0072B2", alpha=0.3, lw=0)
    left.text(120, 0.033, "×20", ha="center", color="#0072B2")
    left.axvspan(-1, 1, color="#333333", lw=0)
    left.set(xlabel="$x$", ylabel=r"$|\psi|^2$", xlim=(-220, 220), ylim=(0, None))
    left.legend()

    right.plot(t, passed, color="#D55E00", lw=2, label="packet")
    right.axhline(average, color="#333333", lw=1, ls="--", label="average over its spectrum")
    right.axhline(0.0706508248, color="#333333", lw=1, ls=":", label="plane wave")
    right.set(xlabel="$t$", ylabel="fraction behind the barrier", xlim=(0, 240), ylim=(0, 0.08))
    right.legend(loc="center left")
    fig.savefig("tunneling.png", dpi=130)
