"""A Fourier neural operator as the closure of filtered flame fronts, trained through the solver.

Who sees a chaotic front only through a blur of width Δ sees another equation: the blurred square of the slope
is not the square of the blurred slope. A Fourier neural operator learns the difference from blurred runs of
high resolution, with a gradient through every step of the coarse solver. It is tested on runs that it has
never seen, against no closure and against Smagorinsky's eddy viscosity, whose constant is trained in the same
way; and on grids of two and four times as many points, with the same weights.
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
rounds = 4 if quick else 300
finer = (128,) if quick else (128, 256)  # grids that the operator has not seen
length, width = 64.0, 5.0  # of the line, of the blur
fine, coarse = pk.Grid([length], (256,)), pk.Grid([length], (64,))
frame = 0.5  # time between frames

# --- the truth: 40 chaotic fronts on 256 points, from after the start has been forgotten ---------------
exact = pk.Simulation(
    pk.ETDRK4(pk.equations.KuramotoSivashinsky()), dt=0.1, observers=pk.Every(5, u=pk.FieldValues())
)


def front(key):
    modes = jax.random.normal(key, (2, 12))
    phase = 2 * np.pi / length * jnp.arange(1, 13)[:, None] * fine.coordinates()[0][None]
    start = pk.Field(modes[0] @ jnp.cos(phase) + modes[1] @ jnp.sin(phase), fine)
    later = pk.simulate(exact, start, 200 if quick else 1000).state
    return pk.simulate(exact, later, 100 if quick else 500).frames["u"]


def blurred(u, points):
    """A Gaussian filter of width Δ, seen at the centers of other cells."""
    n = jnp.arange(points // 2 + 1)
    k = 2 * np.pi / length * n
    shift = 0.5 * length * (1 / points - 1 / u.shape[-1])
    symbol = jnp.exp(-(k**2) * width**2 / 24 + 1j * k * shift) * (n < points // 2)
    modes = jnp.fft.rfft(u)[..., : points // 2 + 1] * symbol
    return jnp.fft.irfft(modes, points) * points / u.shape[-1]


began = time.perf_counter()
runs = jax.jit(jax.vmap(front))(jax.random.split(jax.random.key(0), 12 if quick else 40))
seen = blurred(runs, 64)  # [run, time, point]
train, test = seen[:-8], seen[-8:]
print(f"data: {time.perf_counter() - began:.0f} s")

# --- three closures -------------------------------------------------------------------------------------


class EddyViscosity(pk.AbstractEquation):
    """Smagorinsky's model on a line: ∂u/∂t = ∂/∂x ((C Δ)² |∂u/∂x| ∂u/∂x)."""

    constant: jax.Array = pk.param(0.1)
    component: str | None = pk.static(default=None)

    def nonlinear(self, clock, field):
        slope = field.spectrum().derivative(0).field()
        stress = slope.map(lambda s: (self.constant * width) ** 2 * jnp.abs(s) * s)
        return stress.spectrum().dealiased().derivative(0)


operator = pk.equations.FourierNeuralOperator(1, 20, width=16, depth=2, key=1, scale=1.3)


def simulation(*closure):
    terms = pk.ETDRK4(pk.equations.KuramotoSivashinsky(), *closure)
    return pk.Simulation(terms, dt=0.25, observers=pk.Every(2, u=pk.FieldValues()), guards=())


def forecast(simulation, u, frames, grid=coarse):
    return pk.simulate(simulation, pk.Field(u, grid), 2 * frames).frames["u"]


# --- training: stretches of four frames, eight steps of the solver ---------------------------------------
stretch = 4


def trained(closure, rate):
    optimizer = optax.adam(optax.cosine_decay_schedule(rate, rounds))

    def loss(closure, batch):
        predicted = jax.vmap(lambda u: forecast(simulation(closure), u, stretch))(batch[:, 0])
        return jnp.mean((predicted - batch) ** 2)

    @eqx.filter_jit
    def step(closure, state, key):
        which, when = jax.random.split(key)
        i = jax.random.randint(which, (16,), 0, len(train))
        t = jax.random.randint(when, (16,), 0, train.shape[1] - stretch)
        batch = train[i[:, None], t[:, None] + jnp.arange(stretch + 1)[None]]
        value, slopes = eqx.filter_value_and_grad(loss)(closure, batch)
        change, state = optimizer.update(slopes, state)
        return eqx.apply_updates(closure, change), state, value

    state, values = optimizer.init(eqx.filter(closure, eqx.is_inexact_array)), []
    for k in range(rounds):
        closure, state, value = step(closure, state, jax.random.key(k))
        values.append(float(value))
    return closure, values


