"""Hares and lynx with an unknown appetite: networks inside of equations, trained through the solver.

Lynx do not eat in proportion to the hares that there are: each hare takes time to handle. From eight short
and noisy series of counts two models are learned. In one a network is the whole right-hand side (Chen et al.,
NeurIPS 2018). In the other the equations are known but for how much a lynx eats, and a network is that one
term (Rackauckas et al., arXiv:2001.04385). The term is then read off: of three laws of appetite the data
choose one, with its numbers and their errors. Both models forecast a start that they have never seen, for
four times as long.
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
rounds = 20 if quick else 1500


class Law(pk.Module):
    """How fast a lynx finds a hare: a Hᵖ⁻¹/(1 + a b Hᵖ), with attack rate a and handling time b."""

    attack: jax.Array = pk.param(1.2)
    handling: jax.Array = pk.param(0.6)
    power: int = pk.static(default=1)

    def __call__(self, hares):
        met = self.attack * hares**self.power
        return met / hares / (1 + met * self.handling)


class Predation(pk.AbstractTendency):
    """dH/dt = growth H (1 − H/room) − f(H) H L,   dL/dt = gain f(H) H L − death L, in logarithms of both."""

    appetite: pk.Network | Law
    growth: jax.Array = pk.param(1.0)
    room: jax.Array = pk.param(2.0)
    gain: jax.Array = pk.param(0.5)
    death: jax.Array = pk.param(0.5)

    def rate(self, clock, state):
        hares, lynx = jnp.exp(state)
        found = self.appetite(hares)
        of_hares = self.growth * (1 - hares / self.room) - found * lynx
        return jnp.stack([of_hares, self.gain * found * hares - self.death])


class Anything(pk.AbstractTendency):
    """d log (H, L)/dt = network(H, L): nothing is known, but that no one is born of nothing."""

    network: pk.Network

    def rate(self, clock, state):
        return self.network(jnp.exp(state))


def simulate(tendency, start, steps):
    record = pk.Every(10, y=lambda now: now.state)
    simulation = pk.Simulation(pk.RK4(tendency), dt=0.05, observers=record, guards=())
    return pk.simulate(simulation, start, steps).frames["y"]


# --- data: eight series until t = 10, counted twice in a unit of time, 5 % off --------------------------
truth = Predation(Law(), 0.8, 3.0, 0.6, 0.35)
steps = 200
draws = jax.random.split(jax.random.key(0), 3)
starts = jnp.array([0.4, 0.3]) + jnp.array([2.6, 1.2]) * jax.random.uniform(draws[0], (9, 2))
starts = jnp.log(starts)
exact = jax.jit(jax.vmap(lambda y: simulate(truth, y, steps)))(starts[:8])
data = exact + 0.05 * jax.random.normal(draws[1], exact.shape)
print(f"numbers between {jnp.exp(data.min()):.2f} and {jnp.exp(data.max()):.2f}")

# --- two models -----------------------------------------------------------------------------------------
keys = jax.random.split(jax.random.key(1), 2)
# Numbers are of order one; a chance to be found is positive.
appetite = eqx.nn.Sequential(
    [
        eqx.nn.MLP("scalar", "scalar", 16, 2, jnp.tanh, key=keys[0]),
        eqx.nn.Lambda(jax.nn.softplus),
    ]
)
models = {
    "one term": Predation(pk.Network(appetite)),
    "whole right-hand side": Anything(pk.Network(eqx.nn.MLP(2, 2, 24, 2, jnp.tanh, key=keys[1]))),
}


def trained(model):
    """Weights, numbers and the eight starts: all are unknown. First short pieces, then the whole."""
    arrays, rest = eqx.partition((model, data[:, 0]), eqx.is_inexact_array)
    optimizer = optax.adam(optax.cosine_decay_schedule(0.01, rounds))

    def loss(arrays, num_frames):
        model, first = eqx.combine(arrays, rest)
        predicted = jax.vmap(lambda y: simulate(model, y, 10 * num_frames))(first)
        return jnp.mean(((predicted - data[:, : num_frames + 1]) / 0.05) ** 2)

    @eqx.filter_jit
    def step(arrays, state, num_frames):
        value, slopes = eqx.filter_value_and_grad(loss)(arrays, num_frames)
        change, state = optimizer.update(slopes, state)
        return eqx.apply_updates(arrays, change), state, value

    state, losses = optimizer.init(arrays), []
    for k in range(rounds):
        num_frames = 4 if quick else (4, 10, 20)[min(2, 4 * k // rounds)]
        arrays, state, value = step(arrays, state, num_frames)
        losses.append(float(value))
    return eqx.combine(arrays, rest)[0], losses


learned = {}
for name, model in models.items():
    began = time.perf_counter()
    learned[name], losses = trained(model)
    print(f"{name}: misfit {losses[0]:.3g} → {losses[-1]:.3g} of the noise's variance", end=" ")
    print(f"({time.perf_counter() - began:.0f} s)")

# --- the term is read off -------------------------------------------------------------------------------
laws = {
    "a H": Law(1.0, 0.0),
    "a H/(1 + a b H)": Law(1.0, 0.5),
    "a H²/(1 + a b H²)": Law(1.0, 0.5, power=2),
}
if quick:  # a program less for each
    laws = {"a H/(1 + a b H)": laws["a H/(1 + a b H)"]}
numbers = {
    "attack": lambda m: m[0].appetite.attack,
    "handling": lambda m: m[0].appetite.handling,
    "growth": lambda m: m[0].growth,
    "room": lambda m: m[0].room,
    "gain": lambda m: m[0].gain,
    "death": lambda m: m[0].death,
    "starts": lambda m: m[1],
}


def residuals(unknown):
    model, first = unknown
    return (jax.vmap(lambda y: simulate(model, y, steps))(first) - data) / 0.05


# Each law in place of the network, fitted to the same numbers of hares and lynx.
model = learned["one term"]
fits = {}
for text, law in laws.items():
    # Where a lynx eats in proportion to what there is, it takes no time; nor would room and gain be known.
    held = ("handling", "room") if text == "a H" else ()
    start = Predation(law, model.growth, model.room, model.gain, model.death), data[:, 0]
    free = {name: where for name, where in numbers.items() if name not in held}
    fits[text] = fit = pk.fit(residuals, start, where=free, progress=False)
    print(f"{text}: misfit {np.mean(fit.residuals**2):.2f} of the noise's variance;", end=" ")
    shown = [name for name in free if name != "starts"]
    print(*(f"{k} {fit.values[k]:.3f} ± {fit.standard_errors[k]:.3f}" for k in shown), sep=", ")

# --- a start never seen, four times as long -------------------------------------------------------------
long = 4 * steps
forecast = {name: jnp.exp(simulate(m, starts[8], long)) for name, m in learned.items()}
true = jnp.exp(simulate(truth, starts[8], long))
for name, found in forecast.items():
    off = jnp.sqrt(jnp.mean((jnp.log(found) - jnp.log(true)) ** 2))
    print(f"{name}: a forecast until t = {0.05 * long:g} is off by {100 * float(off):.0f} %")

# --- pictures -------------------------------------------------------------------------------------------
colors = {"one term": "#D55E00", "whole right-hand side": "#0072B2"}
with pk.plot.style():
    fig, panels = plt.subplots(1, 3, figsize=(13, 3.9), layout="constrained")
t = 0.5 * np.arange(steps // 10 + 1)
for k, (color, what) in enumerate((("#0072B2", "hares"), ("#D55E00", "lynx"))):
    for run in (0, 3):
        fitted = jnp.exp(fits["a H/(1 + a b H)"].residuals[run] * 0.05 + data[run])
        panels[0].semilogy(t, jnp.exp(data[run, :, k]), "os"[run > 0], ms=4, color=color)
        panels[0].semilogy(t, fitted[:, k], color=color, lw=1, label=what if run == 0 else None)
panels[0].set(xlabel="time", ylabel="numbers", title="two of eight series; lines: the law found")
panels[0].legend()

hares = jnp.exp(jnp.linspace(data[..., 0].min(), data[..., 0].max(), 80))
eaten = lambda appetite: jax.vmap(appetite)(hares) * hares
panels[1].plot(hares, eaten(truth.appetite), color="#333333", lw=4, alpha=0.3, label="true")
panels[1].plot(hares, eaten(model.appetite), color="#D55E00", label="network, through the solver")
for text, style in zip(laws, (":", "--", "-."), strict=False):
    misfit = np.mean(fits[text].residuals ** 2)
    law = fits[text].model[0].appetite
    more = {"color": "#333333", "ls": style, "lw": 1}
    panels[1].plot(hares, eaten(law), label=f"{text}: misfit {misfit:.1f}", **more)
seen = np.exp(np.asarray(data[..., 0])).ravel()
panels[1].plot(seen, np.full(seen.shape, -0.04), "|", color="#333333", ms=5, alpha=0.4)
panels[1].set(xlabel="hares (ticks: in the data)", ylabel="hares eaten by a lynx, by time")
panels[1].set(ylim=(-0.08, 2.6), title="the unknown term")
panels[1].legend(fontsize=8, loc="upper left")

t = 0.5 * np.arange(long // 10 + 1)
panels[2].plot(t, true[:, 1], color="#333333", lw=4, alpha=0.3, label="true")
for name, found in forecast.items():
    panels[2].plot(t, found[:, 1], color=colors[name], label=name, lw=1.3)
panels[2].axvspan(0, t[-1] / 4, color="#333333", alpha=0.08, lw=0)
panels[2].set(xlabel="time; shaded: as long as the data", ylabel="lynx", ylim=(0, 2.4))
panels[2].set(title="a start that was never seen")
panels[2].legend(fontsize=8)
fig.savefig("neural_ode.png", dpi=150)
