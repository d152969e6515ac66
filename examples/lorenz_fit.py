"""A fit through chaos: σ, ρ and β of Lorenz's system from a noisy record of nine Lyapunov times.

One run from a guess soon separates from the record; its gradient is exact and useless. Twenty short
windows, each with a start of its own, recover all three parameters: their ends are tied to the next starts,
ever more tightly. Takes half a minute on one core.
"""

import os
import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
steps, windows, noise = (200, 4, 1.0) if quick else (1_000, 20, 1.0)
record = pk.Every(5, position=lambda now: now.state)


def lorenz(*parameters):
    simulation, _ = pk.systems.lorenz(*parameters)
    return pk.Simulation(simulation.integrator, dt=0.01, observers=record)


truth, start = lorenz(10.0, 28.0, 8 / 3), jnp.array([-5.9, -5.5, 24.0])
growth = pk.fitting.gradient_growth(truth, start, 10_000 if quick else 100_000)
print(growth)
exact = pk.simulate(truth, start, steps).frames["position"]
data = exact + noise * jax.random.normal(jax.random.key(1), exact.shape)


def misfit(frames, data):
    return (frames["position"] - data) / noise


parameters = lambda m: pk.find(m, pk.Function).args
where = {
    "σ": lambda m: parameters(m)[0],
    "ρ": lambda m: parameters(m)[1],
    "β": lambda m: parameters(m)[2],
}
guess = lorenz(8.0, 24.0, 2.2)


def fit(windows, **settings):
    starts = data[: -1 : steps // 5 // windows]  # where the record says the windows begin
    return pk.fitting.fit_in_windows(
        misfit, (guess, data[0]), where=where, steps=steps, windows=windows,
        data=data, starts=starts, progress=False, **settings,
    )  # fmt: skip


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it does not converge, which this example shows
    single = fit(
        1, weights=(1.0,), method=pk.fitting.LevenbergMarquardt(max_steps=6 if quick else 60)
    )
multiple = fit(windows, weights=(1.0, 100.0))
for name, one in (("one window", single), (f"{windows} windows", multiple)):
    print(
        name,
        {k: f"{float(one.values[k]):.3f} ± {float(one.standard_errors[k]):.3f}" for k in where},
    )

path = lambda found: pk.simulate(
    pk.Simulation(found.model[0].integrator, dt=0.01, observers=record), found.model[1][0], steps
).frames["position"]
pieces = pk.fitting.MultipleShooting(misfit, steps, windows).trajectory(multiple.model)[0][
    "position"
]
t = 0.05 * jnp.arange(len(data))
with pk.plot.style():
    fig = plt.figure(figsize=(10, 4.6), layout="constrained")
    axes = fig.subplot_mosaic("AAB;CCB", width_ratios=[1, 1, 1.1])
rows = (
    (axes["A"], t[:, None], path(single)[:, :1], single, "one window"),
    (axes["C"], t[:-1].reshape(windows, -1).T, pieces[:, :-1, 0].T, multiple, f"{windows} windows"),
)
for ax, times, x, found, name in rows:
    ax.plot(t, data[:, 0], ".", ms=3, color="#555555", alpha=0.6)
    ax.plot(times, x, color="#D55E00", lw=1.4)
    values = ", ".join(f"{k} = {float(found.values[k]):.2f}" for k in where)
    ax.set_title(f"{name}: {values}", fontsize=10)
    ax.set(ylabel="x", ylim=(-24, 24))
axes["C"].set_xlabel("time (dots: the record; truth: 10, 28, 2.67)")
pk.plot.gradient_growth(pk.fitting.gradient_growth(truth, start, 4_000), ax=axes["B"])
fig.savefig("lorenz_fit.png", dpi=150)
