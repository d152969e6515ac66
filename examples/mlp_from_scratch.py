"""A neural network on bare JAX arrays, timed, then the same in five lines, then at work in a simulation.

A network is a list of matrices and a function of one point. `vmap` makes it a function of many, `grad` gives
the slopes, `jit` the speed. It learns the energy surface of Müller and Brown (Theor. Chim. Acta 53, 75
(1979)), three wells on a bent path, from 2000 noisy energies. A thousand particles then move on what it has
learned.
"""

import os
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import physkit as pk

pk.use_compilation_cache()
quick = "PHYSKIT_QUICK" in os.environ
rounds = 100 if quick else 6000


@jax.jit
def muller_brown(x):
    """The energy at a point of the plane, in hundreds of the units of the paper."""
    height = jnp.array([-2.0, -1.0, -1.7, 0.15])
    a, b, c = jnp.array([[-1.0, -1.0, -6.5, 0.7], [0.0, 0.0, 11.0, 0.6], [-10, -10, -6.5, 0.7]])
    u, v = x[0] - jnp.array([1.0, 0.0, -0.5, -1.0]), x[1] - jnp.array([0.0, 0.5, 1.5, 1.0])
    return jnp.sum(height * jnp.exp(a * u**2 + b * u * v + c * v**2))


# --- data: points below an energy of 3, with noise of 0.05 ----------------------------------------------
where, which = jax.random.split(jax.random.key(0))
low, high = jnp.array([-1.9, -0.7]), jnp.array([1.5, 2.4])
points = low + (high - low) * jax.random.uniform(where, (6000, 2))
points = points[jax.vmap(muller_brown)(points) < 3.0][:2500]
energies = jax.vmap(muller_brown)(points) + 0.05 * jax.random.normal(which, (len(points),))
train, test = slice(0, 2000), slice(2000, None)


# --- a network from scratch -----------------------------------------------------------------------------
def start(key, sizes=(2, 64, 64, 1)):
    """Matrices and biases of every layer, from one key."""
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(k, (n, m)) / m**0.5, jnp.zeros(n)) for k, m, n in pairs]


def network(layers, x):
    """The energy at one point."""
    for matrix, bias in layers[:-1]:
        x = jnp.tanh(matrix @ x + bias)
    matrix, bias = layers[-1]
    return (matrix @ x + bias)[0]


def loss(layers, x, energy):
    return jnp.mean((jax.vmap(network, (None, 0))(layers, x) - energy) ** 2)


def step(layers, speed, x, energy, rate=0.02, memory=0.95):
    """Gradient descent with momentum."""
    slopes = jax.grad(loss)(layers, x, energy)
    speed = jax.tree.map(lambda v, s: memory * v - rate * s, speed, slopes)
    return jax.tree.map(jnp.add, layers, speed), speed


@jax.jit
def batch(key):
    """256 points, drawn anew from the data for each key."""
    pick = jax.random.choice(key, 2000, (256,), replace=False)
    return points[pick], energies[pick]


# --- what vmap and jit are worth ------------------------------------------------------------------------
layers = start(jax.random.key(1))
still = jax.tree.map(jnp.zeros_like, layers)
few = points[:256], energies[:256]


def seconds(function, *args, repeats):
    """The least of several times, after a first call that compiles."""
    jax.block_until_ready(function(*args))
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(function(*args))
        found.append(time.perf_counter() - began)
    return min(found)


many = jax.vmap(network, (None, 0))
times = {
    "256 energies": {
        "Python loop": seconds(lambda l, x: [network(l, y) for y in x], layers, few[0], repeats=3),
        "vmap": seconds(many, layers, few[0], repeats=20),
        "jit of vmap": seconds(jax.jit(many), layers, few[0], repeats=50),
    },
    "a step of training": {
        "without jit": seconds(step, layers, still, *few, repeats=10),
        "jit": seconds(jax.jit(step), layers, still, *few, repeats=50),
    },
}
for what, found in times.items():
    print(what + ":", ", ".join(f"{name} {1e3 * t:.3g} ms" for name, t in found.items()))

# --- training: minibatches by key -----------------------------------------------------------------------
error = jax.jit(lambda layers: jnp.sqrt(loss(layers, points[test], energies[test])))
fast, speed, curve = jax.jit(step), still, []
for k in range(rounds):
    rate = 0.02 * 0.5 * (1 + np.cos(np.pi * k / rounds))
    layers, speed = fast(layers, speed, *batch(jax.random.key(k)), rate)
    if k % 50 == 0:
        curve.append(float(error(layers)))

# --- the same in five lines of Equinox and optax --------------------------------------------------------
model = eqx.nn.MLP(2, "scalar", 64, 2, jnp.tanh, key=jax.random.key(1))
optimizer = optax.adam(optax.cosine_decay_schedule(0.01, rounds))
misfit = lambda model, x, energy: jnp.mean((jax.vmap(model)(x) - energy) ** 2)
state = optimizer.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def better(model, state, x, energy):
    change, state = optimizer.update(eqx.filter_grad(misfit)(model, x, energy), state)
    return eqx.apply_updates(model, change), state


again = []
for k in range(rounds):
    model, state = better(model, state, *batch(jax.random.key(k)))
    if k % 50 == 0:
        again.append(float(jnp.sqrt(misfit(model, points[test], energies[test]))))
