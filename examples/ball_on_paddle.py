"""A small network learns to keep a ball in the air: a loss of whole numbers, which has no gradient.

A paddle moves along a line and tilts; a ball that meets it bounces, one that misses is lost. The loss is
minus the number of bounces, averaged over sixteen throws: its derivative is zero wherever it exists. Ranks
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
DT, STEPS, THROWS = 0.02, 200 if QUICK else 600, 16
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


def simulation(policy):
    record = pk.Every(4, all=lambda now: now.state)
    return pk.Simulation(Juggling(policy), dt=DT, observers=record)


def throws(key):
    kick = jax.random.uniform(key, (THROWS, 2), minval=-1.0, maxval=1.0)
    still = jnp.zeros(THROWS)
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


def bounces(policy, starts):
    run = lambda start: pk.simulate(simulation(policy), start, STEPS).frames["all"]
    return jax.vmap(run)(starts)


def loss(model, starts):
    return -jnp.mean(bounces(model, starts)[:, -1, 6])


policy = eqx.nn.MLP(
    6, 2, 12, 1, activation=jnp.tanh, final_activation=jnp.tanh, key=jax.random.key(0)
)
starts = throws(jax.random.key(1))
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

unseen = throws(jax.random.key(99))
before, after = (np.asarray(bounces(p, unseen)) for p in (policy, found.model))
means = before[:, -1, 6].mean(), after[:, -1, 6].mean()
print(f"bounces of throws that it has not seen: {means[0]:.1f} before, {means[1]:.1f} after")
with pk.plot.style():
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2)
    )
pk.plot.apply_style(left)
times = np.arange(after.shape[1]) * 4 * DT
k = int(np.argmax(after[:, -1, 6]))
shown, first = (np.where(run[k][:, 7:] > 0, run[k], np.nan) for run in (after, before))
left.plot(times, shown[:, 1], color="#0072B2", label="height of the ball")
left.plot(times, shown[:, 0], color="#E69F00", label="x of the ball")
left.fill_between(
    times,
    shown[:, 4] - WIDTH,
    shown[:, 4] + WIDTH,
    color="#999999",
    alpha=0.4,
    lw=0,
    label="paddle",
)
lost = before[0, :, 7] > 0
left.plot(
    times[lost], before[0][lost, 1], color="#D55E00", ls="--", label="height, before evolution"
)
left.set(xlabel="time / s", ylabel="position / m", title="A throw that the network has not seen")
left.set_ylim(-1.0, 2.4)
left.legend(frameon=False, ncols=2, loc="upper center")
pk.plot.apply_style(right)
history = found.history
tried = np.asarray(history.evaluations)
right.semilogx(tried, -np.asarray(history.best), color="#0072B2", label="best of a generation")
right.semilogx(tried, -np.asarray(history.mean), color="#D55E00", label="mean of a generation")
right.set(xlabel="networks tried", ylabel="bounces a throw", ylim=(0, None), title="The search")
right.legend(frameon=False, loc="lower right")
figure.savefig("ball_on_paddle.png", dpi=150)
