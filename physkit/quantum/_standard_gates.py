"""The usual gates, by their usual names: angles first, then subsystems, controls before targets."""

import numpy as np
from jax.typing import ArrayLike

from ._gates import Controlled, EulerRotation, PauliRotation, Phase, Unitary
from ._pauli_sum import pauli_matrix

FIXED_GATES = ("id", "x", "y", "z", "h", "s", "sdg", "t", "tdg", "sx", "swap")


def fixed_gate(name: str, *sites: int) -> Unitary:
    """A gate without angles by its name in OpenQASM: id, x, y, z, h, s, sdg, t, tdg, sx, swap."""
    root = np.sqrt(0.5)
    matrices = {
        "id": np.eye(2),
        "x": pauli_matrix("X"),
        "y": pauli_matrix("Y"),
        "z": pauli_matrix("Z"),
        "h": root * (pauli_matrix("X") + pauli_matrix("Z")),
        "s": np.diag([1, 1j]),
        "sdg": np.diag([1, -1j]),
        "t": np.diag([1, root + 1j * root]),
        "tdg": np.diag([1, root - 1j * root]),
        "sx": 0.5 * np.array([[1 + 1j, 1 - 1j], [1 - 1j, 1 + 1j]]),
        "swap": np.eye(4)[[0, 2, 1, 3]],
    }
    return Unitary(matrices[name], *sites, name=name)


def X(site: int) -> Unitary:
    """Pauli's X: it exchanges |0⟩ and |1⟩."""
    return fixed_gate("x", site)


def Y(site: int) -> Unitary:
    """Pauli's Y = i X Z."""
    return fixed_gate("y", site)


def Z(site: int) -> Unitary:
    """Pauli's Z: diag(1, −1)."""
    return fixed_gate("z", site)


def H(site: int) -> Unitary:
    """Hadamard's gate (X + Z)/√2."""
    return fixed_gate("h", site)


def S(site: int) -> Unitary:
    """diag(1, i), the root of Z."""
    return fixed_gate("s", site)


def T(site: int) -> Unitary:
    """diag(1, e^{iπ/4}), the root of S."""
    return fixed_gate("t", site)


def SX(site: int) -> Unitary:
    """The root of X, as OpenQASM's sx."""
    return fixed_gate("sx", site)


def RX(angle: ArrayLike, site: int) -> PauliRotation:
    """The rotation exp(−i θ/2 X) by an angle θ."""
    return PauliRotation(angle, "X", site)


def RY(angle: ArrayLike, site: int) -> PauliRotation:
    """The rotation exp(−i θ/2 Y) by an angle θ."""
    return PauliRotation(angle, "Y", site)


def RZ(angle: ArrayLike, site: int) -> PauliRotation:
    """The rotation exp(−i θ/2 Z) by an angle θ."""
    return PauliRotation(angle, "Z", site)


def RXX(angle: ArrayLike, a: int, b: int) -> PauliRotation:
    """The rotation exp(−i θ/2 X⊗X) by an angle θ."""
    return PauliRotation(angle, "XX", a, b)


def RYY(angle: ArrayLike, a: int, b: int) -> PauliRotation:
    """The rotation exp(−i θ/2 Y⊗Y) by an angle θ."""
    return PauliRotation(angle, "YY", a, b)


def RZZ(angle: ArrayLike, a: int, b: int) -> PauliRotation:
    """The rotation exp(−i θ/2 Z⊗Z) by an angle θ."""
    return PauliRotation(angle, "ZZ", a, b)


def P(angle: ArrayLike, site: int) -> Phase:
    """The phase gate diag(1, e^{iφ})."""
    return Phase(angle, site)


def U(theta: ArrayLike, phi: ArrayLike, lam: ArrayLike, site: int) -> EulerRotation:
    """Any gate of one qubit by three angles, as OpenQASM 3 has it."""
    return EulerRotation(theta, phi, lam, site)


def CNOT(control: int, target: int) -> Controlled:
    """X on the target where the control is 1."""
    return X(target).controlled(control)


def CZ(control: int, target: int) -> Controlled:
    """Z on the target where the control is 1."""
    return Z(target).controlled(control)


def CRX(angle: ArrayLike, control: int, target: int) -> Controlled:
    """RX(θ) on the target where the control is 1."""
    return RX(angle, target).controlled(control)


def CRY(angle: ArrayLike, control: int, target: int) -> Controlled:
    """RY(θ) on the target where the control is 1."""
    return RY(angle, target).controlled(control)


def CRZ(angle: ArrayLike, control: int, target: int) -> Controlled:
    """RZ(θ) on the target where the control is 1."""
    return RZ(angle, target).controlled(control)


def CP(angle: ArrayLike, control: int, target: int) -> Controlled:
    """The phase e^{iφ} of |11⟩."""
    return P(angle, target).controlled(control)


def SWAP(a: int, b: int) -> Unitary:
    """Exchanges the states of two qubits."""
    return fixed_gate("swap", a, b)


def Toffoli(control: int, other_control: int, target: int) -> Controlled:
    """X on the target where both controls are 1."""
    return X(target).controlled(control, other_control)
