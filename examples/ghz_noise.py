"""A GHZ state under depolarizing noise: fidelity in closed form, and by trajectories.

Each qubit is replaced by the mixed one with probability p. Trajectories of state vectors average to the
density matrix.
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import quantum as q

pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
QUBITS = (2, 3) if QUICK else (2, 4, 6)
TRAJECTORIES = 50 if QUICK else 500
COLORS = "#0072B2", "#D55E00", "#009E73"
p = jnp.linspace(0, 1, 21)


def circuits(n, probability):
    ghz = q.Circuit(q.H(0), [q.CNOT(k, k + 1) for k in range(n - 1)])
    return ghz, q.Circuit(ghz, [q.Depolarizing(probability, k) for k in range(n)])


def fidelities(n, probability, key):
    """Of the density matrix, and averaged over trajectories."""
    ghz, noisy = circuits(n, probability)
    start = q.StateVector.basis((2,) * n)
    pure = ghz(start)
    draw = jax.vmap(lambda key: q.fidelity(pure, noisy.sample_noise(start, key)))
    drawn = draw(jax.random.split(key, TRAJECTORIES))
    return q.fidelity(pure, noisy(start.density())), jnp.mean(drawn)


keys = jax.random.split(jax.random.key(0), len(p))
with pk.plot.style():
    fig, ax = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
    for n, color in zip(QUBITS, COLORS, strict=False):
        x = np.linspace(0, 1, 201)
        closed = 0.5 * ((1 - x / 2) ** n + (x / 2) ** n + (1 - x) ** n)
        computed, drawn = jax.jit(jax.vmap(lambda v, key, n=n: fidelities(n, v, key)))(p, keys)
        ax.plot(x, closed, color=color, lw=1, label=f"{n} qubits")
        ax.plot(p, computed, "o", color=color, ms=5)
        ax.plot(p, drawn, "x", color=color, ms=4)
        difference = 0.5 * ((1 - p / 2) ** n + (p / 2) ** n + (1 - p) ** n) - computed
        print(f"{n} qubits: largest difference from the closed form {np.abs(difference).max():.1e}")
    ax.plot([], [], "o", color="#333333", ms=5, label="density matrix")
    ax.plot([], [], "x", color="#333333", ms=4, label=f"{TRAJECTORIES} trajectories")
    ax.set(xlabel="probability $p$", ylabel="fidelity", xlim=(0, 1), ylim=(0, 1))
    ax.legend()
    fig.savefig("ghz_noise.png", dpi=130)
