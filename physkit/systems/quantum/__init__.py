"""Qubits: a molecule on four of them, a gate on a transmon."""
