"""Published numbers of qubits and open systems."""
