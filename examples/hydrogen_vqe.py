"""The energy of H2 by a variational circuit: the bond, its length and its breaking.

One angle of four qubits is fitted at every distance of the nuclei. Coefficients of the Hamiltonian come from
integrals over Gaussians (STO-3G), so that the bond length is fitted by its gradient, together with the angle.
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import quantum as q

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
distances = np.linspace(0.7, 6.0, 12 if QUICK else 36)  # bohr


def prepared(angle):
    """The double excitation by an angle, from the Hartree-Fock state."""
    circuit = q.Circuit(q.PauliRotation(angle, "YXXX", 0, 1, 2, 3))
    return circuit(pk.systems.hydrogen_molecule().occupied)


def energy(angle, distance):
    molecule = pk.systems.hydrogen_molecule(distance)
    return prepared(angle).expectation(molecule.hamiltonian) + molecule.repulsion


# All distances at once: their angles are independent of one another.
curve = pk.fit(
    lambda angles: jnp.mean(jax.vmap(energy)(angles, distances)),
    jnp.full(len(distances), 0.3),
    where=lambda a: {"angles": a},
    bounds=pk.bounds.Unbounded(1.0),
    method=pk.fitting.BFGS(tolerance=1e-12, max_steps=300),
    progress=False,
)


@jax.jit
@jax.vmap
def along(distance):
    """The energies of Hartree and Fock, and of exact diagonalization."""
    return energy(0.0, distance), pk.systems.hydrogen_molecule(distance).exact_energy()


@jax.jit
@jax.vmap
def along_fit(angle, distance):
    """The energy, and how entangled the bonding and the antibonding orbital are."""
    return energy(angle, distance), prepared(angle).entropy((0, 1))


fine = np.linspace(distances[0], distances[-1], 5 * (len(distances) - 1) + 1)
hartree_fock, exact = along(fine)
found, entropy = along_fit(curve.model, distances)
print(f"above exact diagonalization by up to {np.max(found - exact[::5]):.0e} hartree")

bond = pk.fit(
    lambda m: energy(m["angle"], m["distance"]),
    {"angle": jnp.asarray(0.1), "distance": jnp.asarray(1.6)},
    where=lambda m: m,
    bounds={"distance": pk.bounds.PositiveBound()},
    method=pk.fitting.BFGS(),
    progress=False,
)
length, depth = float(bond.model["distance"]), float(bond.loss)
print(f"bond length {length:.4f} bohr, energy {depth:.5f} hartree")

with pk.plot.style():
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(9.6, 3.9), layout="constrained", width_ratios=(3, 2)
    )
    left.plot(fine, hartree_fock, color="#999999", lw=2, ls="--", label="Hartree–Fock")
    left.plot(fine, exact, color="#333333", lw=1.5, label="exact diagonalization")
    left.plot(distances, found, "o", color="#0072B2", ms=5, label="circuit of one angle")
    left.plot(
        length,
        depth,
        "*",
        color="#D55E00",
        ms=13,
        label=f"bond by gradient: {length:.3f} bohr, −{-depth:.4f} hartree",
    )
    left.set(
        xlabel="distance / bohr", ylabel="energy / hartree", xlim=(0.5, 6.1), ylim=(-1.18, -0.55)
    )
    left.legend()
    right.plot(distances, entropy, "o-", color="#0072B2", ms=4, lw=1.5)
    right.axhline(np.log(2), color="#333333", lw=1, ls="--")
    right.annotate("ln 2: two atoms", (0.7, np.log(2) + 0.01))
    right.set(
        xlabel="distance / bohr",
        ylabel="entanglement entropy of\nbonding and antibonding orbital",
        xlim=(0.5, 6.1),
        ylim=(0, 0.76),
    )
    fig.savefig("hydrogen_vqe.png", dpi=130)
