"""A network learns a pair potential from trajectories.

Atoms in the plane move by Morse's law. A network in its place is trained *through the solver*: the
gradient of where the atoms are a little later goes back through every step of velocity Verlet.
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

rounds = 20 if "PHYSKIT_QUICK" in os.environ else 600
n, steps = 12, 40
truth = pk.potentials.Morse(1.0, 3.0, 1.2)


def simulation(potential):
    record = pk.Every(10, x=lambda now: now.state.position, v=lambda now: now.state.velocity)
    force = pk.Pairwise(potential)  # every pair, in free space
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.02, observers=record, guards=())


# Forty short runs: drops of twelve atoms, warm enough to bounce.
def drop(key):
    where, how = jax.random.split(key)
    sites = jnp.stack(jnp.meshgrid(jnp.arange(4.0), jnp.arange(3.0)), -1).reshape(-1, 2) * 1.25
    x = sites + 0.12 * jax.random.normal(where, (n, 2))
    return pk.Particles(x, 0.5 * jax.random.normal(how, (n, 2)))


starts = jax.vmap(drop)(jax.random.split(jax.random.key(0), 40))
path = lambda potential, start: pk.simulate(simulation(potential), start, steps).frames
observed = jax.jit(jax.vmap(lambda start: path(truth, start)))(starts)

# Distances enter as Gaussians: the network is smooth, and constant where there are no data.
centers = jnp.linspace(0.6, 3.6, 16)
network = eqx.nn.Sequential(
    [
        eqx.nn.Lambda(lambda r: jnp.exp(-(((r - centers) / 0.25) ** 2))),
        eqx.nn.MLP(16, "scalar", 24, 2, jnp.tanh, key=jax.random.key(1)),
    ]
)


def loss(potential, batch):
    start, measured = batch
    frames = jax.vmap(lambda s: path(potential, s))(start)
    return 100 * sum(jnp.mean((frames[k] - measured[k]) ** 2) for k in ("x", "v"))


schedule = optax.cosine_decay_schedule(0.01, rounds)
optimizer = optax.adam(schedule)
model = pk.potentials.NeuralPair(network)
optimizer_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def step(model, optimizer_state, key):
    pick = jax.random.choice(key, 40, (8,), replace=False)
    batch = jax.tree.map(lambda x: x[pick], (starts, observed))
    value, slopes = eqx.filter_value_and_grad(loss)(model, batch)
    change, optimizer_state = optimizer.update(slopes, optimizer_state)
    return eqx.apply_updates(model, change), optimizer_state, value


losses = []
for k in range(rounds):
    model, optimizer_state, value = step(model, optimizer_state, jax.random.key(k))
    losses.append(float(value))
print(f"loss {losses[0]:.3g} → {np.mean(losses[-20:]):.3g}")

# Only differences of energy matter: the network's is set to 0 far away.
r = jnp.linspace(0.75, 3.4, 300)
learned, exact = model.energy(r), truth.energy(r)
learned = learned - jnp.mean(learned[-30:]) + jnp.mean(exact[-30:])
distances = np.linalg.norm(
    np.asarray(observed["x"])[:, :, :, None] - observed["x"][:, :, None], axis=-1
)
distances = distances[distances > 0]
often = (r > np.quantile(distances, 0.01)) & (r < 3.2)
print(f"largest error where atoms meet: {float(jnp.abs(learned - exact)[often].max()):.3f} ε")

with pk.plot.style():
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(r, exact, color="#333333", lw=4, alpha=0.3, label="Morse, the truth")
left.plot(r, learned, color="#D55E00", label="learned")
left.hist(distances, 60, range=(0.75, 3.4), density=True, bottom=-1.5, color="#0072B2", alpha=0.25)
left.set(xlabel="distance", ylabel="energy / ε", ylim=(-1.5, 2), xlim=(0.75, 3.4))
left.legend(title="shaded: distances in the data")
right.semilogy(losses, color="#0072B2", lw=0.8)
right.set(xlabel="step of training", ylabel="loss")
fig.savefig("neural_potential.png", dpi=150)
