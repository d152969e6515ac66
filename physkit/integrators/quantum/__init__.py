"""Qubits and open systems: exponentials, splittings and trajectories."""
