"""What twenty-one years of pelts say about hares and lynx, and what they leave open.

The same equations as in `hare_and_lynx.py`, but instead of the best fit all that the counts allow: draws from
the posterior of four rates, both numbers of 1900 and the scatter of the counts, by the no-U-turn sampler. Each
of two hundred draws is then simulated as a member of a sweep, ten years beyond the data.
"""

import os

import jax
import numpy as np

import physkit as pk

QUICK = "PHYSKIT_QUICK" in os.environ
jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

data = pk.systems.pelts()
posterior = pk.systems.pelts_posterior(data)
if QUICK:  # short trajectories from the model's own numbers: less to compile
    settings = {"draws": 20, "warmup": 20, "method": pk.inference.HMC(steps=4)}
else:
    laplace = pk.inference.laplace_approximation(posterior)
    method = pk.inference.NUTS(dense_metric=True)
    settings = {"draws": 1000, "warmup": 400, "method": method, "around": laplace}
samples = pk.inference.sample_posterior(posterior, chains=4, key=0, progress=False, **settings)
print(samples)

# Each draw as a member of a sweep: its rates and its start; the noise is added by hand.
count, years = (10, 20) if QUICK else (200, 30)
draws = samples.some_values(count)
rates = ("growth", "predation", "death", "conversion")
axis = pk.SweepAxis(
    lambda m: (*(getattr(pk.find(m, pk.systems.LotkaVolterra), name) for name in rates), m[1]),
    tuple(draws[name] for name in (*rates, "start")),
)
model = pk.systems.hare_and_lynx()
found = pk.sweep(model, 20 * years, over=axis, progress=False)
noise = np.random.default_rng(0).normal(size=found["pelts"].shape) * draws["noise"][:, None]
counted = found["pelts"][:] * np.exp(noise)

labels = (
    "growth\n/ yr⁻¹", "predation\n/ (10³ yr)⁻¹", "death\n/ yr⁻¹", "conversion\n/ (10³ yr)⁻¹",
    "hares 1900\n/ 10³", "lynx 1900\n/ 10³",
)  # fmt: skip
order = [samples.labels.index(x) for x in (*rates, "start[0]", "start[1]")]
panels = pk.plot.corner(samples.table.reshape(-1, 8)[:, order], labels=labels, size=1.45)
figure = panels[0, 0].figure
# The upper right of a corner plot is free: the bands go there.
with pk.plot.style():
    bands = [figure.add_axes((0.615, bottom, 0.365, 0.17)) for bottom in (0.79, 0.565)]
for k, (ax, species) in enumerate(zip(bands, ("hares", "lynx"), strict=True)):
    pk.plot.fan(
        found.times["pelts"],
        counted[..., k],
        ax=ax,
        color=pk.plot.PALETTE[k],
        label=species,
        unit="1000",
    )
    ax.plot(data.year, data.taken[:, k], ".", color="#333333", ms=6, label="counted")
    ax.axvline(data.year[-1], color="#B8B8B8", lw=0.8)
    ax.set(xlabel="year" if k else "", ylim=(0, 140 if k == 0 else 110))
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
bands[0].set_title("What the pelts predict, with the scatter of counts", fontsize=10)
figure.savefig("posterior_of_hares.png", dpi=130, bbox_inches="tight")
