"""The energy of H2 by a variational circuit: -1.1373 hartree.

One angle of four qubits is fitted; its derivative runs it backwards. Coefficients: Seeley, Richard & Love
(2012).
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import quantum as q

pk.use_compilation_cache()

molecule = pk.systems.hydrogen_molecule()


def energy(circuit):
    return circuit(molecule.occupied).expectation(molecule.hamiltonian) + molecule.repulsion


def double(angle):
    """The double excitation by an angle."""
    return q.Circuit(q.PauliRotation(angle, "YXXX", 0, 1, 2, 3))


chemical = pk.fit(energy, double(0.01), where=lambda c: c, method=pk.fitting.BFGS())
theta = float(chemical.model.gates[0].angle)
angles = np.linspace(-1, 1, 101)
*values, found = np.asarray(
    jax.jit(jax.vmap(lambda a: energy(double(a))))(np.append(angles, theta))
)
exact = float(molecule.exact_energy())
print(f"exact {exact:.6f}, double excitation {found:.6f}")

with pk.plot.style():
    fig, ax = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
    ax.plot(angles, values, color="#0072B2", lw=2, label="double excitation by θ")
    ax.plot(theta, found, "o", color="#D55E00", label="fitted")
    ax.axhline(exact, color="#333333", lw=1, ls="--", label=f"exact, −{-exact:.4f} hartree")
    ax.set(xlabel="angle θ / rad", ylabel="energy / hartree", xlim=(-1, 1))
    ax.legend()
    fig.savefig("hydrogen_vqe.png", dpi=130)
