"""The hydrogen molecule on four qubits."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import Module, param
from physkit.quantum import PauliSum, StateVector

# In hartree, by Jordan and Wigner, orbital k on qubit k: bonding up and down, antibonding up and down.
_COEFFICIENTS = {
    "IIII": -0.81261, "ZIII": 0.171201, "IZII": 0.171201, "IIZI": -0.2227965, "IIIZ": -0.2227965,
    "ZZII": 0.16862325, "ZIZI": 0.12054625, "IZIZ": 0.12054625, "ZIIZ": 0.165868, "IZZI": 0.165868,
    "IIZZ": 0.17434925, "YYXX": -0.04532175, "XXYY": -0.04532175, "XYYX": 0.04532175,
    "YXXY": 0.04532175,
}  # fmt: skip
_DISTANCE = 1.401  # bohr


class Hydrogen(Module):
    """What `hydrogen_molecule` returns.

    - `hamiltonian`: of the electrons, hartree. `occupied`: the Hartree–Fock state |1100⟩.
    - `repulsion`: energy of the nuclei, hartree, which adds to that of the electrons.
    """

    hamiltonian: PauliSum
    occupied: StateVector
    repulsion: Float[Array, ""] = param()

    def exact_energy(self) -> Float[Array, ""]:
        """The lowest eigenvalue of the whole Hamiltonian, with the nuclei: −1.1373 hartree."""
        matrix = np.asarray(self.hamiltonian.matrix(self.occupied.dims))
        return jnp.asarray(np.linalg.eigvalsh(matrix)[0]) + self.repulsion


def hydrogen_molecule() -> Hydrogen:
    """H₂ in the STO-3G basis at 1.401 bohr, by Jordan and Wigner on four qubits: for variational circuits.

    Its exact energy is −1.1373 hartree, that of `occupied` −1.1167.

    **Reference:** Seeley, Richard & Love, J. Chem. Phys. 137, 224109 (2012).
    """
    return Hydrogen(
        PauliSum(_COEFFICIENTS), StateVector.basis((2,) * 4, (1, 1, 0, 0)), 1 / _DISTANCE
    )