began = time.perf_counter()
eddies, _ = trained(EddyViscosity(), 0.03)
print(f"eddies: {time.perf_counter() - began:.0f} s, C = {float(eddies.constant):.3f}")
began = time.perf_counter()
operator, losses = trained(operator, 3e-3)
print(
    f"operator: {time.perf_counter() - began:.0f} s, loss {losses[0]:.3g} → {np.mean(losses[-20:]):.3g}"
)

# --- the test: runs never seen, and ten times as long -----------------------------------------------------
frames = test.shape[1] - 1
closures = {"no closure": (), "Smagorinsky": (eddies,), "operator": (operator,)}


def tested(closure, points):
    start, grid = blurred(runs[-8:, 0], points), pk.Grid([length], (points,))
    run = jax.vmap(lambda u: forecast(simulation(*closure), u, frames, grid))
    return np.asarray(jax.jit(run)(start))


cases = {name: tested(closure, 64) for name, closure in closures.items()}
cases |= {f"operator on {n}": tested(closures["operator"], n) for n in finer}
times = frame * np.arange(frames + 1)
size = float(jnp.sqrt(jnp.mean(test**2)))


def error(u):
    true = np.asarray(blurred(runs[-8:], u.shape[-1]))
    return np.sqrt(np.mean((u - true) ** 2, axis=(0, 2))) / size


def spectrum(u):
    """Mean |û|² of each mode, over the second half of the runs."""
    modes = np.abs(np.fft.rfft(u[:, frames // 2 :])) ** 2 / u.shape[-1] ** 2
    return modes.mean(axis=(0, 1))[1:19]


for name, u in cases.items():
    at = ", ".join(f"{error(u)[int(t / frame)]:.3f}" for t in (2, 5, 10) if t / frame <= frames)
    off = np.exp(np.mean(np.abs(np.log(spectrum(u) / spectrum(np.asarray(test))))))
    print(f"{name}: error {at} of u; modes off by a factor of {off:.2f}")

# --- pictures -------------------------------------------------------------------------------------------
colors = {"no closure": "#0072B2", "Smagorinsky": "#009E73", "operator": "#D55E00"}
with pk.plot.style():
    fig, panels = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
when = min(20, frames)
x = length / 64 * (np.arange(64) + 0.5)
panels[0].plot(x, test[0, when], "o", ms=4, color="#333333", label="truth: 256 points, blurred")
for name, color in colors.items():
    width_of = {"lw": 1.8} if name == "operator" else {"lw": 1}
    panels[0].plot(x, cases[name][0, when], color=color, label=name, **width_of)
    panels[1].plot(times, 100 * error(cases[name]), color=color, label=name, **width_of)
    panels[2].semilogy(2 * np.pi / length * np.arange(1, 19), spectrum(cases[name]), color=color)
for n, style in zip(finer, ("--", ":"), strict=False):
    more = {"color": "#333333", "ls": style, "lw": 1}
    panels[1].plot(times, 100 * error(cases[f"operator on {n}"]), label=f"on {n} points", **more)
panels[2].semilogy(
    2 * np.pi / length * np.arange(1, 19), spectrum(np.asarray(test)), "o", ms=4, color="#333333"
)
panels[0].set(xlabel="x", ylabel=f"u at t = {times[when]:g}, a front never seen", ylim=(-3, 4.6))
panels[0].legend(fontsize=8)
panels[1].axvspan(0, stretch * frame, color="#333333", alpha=0.08, lw=0)
panels[1].set(xlabel="time; shaded: a stretch of training", ylabel="error / % of u")
panels[1].set(xlim=(0, min(30, times[-1])), ylim=(0, 170))
panels[1].legend(fontsize=8)
panels[2].set(xlabel="wavenumber", ylabel="mean square of a mode of u")
fig.savefig("neural_operator.png", dpi=150)
