"""A quench of the Ising chain in a transverse field: Krylov steps against exact diagonalization.

Ten spins point up; the field is switched on at once. Entanglement grows until it meets the ends.
"""

import os

import jax
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import quantum as q

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
SPINS, FIELD, STEPS = (4 if QUICK else 10), 1.0, (20 if QUICK else 80)
chain = {f"Z{k} Z{k + 1}": -1.0 for k in range(SPINS - 1)}
chain |= {f"X{k}": -FIELD for k in range(SPINS)}
hamiltonian = q.PauliSum(chain, SPINS)
magnetization = q.PauliSum({f"Z{k}": 1 / SPINS for k in range(SPINS)}, SPINS)
middle = tuple(range(SPINS // 2))
observe = pk.Every(
    1,
    m=pk.quantities.Expectation(magnetization),
    entropy=pk.quantities.EntanglementEntropy(middle),
    energy=pk.quantities.Expectation(hamiltonian),
)
start = q.StateVector.basis((2,) * SPINS)
evolution = q.UnitaryEvolution(hamiltonian)
runs = {
    name: pk.run(pk.Simulation(integrator, dt=0.1, observers=observe), start, STEPS, progress=False)
    for name, integrator in {
        "Krylov": pk.integrators.Krylov(evolution, 16),
        "Trotter, order 2": pk.integrators.Trotter(evolution),
    }.items()
}

values, vectors = np.linalg.eigh(np.asarray(hamiltonian.matrix((2,) * SPINS)))
psi = vectors.conj().T @ np.asarray(start.amplitudes).reshape(-1)
t = runs["Krylov"].times["m"]
paths = vectors @ (np.exp(-1j * values[:, None] * t) * psi[:, None])
up = 1 - 2 * ((np.arange(2**SPINS)[:, None] >> np.arange(SPINS)) & 1).mean(axis=1)
exact = up @ np.abs(paths) ** 2
errors = {name: np.maximum(np.abs(run["m"] - exact), 1e-16) for name, run in runs.items()}
for name, error in errors.items():
    print(f"{name}: largest difference of the magnetization {error.max():.1e}")

with pk.plot.style():
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
    left.plot(t, exact, color="#333333", lw=3, alpha=0.3, label="exact diagonalization")
    for (name, run), color in zip(runs.items(), ("#0072B2", "#D55E00"), strict=True):
        left.plot(t, run["m"], color=color, lw=1, label=name)
        middle.semilogy(t[1:], errors[name][1:], color=color, lw=1.5)
    left.set(xlabel="time $Jt$", ylabel="magnetization $\\langle\\sigma_z\\rangle$")
    left.legend()
    middle.set(xlabel="time $Jt$", ylabel="error of the magnetization")
    right.plot(t, runs["Krylov"]["entropy"], color="#009E73", lw=2)
    right.set(xlabel="time $Jt$", ylabel="entropy of half the chain", ylim=(0, None))
    for ax in (left, middle, right):
        ax.set_xlim(0, t[-1])
    fig.savefig("ising_quench.png", dpi=130)
