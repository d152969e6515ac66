"""A small network learns to keep a ball in the air: a loss of whole numbers, which has no gradient.

A paddle moves along a line and tilts; a ball that meets it bounces, one that misses is lost. The loss is
minus the number of bounces, averaged over some throws: its derivative is zero wherever it exists. Ranks
do not mind, so the weights of the network are found by an evolution strategy.
"""

import os

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()
QUICK = "PHYSKIT_QUICK" in os.environ
DT, STEPS, THROWS = 0.02, 200 if QUICK else 600, 16 if QUICK else 48
WIDTH, GRAVITY = 0.25, 9.81


class Juggling(pk.AbstractOneStep):
    """Ball (x, y, vx, vy), paddle (x, v), bounces and whether the ball is still in play, in one array."""

    policy: eqx.nn.MLP

    def step(self, plan, clock, state, aux):
        x, y, vx, vy, paddle, speed, bounces, plays = state
        # What it sees is of order one; what it does is an acceleration and a tilt.
        seen = jnp.stack([x - paddle, y - 1, vx, vy / 4, paddle, speed])
        push, tilt = self.policy(seen)
        speed = speed + DT * (20 * push - 2 * speed)
        paddle = paddle + DT * speed
        vy = vy - DT * GRAVITY
        x, y = x + DT * vx, y + DT * vy
        meets = (y < 0) & (vy < 0)
        hits = meets & (jnp.abs(x - paddle) < WIDTH) & (plays > 0)
        # A tilted paddle throws sideways; a hit restores the height, and adds some spin.
        spin = 0.3 * jnp.sin(37 * x + 11 * bounces)
        vx = jnp.where(hits, vx + 2 * 0.4 * tilt + spin, vx)
        vy = jnp.where(hits, jnp.asarray(4.5, vy.dtype), vy)
        y = jnp.where(hits, 0.0 * y, y)
        plays = jnp.where(meets & ~hits, 0.0 * plays, plays)
        return jnp.stack([x, y, vx, vy, paddle, speed, bounces + hits.astype(x.dtype), plays]), aux


def simulation(policy, *observers):
    return pk.Simulation(Juggling(policy), dt=DT, observers=observers)


def throws(key, number):
    kick = jax.random.uniform(key, (number, 2), minval=-1.0, maxval=1.0)
    still = jnp.zeros(number)
    columns = [
        0.15 * kick[:, 0],
        still + 0.8,
        0.5 * kick[:, 1],
        still,
        still,
        still,
        still,
        still + 1,
    ]
    return jnp.stack(columns, axis=1)


def loss(model, starts):
    """Minus the bounces of a throw, the mean over all."""
    end = lambda start: pk.simulate(simulation(model), start, STEPS).state[6]
    return -jnp.mean(jax.vmap(end)(starts))


@eqx.filter_jit
def paths(policy, starts):
    """All that there is at every step, `[throws, t, 8]`."""
    record = pk.Every(1, all=lambda now: now.state)
    path = lambda start: pk.simulate(simulation(policy, record), start, STEPS).frames["all"]
    return jax.vmap(path)(starts)


policy = eqx.nn.MLP(
    6, 2, 12, 1, activation=jnp.tanh, final_activation=jnp.tanh, key=jax.random.key(0)
)
starts = throws(jax.random.key(1), THROWS)
options = {
    "where": lambda m: m,
    # All weights on one scale: their own size would hardly move those near 0.
    "bounds": pk.bounds.Unbounded(1.0),
    "data": starts,
    "key": 2,
}
generations = 3 if QUICK else 150
method = pk.fitting.OpenES(sigma=0.2, population=128, max_generations=generations)
found = pk.fit(loss, policy, method=method, **options)
print(found)
weights, rest = eqx.partition(policy, eqx.is_array)
slope = jax.grad(lambda w: loss(eqx.combine(w, rest), starts))(weights)
print("largest derivative:", max(float(jnp.max(jnp.abs(x))) for x in jax.tree.leaves(slope)))

unseen = throws(jax.random.key(99), 200)
before, after = (np.asarray(paths(p, unseen)) for p in (policy, found.model))
means = before[:, -1, 6].mean(), after[:, -1, 6].mean()
print(f"bounces of throws that it has not seen: {means[0]:.1f} before, {means[1]:.1f} after")

times = np.arange(STEPS + 1) * DT
k = int(np.argmax(after[:, -1, 6]))
x, y, *_, paddle, _, _, _ = np.where(after[k, :, 7:] > 0, after[k], np.nan).T
lost = np.where(before[k, :, 7] > 0, before[k, :, 1], np.nan)
history = found.history
tried = np.asarray(history.evaluations)
with pk.plot.style():
    figure = plt.figure(figsize=(10, 4.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
    top = figure.add_subplot(grid[0, 0])
    bottom = figure.add_subplot(grid[1, 0], sharex=top)
    right = figure.add_subplot(grid[:, 1])
    top.plot(times, y, color="#0072B2", lw=1.5, label="after the search")
    top.plot(times, lost, color="#D55E00", ls="--", label="before")
    top.set(ylabel="height / m", ylim=(0, 1.5), title="A throw that the network has not seen")
    top.tick_params(labelbottom=False)
    top.legend(ncols=2, loc="upper right")
    band = {"color": "#999999", "alpha": 0.4, "lw": 0, "label": "paddle"}
    bottom.fill_between(times, paddle - WIDTH, paddle + WIDTH, **band)
    bottom.plot(times, x, color="#0072B2", lw=1.5, label="ball")
    hits = np.flatnonzero(np.diff(after[k, :, 6]) > 0) + 1
    bottom.plot(times[hits], x[hits], "o", color="#0072B2", ms=4, label="bounces")
    bottom.set(xlabel="time / s", ylabel="$x$ / m", xlim=(0, times[-1]))
    bottom.set_ylim(np.nanmin(paddle) - WIDTH - 0.1, np.nanmax(paddle) + WIDTH + 0.6)
    bottom.legend(ncols=3, loc="upper right")
    right.semilogx(tried, -np.asarray(history.best), color="#0072B2", label="best of a generation")
    right.semilogx(tried, -np.asarray(history.mean), color="#D55E00", label="mean of a generation")
    right.set(xlabel="networks tried", ylabel="bounces a throw", ylim=(0, None), title="The search")
    right.legend(loc="lower right")
    figure.savefig("ball_on_paddle.png", dpi=130)