print(f"error on points never seen: {error(layers):.3f} from scratch, {again[-1]:.3f} with optax")

# --- the network at work: particles on the surface that it has learned ----------------------------------
walkers = pk.Particles(points[jax.random.choice(jax.random.key(2), 2000, (1000,))])
learned = pk.ExternalEnergy(lambda t, p, layers: jnp.sum(many(layers, p.position)), layers)
true = pk.ExternalEnergy(lambda t, p: jnp.sum(jax.vmap(muller_brown)(p.position)))
temperature = 0.25
positions = {}
for name, force in {"true": true, "learned": learned}.items():
    bath = pk.BAOAB(force, temperature, friction=1.0)
    simulation = pk.Simulation(bath, dt=0.02, observers=pk.Every(50, x=pk.Positions()))
    run = pk.run(simulation, walkers, 200 if quick else 10_000, key=3, progress=False)
    positions[name] = run["x"][len(run["x"]) // 5 :]

# Without friction its energy is conserved: the force is the exact slope of what it has learned.
observers = pk.Every(10, energy=pk.TotalEnergy())
free = pk.Simulation(pk.VelocityVerlet(learned), dt=0.01, observers=observers)
energy = pk.run(
    free, pk.maxwell_boltzmann(4, walkers, temperature), 100 if quick else 1000, progress=False
)["energy"]
print(f"energy of a particle stays to {np.std(energy) / 1000:.1e}")


bins = np.linspace(-1.3, 1.15, 36)


def profile(x):
    """Free energy along x, from the second fifth of the run on, with the error over ten groups of walkers."""
    groups = np.asarray(x)[..., 0].reshape(len(x), 10, -1).transpose(1, 0, 2)
    counts = np.array([np.histogram(g, bins)[0] for g in groups])
    each = -temperature * np.log(np.maximum(counts, 1) / counts.sum(axis=1, keepdims=True))
    each -= each.min(axis=1, keepdims=True)
    return (bins[1:] + bins[:-1]) / 2, each.mean(axis=0), each.std(axis=0) / 3


x, exact, exact_error = profile(positions["true"])
_, found, found_error = profile(positions["learned"])
print(
    f"free energy along x: off by {np.sqrt(np.mean((found - exact) ** 2)) / temperature:.2f} k_BT rms"
)

# --- pictures -------------------------------------------------------------------------------------------
with pk.plot.style():
    fig, axes = plt.subplots(2, 2, figsize=(9.5, 7.5), layout="constrained")
ax = axes[0, 0]
grid = np.stack(np.meshgrid(np.linspace(-1.6, 1.3, 120), np.linspace(-0.5, 2.1, 120)), axis=-1)
levels = np.arange(-1.4, 1.01, 0.2)
surface = jax.vmap(jax.vmap(muller_brown))(jnp.asarray(grid, jnp.float32))
image = jax.vmap(many, (None, 0))(layers, jnp.asarray(grid, jnp.float32))
filled = ax.contourf(*grid.T, np.asarray(image).T, levels, cmap="Blues_r", extend="both")
ax.contour(*grid.T, np.asarray(surface).T, levels, colors="#333333", linewidths=0.6, linestyles="-")
ax.plot(*positions["learned"][-1, :150].T, ".", ms=3, color="#D55E00")
ax.set(
    xlabel="x", ylabel="y", title="colors: learned; lines: true; dots: particles", xlim=(-1.6, 1.3)
)
ax.set(ylim=(-0.5, 2.1))
fig.colorbar(filled, ax=ax, label="energy")

ax = axes[0, 1]
bars = [(f"{what}: {name}", t) for what, found_ in times.items() for name, t in found_.items()]
for k, (_, t) in enumerate(bars):
    ax.barh(-k - (k > 2), 1e3 * t, color="#0072B2" if k < 3 else "#D55E00")
    text = f" {1e3 * t:.3g} ms"
    if k not in (0, 3):
        text += f", {bars[0 if k < 3 else 3][1] / t:.0f} × faster"
    ax.text(1e3 * t, -k - (k > 2), text, va="center", fontsize=9)
labels = [name.replace(": ", ":\n") for name, _ in bars]
ax.set_yticks([-k - (k > 2) for k in range(5)], labels)
ax.set(xscale="log", xlabel="time / ms", title="what vmap and jit are worth", xlim=(0.02, 3e4))

ax = axes[1, 0]
at = 50 * np.arange(len(curve))
ax.semilogy(at, curve, color="#0072B2", label="from scratch: momentum")
ax.semilogy(at, again, color="#D55E00", label="Equinox and optax: Adam")
ax.axhline(0.05, color="#333333", lw=0.8, ls="--", label="noise of the data")
ax.set(xlabel="step of training", ylabel="rms error on points never seen")
ax.legend()

ax = axes[1, 1]
ax.plot(x, exact, color="#333333", lw=4, alpha=0.3, label="on the true surface")
ax.errorbar(x, found, found_error, fmt="o", ms=3, color="#D55E00", label="on the learned one")
ax.set(xlabel="x", ylabel="free energy along x", title=f"1000 particles at $k_BT$ = {temperature}")
ax.legend()
fig.savefig("mlp_from_scratch.png", dpi=150)
