"""A learned closure for Burgers' equation on a coarse grid, trained through the solver.

Shocks are thinner than a cell of the coarse grid, where the equation alone rings. A small
convolutional network adds what is missing. It is trained on short stretches, with a gradient
through every step, and tested on other starts for twice as long.
"""

import os

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import physkit as pk

pk.use_compilation_cache()

rounds = 10 if "PHYSKIT_QUICK" in os.environ else 300
viscosity, fine, coarse = 0.01, 512, 32
line = pk.Box([2 * np.pi])
small, large = pk.Grid(line, (fine,)), pk.Grid(line, (coarse,))


def wave(key):
    amplitude = jax.random.normal(key, (2, 4)) / jnp.arange(1, 5)
    x = small.coordinates()[0]
    k = jnp.arange(1, 5)[:, None] * x[None]
    return amplitude[0] @ jnp.sin(k) + amplitude[1] @ jnp.cos(k)


# The truth on 512 cells, averaged to 32: means over 16 cells.
record = pk.Every(40, u=lambda now: now.state.data.reshape(coarse, -1).mean(axis=1))
exact = pk.Simulation(pk.ETDRK4(pk.equations.Burgers(viscosity)), dt=0.00125, observers=record)
run_exact = jax.jit(jax.vmap(lambda u: pk.simulate(exact, pk.Field(u, small), 1600).frames["u"]))
starts = jax.vmap(wave)(jax.random.split(jax.random.key(0), 40))
truth = run_exact(starts)  # [start, time, cell], a frame every 0.05
train, test = truth[:32], truth[32:]


def simulation(*closure):
    flow = pk.ETDRK4(pk.equations.Burgers(viscosity), *closure)
    return pk.Simulation(flow, dt=0.025, observers=pk.Every(2, u=pk.FieldValues()), guards=())


def forecast(simulation, u, frames):
    return pk.simulate(simulation, pk.Field(u, large), 2 * frames).frames["u"]


class Flux(pk.Module):
    """The divergence of a learned flux: what is conserved stays conserved."""

    network: pk.Network

    def __call__(self, u):
        flux = self.network(u)
        return (flux[:, 1:] - flux[:, :-1]) * coarse / (2 * np.pi)


keys = jax.random.split(jax.random.key(1), 3)
layers = [
    eqx.nn.Conv1d(1, 16, 5, key=keys[0]),
    eqx.nn.Lambda(jax.nn.gelu),
    eqx.nn.Conv1d(16, 16, 1, key=keys[1]),
    eqx.nn.Lambda(jax.nn.gelu),
    eqx.nn.Conv1d(16, 1, 2, use_bias=False, key=keys[2]),  # a constant flux does nothing
]
layers[-1] = eqx.tree_at(lambda c: c.weight, layers[-1], 0.1 * layers[-1].weight)
closure = pk.equations.Closure(Flux(pk.Network(eqx.nn.Sequential(layers))), padding=3)

# Stretches of 8 frames, 16 steps of the coarse solver, from anywhere in the training runs.
length = 8
optimizer = optax.adam(optax.cosine_decay_schedule(3e-3, rounds))
optimizer_state = optimizer.init(eqx.filter(closure, eqx.is_inexact_array))


def loss(closure, batch):
    predicted = jax.vmap(lambda u: forecast(simulation(closure), u, length))(batch[:, 0])
    return jnp.mean((predicted - batch) ** 2)


@eqx.filter_jit
def step(closure, optimizer_state, key):
    which, when = jax.random.split(key)
    i = jax.random.randint(which, (32,), 0, len(train))
    t = jax.random.randint(when, (32,), 0, 20 - length)  # the first second, while shocks form
    batch = train[i[:, None], t[:, None] + jnp.arange(length + 1)[None]]
    value, slopes = eqx.filter_value_and_grad(loss)(closure, batch)
    change, optimizer_state = optimizer.update(slopes, optimizer_state)
    return eqx.apply_updates(closure, change), optimizer_state, value


losses = []
for k in range(rounds):
    closure, optimizer_state, value = step(closure, optimizer_state, jax.random.key(k))
    losses.append(float(value))

# Other starts, and twice as long as anything seen in training.
frames = truth.shape[1] - 1
times = 0.05 * np.arange(frames + 1)
run = lambda sim: jax.jit(jax.vmap(lambda u: forecast(sim, u, frames)))(test[:, 0])
bare, learned = run(simulation()), run(simulation(closure))
size = jnp.sqrt(jnp.mean(test**2))
error = lambda u: jnp.sqrt(jnp.mean((u - test) ** 2, axis=(0, 2))) / size
late = slice(21, None)
ratio = float(jnp.mean(error(bare)[late]) / jnp.mean(error(learned)[late]))
print(
    f"after t = 1: error {float(jnp.mean(error(bare)[late])):.3f} without closure, "
    f"{float(jnp.mean(error(learned)[late])):.3f} with it: {ratio:.1f} times less"
)

with pk.plot.style():
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
x = 2 * np.pi * (np.arange(coarse) + 0.5) / coarse
left.plot(x, test[0, -1], "o", ms=4, color="#333333", label="truth: 512 cells, averaged to 32")
left.plot(x, bare[0, -1], color="#0072B2", lw=1, label="32 cells alone")
left.plot(x, learned[0, -1], color="#D55E00", label="32 cells and closure")
left.set(xlabel="x", ylabel=f"u at t = {times[-1]:.0f}, a start never seen", ylim=(-2, 3.2))
left.legend()
right.plot(times, 100 * error(bare), color="#0072B2", label="without")
right.plot(times, 100 * error(learned), color="#D55E00", label="with closure")
right.axvspan(0, 1, color="#333333", alpha=0.08, lw=0, label="times of training")
right.set(xlabel="time", ylabel="error / % of u", ylim=(0, None))
right.legend()
fig.savefig("neural_closure.png", dpi=150)
