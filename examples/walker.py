"""A body of masses and springs learns to walk: muscles, a floor with friction, and a loss without a gradient.

Every spring is a muscle: its rest length swings, by an amplitude and with a phase of its own. The feet push on
a stiff floor and slip where friction gives way. How far the body comes within some seconds is a rough function
of the gait, with cliffs where it falls over: CMA-ES finds a gait by comparing.
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()
QUICK = "PHYSKIT_QUICK" in os.environ
DT, STEPS, EVERY = 0.004, 250 if QUICK else 1500, 5
COLUMNS, STIFFNESS, DAMPING, FRICTION, FREQUENCY = 4, 2500.0, 25.0, 0.8, 1.5
FLOOR_STIFFNESS, FLOOR_DAMPING, LARGEST = 6000.0, 80.0, 0.12

# Two rows of masses, and a pair of legs under the ends; springs between all that are near.
body = np.array([(0.4 * i, 0.4 + 0.4 * j) for j in range(2) for i in range(COLUMNS)])
REST = np.concatenate([body, [(0.0, 0.02), (0.4 * (COLUMNS - 1), 0.02)]])
PAIRS = np.array(
    [(i, j) for i in range(len(REST)) for j in range(i) if np.linalg.norm(REST[i] - REST[j]) < 0.6]
)
I, J = PAIRS.T
LENGTH = jnp.asarray(np.linalg.norm(REST[I] - REST[J], axis=1))
# Forces of springs on masses by a product: +1 at one end, −1 at the other.
ENDS = jnp.asarray(
    (np.arange(len(REST))[:, None] == I) * 1.0 - (np.arange(len(REST))[:, None] == J)
)


class Walking(pk.AbstractOneStep):
    """Positions and velocities, `[2, masses, 2]`; `gait` is the amplitude and the phase of each muscle."""

    gait: jax.Array

    def step(self, plan, clock, state, aux):
        x, v = state
        drive, phase = self.gait
        swing = LARGEST * jnp.tanh(drive) * jnp.sin(2 * jnp.pi * FREQUENCY * clock.t + phase)
        # Muscles begin gently.
        rest = LENGTH * (1 + swing * jnp.minimum(clock.t, 1.0))
        r, u = x[I] - x[J], v[I] - v[J]
        length = jnp.sqrt(jnp.sum(r**2, axis=1))
        along = r / length[:, None]
        pull = -STIFFNESS * (length - rest) - DAMPING * jnp.sum(u * along, axis=1)
        force = jnp.einsum("ms,sd->md", ENDS, pull[:, None] * along, precision="highest")
        # The floor pushes, and holds by friction up to μ times as much.
        depth = jnp.maximum(-x[:, 1], 0)
        push = jnp.maximum(FLOOR_STIFFNESS * depth - FLOOR_DAMPING * v[:, 1], 0) * (depth > 0)
        grip = -FRICTION * push * jnp.tanh(v[:, 0] / 0.05)
        force = force + jnp.stack([grip, push - 9.81], axis=1)
        v = v + DT * force
        return jnp.stack([x + DT * v, v]), aux


start = jnp.asarray(np.stack([REST, np.zeros(REST.shape)]))


def path(gait):
    """Positions of the masses, `[t, masses, 2]`."""
    watch = pk.Every(EVERY, x=lambda now: now.state[0])
    return pk.simulate(pk.Simulation(Walking(gait), dt=DT, observers=watch), start, STEPS).frames[
        "x"
    ]


def distance(path):
    """How far the body comes."""
    return path[-1, :, 0].mean() - REST[:, 0].mean()


first = jnp.asarray(0.3 * np.random.default_rng(0).normal(size=(2, len(PAIRS))))
method = pk.fitting.CMAES(sigma=0.7, population=32, max_generations=2 if QUICK else 120)
found = pk.fit(
    lambda gait: -distance(path(gait)),
    first,
    where=lambda g: g,
    bounds=pk.bounds.Unbounded(1.0),
    method=method,
    key=1,
    progress=False,
)
by_gait = jax.jit(path)
walk, still = (np.asarray(by_gait(g)) for g in (found.model, first))
print(
    f"{distance(still):.2f} m in {STEPS * DT:g} s before the search, {distance(walk):.2f} m after it"
)

with pk.plot.style():
    figure = plt.figure(figsize=(10, 5.4), layout="constrained")
    panels = figure.subplot_mosaic([["walk", "walk"], ["way", "search"]], height_ratios=(1, 1.3))
    for k, n in enumerate(np.linspace(0, len(walk) - 1, 6).astype(int)):
        color = plt.get_cmap("viridis")(0.18 * k)
        for i, j in PAIRS:
            panels["walk"].plot(*walk[n][[i, j]].T, color=color, lw=1.2)
        panels["walk"].plot(*walk[n].T, "o", color=color, ms=3)
    panels["walk"].axhline(0, color="#8c6d46", lw=2)
    panels["walk"].set(xlabel="$x$ / m", ylabel="height / m", aspect="equal", ylim=(-0.15, 1.05))
    panels["walk"].set_title("The gait that was found, at six times")
    t = np.arange(len(walk)) * EVERY * DT
    panels["way"].plot(t, walk[:, :, 0].mean(axis=1), color="#0072B2", label="after the search")
    panels["way"].plot(t, still[:, :, 0].mean(axis=1), color="#999999", label="before")
    panels["way"].set(xlabel="time / s", ylabel="$x$ of the center / m", xlim=(0, t[-1]))
    panels["way"].legend(frameon=False, loc="upper left")
    panels["search"].plot(
        found.history.evaluations, -np.asarray(found.history.loss), color="#D55E00"
    )
    panels["search"].set(xlabel="walks tried", ylabel="the farthest / m", ylim=(0, None))
    figure.savefig("walker.png", dpi=130)
