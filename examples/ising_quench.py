"""A quench of the Ising chain in a transverse field: Krylov steps against exact diagonalization.

Ten spins point up; the field is switched on at once. Entanglement grows until it meets the ends.
"""

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import quantum as q

pk.use_compilation_cache()

SPINS, FIELD = 10, 1.0
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
    name: pk.run(pk.Simulation(integrator, dt=0.1, observers=observe), start, 80, progress=False)
    for name, integrator in {
        "Krylov": pk.integrators.Krylov(evolution, 16),
        "Trotter, order 2": pk.integrators.Trotter(evolution),
    }.items()
}

values, vectors = np.linalg.eigh(np.asarray(hamiltonian.matrix((2,) * SPINS)))
psi = vectors.conj().T @ np.asarray(start.amplitudes).reshape(-1)
t = runs["Krylov"].times["m"]
exact = []
for time in t:
    state = q.StateVector.unnormalized(vectors @ (np.exp(-1j * values * time) * psi), (2,) * SPINS)
    exact.append(float(state.expectation(magnetization)))
for name, run in runs.items():
    print(f"{name}: largest difference of the magnetization {np.abs(run['m'] - exact).max():.1e}")

with pk.plot.style():
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot(t, exact, color="#333333", lw=3, alpha=0.3, label="exact diagonalization")
    for (name, run), color in zip(runs.items(), ("#0072B2", "#D55E00"), strict=True):
        left.plot(t, run["m"], color=color, lw=1, label=name)
    left.set(xlabel="$t$", ylabel="magnetization", xlim=(0, 8))
    left.legend()
    right.plot(t, runs["Krylov"]["entropy"], color="#009E73", lw=2)
    right.set(xlabel="$t$", ylabel="entropy of half the chain", xlim=(0, 8), ylim=(0, None))
    fig.savefig("ising_quench.png", dpi=130)
