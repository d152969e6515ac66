"""Weather on a circle, seen through noise: an ensemble Kalman filter against variational assimilation.

Lorenz's model of 1996: forty sites, each pushed on by its neighbors. Every other site is measured every 0.1
time units (half a day, by his scaling) with noise 1. The filter carries forty members from one observation to
the next. Four-dimensional variational assimilation fits the state at the beginning of windows of 0.5 to all
observations inside, and to the forecast of the window before: a fit of the initial state, whose derivative
goes through the simulation. Early in a window it knows what comes later, which the filter does not; at its end
both know the same. A run without data soon knows nothing.
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

QUICK = "PHYSKIT_QUICK" in os.environ
jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

SITES, NOISE, INTERVAL, WINDOW = 40, 1.0, 10, 5
NUM_WINDOWS = 2 if QUICK else 16
BACKGROUND_STD = 0.8  # of the forecast that begins a window


def lorenz96(t, x):
    return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8.0


record = pk.Every(INTERVAL, x=lambda now: now.state)
sim = pk.Simulation(pk.RK4(lorenz96), dt=0.01, observers=record)
key = jax.random.key(0)
start = pk.simulate(sim, 8.0 + jax.random.normal(key, (SITES,)), 1000).state  # on the attractor
times = NUM_WINDOWS * WINDOW
truth = np.asarray(pk.simulate(sim, start, times * INTERVAL).frames["x"])
rng = np.random.default_rng(1)
seen = truth[1:, ::2] + NOISE * rng.normal(size=(times, SITES // 2))

# The filter.
first = np.asarray(start) + 2.0 * rng.normal(size=SITES)  # what both methods begin with
members = jnp.asarray(first + 2.0 * rng.normal(size=(40, SITES)))
place = np.arange(SITES)
localization = pk.inference.Localization(place, place[::2], radius=12.0, period=SITES)
filtering, members = pk.inference.ensemble_kalman_filter(
    sim, members, seen, observe=lambda x: x[::2], noise=NOISE, interval=INTERVAL, inflation=1.06,
    localization=localization,
)  # fmt: skip
filtered = pk.run(filtering, members, times, key=1, progress=False)


# Four-dimensional variational assimilation, window after window.
def misfit(model, data):
    background, spread, observed = data
    path = pk.simulate(*model, WINDOW * INTERVAL).frames["x"][1:, ::2]
    return (model[1] - background) / spread, (path - observed) / NOISE


background, spread, path = jnp.asarray(first), 2.0, []
for window in range(NUM_WINDOWS):
    observed = jnp.asarray(seen[window * WINDOW : (window + 1) * WINDOW])
    found = pk.fit(
        misfit, (sim, background), where=lambda m: {"start": m[1]},
        data=(background, jnp.asarray(spread), observed), jac="forward", progress=False,
        errors=pk.fitting.IndependentErrors(noise_known=True),
    )  # fmt: skip
    analysis = pk.simulate(*found.model, WINDOW * INTERVAL)
    path.append(np.asarray(analysis.frames["x"][1:]))
    background, spread = analysis.state, BACKGROUND_STD
path = np.concatenate(path)
free = np.asarray(pk.simulate(sim, jnp.asarray(first), times * INTERVAL).frames["x"])[1:]

error = lambda x: np.sqrt(np.mean((x - truth[1:]) ** 2, axis=1))
t = 0.1 * np.arange(1, times + 1)
late = slice(times // 4, None)
results = {"no data": free, "4D-Var": path, "ensemble filter": filtered["mean"][1:]}
for name, x in results.items():
    print(f"{name}: root mean square error {np.sqrt(np.mean(error(x)[late] ** 2)):.3f}")
spread = np.sqrt(np.mean(filtered["std"][1:] ** 2, axis=1))
print(f"spread of the filter's members: {np.sqrt(np.mean(spread[late] ** 2)):.3f}")

with pk.plot.style():
    figure = plt.figure(figsize=(10, 6.4), layout="constrained")
    axes = figure.subplot_mosaic(
        [["truth", "filter", "var"], ["error"] * 3], height_ratios=(1.3, 1)
    )
shown = {"truth": truth[1:], "filter": filtered["mean"][1:] - truth[1:], "var": path - truth[1:]}
titles = {"truth": "truth", "filter": "ensemble filter − truth", "var": "4D-Var − truth"}
for name, x in shown.items():
    limit = 12 if name == "truth" else 3
    image = axes[name].pcolormesh(
        place, t, x, cmap="RdBu_r", vmin=-limit, vmax=limit, rasterized=True
    )
    # What is measured: every other site.
    axes[name].plot(
        place[::2], np.full(SITES // 2, t[-1]), "v", ms=3, color="#333333", clip_on=False
    )
    axes[name].set(xlabel="site", title=titles[name], ylim=(t[0], t[-1]))
    if name != "filter":
        label = "x" if name == "truth" else "error of x"
        figure.colorbar(image, ax=axes[name], label=label, shrink=0.9)
axes["truth"].set_ylabel("time")
ax = axes["error"]
pk.plot.apply_style(ax)
for (name, x), color in zip(results.items(), ("#777777", "#D55E00", "#0072B2"), strict=True):
    ax.semilogy(t, error(x), color=color, label=name)
ax.semilogy(t, spread, color="#0072B2", ls=":", label="spread of the members")
ax.axhline(NOISE, color="#B8B8B8", lw=1)
ax.text(
    t[-1],
    NOISE * 1.06,
    "noise of an observation",
    ha="right",
    va="bottom",
    fontsize=8.5,
    color="#777777",
)
ax.set(xlabel="time", ylabel="root mean square error", ylim=(0.2, 8))
ax.set_yticks([0.3, 0.5, 1, 2, 5], ["0.3", "0.5", "1", "2", "5"])
ax.minorticks_off()
ax.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.2))
figure.savefig("assimilation.png", dpi=130)
