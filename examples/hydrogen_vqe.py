"""The energy of H2 by a variational circuit: -1.1373 hartree.

One angle of four qubits is fitted; its derivative runs it backwards. Coefficients: Seeley, Richard & Love
(2012).
"""

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import quantum as q

pk.use_compilation_cache()

molecule = pk.systems.hydrogen_molecule()


def energy(circuit):
    return circuit(molecule.occupied).expectation(molecule.hamiltonian) + molecule.repulsion


double = q.Circuit(q.PauliRotation(0.01, "YXXX", 0, 1, 2, 3))
chemical = pk.fit(energy, double, where=lambda c: c, method=pk.fitting.BFGS())
exact = float(molecule.exact_energy())
print(f"exact {exact:.6f}, double excitation {energy(chemical.model):.6f}")

with pk.plot.style():
    fig, ax = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
    angles = np.linspace(-1, 1, 101)
    values = [energy(q.Circuit(q.PauliRotation(a, "YXXX", 0, 1, 2, 3))) for a in angles]
    ax.plot(angles, values, color="#0072B2", lw=2, label="double excitation by θ")
    theta = float(chemical.model.gates[0].angle)
    ax.plot(theta, energy(chemical.model), "o", color="#D55E00", label="fitted")
    ax.axhline(exact, color="#333333", lw=1, ls="--", label=f"exact, {exact:.4f} Ha")
    ax.set(xlabel="angle θ", ylabel="energy / hartree", xlim=(-1, 1))
    ax.legend()
    fig.savefig("hydrogen_vqe.png", dpi=130)
