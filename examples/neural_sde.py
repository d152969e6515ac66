"""Drift and diffusion of a noisy process, learned by two networks through a stochastic solver.

A coordinate jumps between two wells, with noise that depends on where it is, and is seen at intervals so long
that differences are no rates. One way to learn from such data takes the differences for one step of Euler and
Maruyama: it is quick and biased. The other one simulates what happens between two observations, many times,
and compares the distribution that comes out with what came next, by a proper score (Gneiting and Raftery, J.
Am. Stat. Assoc. 102, 359 (2007)): its least value is at the truth, however long the interval. The gradient
goes through the noise. Neither the density far later nor the times of passage between the wells were shown to
the networks.
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
interval = 0.3  # between observations; the wells relax at a rate of 2
paths, frames = (200, 50) if quick else (400, 100)


def drift(t, x):
    return x - x**3


def diffusion(t, x):
    return 0.6 + 0.2 * jnp.tanh(2 * x)


# --- data: 400 paths of 100 observations, by steps of 0.01 ----------------------------------------------
exact = pk.integrators.EulerMaruyama(drift, diffusion=diffusion)


def observed(integrator, dt, start, count, key):
    every = round(interval / dt)
    record = pk.Every(every, x=lambda now: now.state)
    simulation = pk.Simulation(integrator, dt=dt, observers=record, guards=())
    return pk.simulate(simulation, start, count * every, key=key).frames["x"]


draws = jax.random.split(jax.random.key(0), 2)
begin = jax.random.normal(draws[0], (paths,))
data = jax.jit(lambda: observed(exact, 0.01, begin, frames, draws[1]))()  # [frame, path]
now, later = data[:-1].reshape(-1), data[1:].reshape(-1)


# --- two networks ---------------------------------------------------------------------------------------
def make_network(key):
    return pk.Network(eqx.nn.MLP("scalar", "scalar", 16, 2, jnp.tanh, key=key))


class Drift(pk.AbstractTendency):
    network: pk.Network

    def rate(self, clock, x):
        return jax.vmap(self.network)(x)


class Diffusion(pk.AbstractTendency):
    """An amplitude that is positive."""

    network: pk.Network

    def rate(self, clock, x):
        return jax.nn.softplus(jax.vmap(self.network)(x))


keys = jax.random.split(jax.random.key(1), 2)
first = pk.integrators.EulerMaruyama(
    Drift(make_network(keys[0])), diffusion=Diffusion(make_network(keys[1]))
)


def at(integrator, x):
    """f and b at places x."""
    clock = pk.components.Clock.at(pk.core.StepCount.of(0), 0.0, 1.0)
    caches = integrator.init(None, clock, x)
    return integrator.drift(clock, x, caches[0])[0], integrator.diffusion(clock, x, caches[1])[0]


# --- two losses -----------------------------------------------------------------------------------------
def likelihood(model, x, y, key):
    """−log of the density of one Euler–Maruyama step of the whole interval."""
    f, b = at(model, x)
    return jnp.mean(0.5 * ((y - x - f * interval) / b) ** 2 / interval + jnp.log(b))


num_copies, substeps = 8, 10


def score(model, x, y, key):
    """⟨|X − y|⟩ − ½ ⟨|X − X′|⟩ over simulated copies X, X′: the continuous ranked probability score."""
    start = jnp.tile(x, num_copies)
    simulation = pk.Simulation(model, dt=interval / substeps, guards=())
    ends = pk.simulate(simulation, start, substeps, key=key).state.reshape(num_copies, -1)
    miss = jnp.mean(abs(ends - y[None]))
    apart = jnp.sum(jnp.mean(abs(ends[:, None] - ends[None]), axis=2))
    return miss - 0.5 * apart / (num_copies * (num_copies - 1))


def trained(model, loss, rounds, size, rate):
    optimizer = optax.adam(optax.cosine_decay_schedule(rate, rounds))
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)

    @jax.jit
    def all_steps(arrays):
        def step(carry, key):
            arrays, state = carry
            which, noise = jax.random.split(key)
            pick = jax.random.randint(which, (size,), 0, len(now))
            value, slopes = jax.value_and_grad(
                lambda a: loss(eqx.combine(a, rest), now[pick], later[pick], noise)
            )(arrays)
            change, state = optimizer.update(slopes, state)
            return (optax.apply_updates(arrays, change), state), value

        start = arrays, optimizer.init(arrays)
        (arrays, _), values = jax.lax.scan(step, start, jax.random.split(jax.random.key(2), rounds))
        return arrays, values

    began = time.perf_counter()
    arrays, _ = jax.block_until_ready(all_steps(arrays))
    print(f"{loss.__name__}: {time.perf_counter() - began:.0f} s")
    return eqx.combine(arrays, rest)


one_step = trained(first, likelihood, 100 if quick else 4000, 2048, 0.01)
through = trained(one_step, score, 20 if quick else 500, 1024, 0.003)

# --- drift and diffusion where 98 % of the data are -----------------------------------------------------
x = jnp.linspace(float(now.min()), float(now.max()), 401)
most = (x > jnp.quantile(now, 0.01)) & (x < jnp.quantile(now, 0.99))
curves = {"true": (drift(0, x), diffusion(0, x)), "one step": at(one_step, x)}
curves["through the solver"] = at(through, x)


def consequences(f, b):
    """What no network was shown: the density far later, and the mean time of passage from x = −1 to 1.

    p = exp(2 ∫ f/b²)/b² up to a factor; T = ∫ 2/(p b²) (∫ p) from −1 to 1.
    """
    h, rate = float(x[1] - x[0]), np.asarray(f / b**2, float)
    exponent = 2 * h * np.concatenate([[0], np.cumsum((rate[1:] + rate[:-1]) / 2)])
    density = np.exp(exponent - exponent.max()) / np.asarray(b, float) ** 2
    density /= density.sum() * h
    inside = 2 * np.cumsum(density) * h / (density * np.asarray(b, float) ** 2)
    return density, inside[(x >= -1) & (x <= 1)].sum() * h


densities, passage = {}, {}
for name, (f, b) in curves.items():
    densities[name], passage[name] = consequences(f, b)
    true_f, true_b = curves["true"]
    off = [float(jnp.sqrt(jnp.mean((a - c)[most] ** 2))) for a, c in ((f, true_f), (b, true_b))]
    print(f"{name}: drift off by {off[0]:.3f}, diffusion by {off[1]:.3f} rms;", end=" ")
    print(f"passage takes {passage[name]:.2f}")

# --- pictures -------------------------------------------------------------------------------------------
styles = {
    "true": {"color": "#333333", "lw": 4, "alpha": 0.3},
    "one step": {"color": "#0072B2", "lw": 1.3},
    "through the solver": {"color": "#D55E00", "lw": 1.8},
}
with pk.plot.style():
    fig, panels = plt.subplots(1, 3, figsize=(12.5, 3.8), layout="constrained")
for name, style in styles.items():
    for ax, y in zip(panels, (*curves[name], densities[name]), strict=True):
        ax.plot(x[most], y[most], label=name, **style)
panels[0].set(xlabel="x", ylabel="drift", title=f"seen at intervals of {interval}")
panels[0].legend()
panels[1].set(xlabel="x", ylabel="diffusion", title="amplitude b of the noise", ylim=(0, None))
panels[2].hist(now, 60, density=True, color="#0072B2", alpha=0.2, label="data")
panels[2].set(xlabel="x", ylabel="density far later", xlim=(float(x[most][0]), float(x[most][-1])))
labels = [*(f"{name}: {passage[name]:.0f}" for name in styles), "data"]
panels[2].legend(labels, fontsize=8, title="mean passage from −1 to 1", title_fontsize=8)
fig.savefig("neural_sde.png", dpi=150)
