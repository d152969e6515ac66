"""A melt of Kremer and Grest's chains: bonds, chains that forget their start, and their size.

100 chains of 10 beads begin as pieces of a line on a lattice. The dashed line is the size of a chain of
the same bonds and angles whose other beads do not meet, with the mean cosine c between n bonds:
⟨R²⟩ = n b² [(1 + c)/(1 − c) − 2c (1 − cⁿ)/(n (1 − c)²)].
Flory, Statistical Mechanics of Chain Molecules, 1969.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

beads, steps = 10, 2_000 if "PHYSKIT_QUICK" in os.environ else 30_000
sim, melt = pk.systems.kremer_grest_melt(beads)
run = pk.run(sim, melt, steps, key=0, progress=False)
chains, t = run["chains"], np.asarray(run.times["pressure"])
late = t > t[-1] / 3

n, b, c = beads - 1, np.mean(chains["bond"][late]), np.mean(chains["cosine"][late])
flory = n * b**2 * ((1 + c) / (1 - c) - 2 * c * (1 - c**n) / (n * (1 - c) ** 2))
size, pressure = np.mean(chains["end_to_end"][late]), np.mean(run["pressure"][late])
print(f"bond {b:.4f}, pressure {pressure:.2f}, cosine {c:.3f}")
print(
    f"end to end {size:.2f}, over n b² {size / (n * b**2):.2f}; from the cosine alone {flory:.2f}"
)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
x = np.asarray(run.state.position + run.state.image @ np.asarray(run.state.space.cell(3)))
for k, chain in enumerate(x.reshape(-1, beads, 3)[:40]):
    chain = chain - np.floor(np.mean(chain, axis=0) / melt.space.lengths) * melt.space.lengths
    left.plot(chain[:, 0], chain[:, 1], "o-", ms=2.5, lw=1, color=plt.get_cmap("viridis")(k / 40))
left.set(xlabel="x", ylabel="y", title="40 of the chains", aspect="equal")
right.plot(t, chains["end_to_end"], lw=0.8, color="#457b9d", label="⟨R²⟩ of all chains")
right.axhline(size, color="#c1121f", label=f"mean, {size:.1f}")
right.axhline(flory, color="#333333", ls="--", label=f"from bond angles, {flory:.1f}")
right.set(xlabel="time", ylabel="⟨R²⟩", title="chains forget their start", yscale="log")
right.set_yticks([10, 20, 50, 100], ["10", "20", "50", "100"])
right.minorticks_off()
right.legend(frameon=False)
fig.savefig("polymer_melt.png", dpi=150)
