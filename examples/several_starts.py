"""A pendulum's length from its track: one start ends in a wrong minimum, the best of sixteen does not.

Far from the truth the simulated swings are out of phase with the measured ones, and the sum of squares
has a minimum wherever some of them coincide. All starts are fitted side by side, as one ensemble.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()


def pendulum(length):
    swing = pk.Function(lambda t, y, l: jnp.stack([y[1], -9.81 / l * jnp.sin(y[0])]), length)
    record = pk.Every(5, angle=lambda now: now.state[0])
    return pk.Simulation(pk.RK4(swing), dt=0.02, observers=record), jnp.array([1.2, 0.0])


times = np.arange(0, 10.01, 0.1)
at = pk.fitting.frames_at(pendulum(jnp.asarray(1.0))[0], times, every=5)
angle = lambda model: at.pick(pk.simulate(*model, at.steps), "angle")
measured = np.asarray(angle(pendulum(jnp.asarray(1.0)))) + 0.1 * np.random.default_rng(0).normal(
    size=101
)

options = {
    "where": lambda m: {"length": pk.find(m, pk.Function).args},
    "bounds": pk.bounds.PositiveBound(),
    "progress": False,
}
guess = pendulum(jnp.asarray(2.5))
residuals = lambda model: (angle(model) - measured) / 0.1
single = pk.fit(residuals, guess, **options)
many = pk.fit(residuals, guess, starts=16, start_std=0.8, key=jax.random.key(3), **options)
print(many)

lengths = jnp.geomspace(0.3, 8.0, 400)
cost = jax.jit(jax.vmap(lambda l: 0.5 * jnp.sum(residuals(pendulum(l)) ** 2)))(lengths)
with pk.plot.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax in (left, right):
    pk.plot.apply_style(ax)
left.loglog(lengths, cost, color="#333333", lw=1.2)
for attempt in many.attempts:
    left.plot(attempt.start["length"], 1.15 * np.interp(attempt.start["length"], lengths, cost), "v",
              color="#56B4E9", ms=5)  # fmt: skip
    left.plot(attempt.values["length"], attempt.loss, "o", color="#0072B2", ms=7, mfc="none")
left.plot([], [], "v", color="#56B4E9", label="starts")
left.plot([], [], "o", color="#0072B2", mfc="none", label="where they end")
left.plot(
    single.values["length"], single.loss, "x", color="#D55E00", ms=11, mew=2.5, label="one start"
)
left.set(xlabel="length / m", ylabel="½ Σ r²", title="A cost with many minima")
left.legend(frameon=False)
right.plot(times, measured, ".", color="#777777", ms=5, label="measured")
right.plot(times, measured + 0.1 * single.residuals, color="#D55E00", lw=1.2, label="one start")
right.plot(times, measured + 0.1 * many.residuals, color="#0072B2", label="best of sixteen")
right.set(xlabel="time / s", ylabel="angle", title="Only the deepest minimum is the pendulum")
right.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16))
figure.savefig("several_starts.png", dpi=150)
