"""A random circuit of depth 20: rotations of all qubits, then CNOTs of neighbors, shifted by one in turn.

Rates are gates per CPU second, so that other work on the machine hardly matters; both codes may use all cores.
"""

import time
from collections.abc import Callable

from benchmarks._harness import print_measurement

DEPTH, UNIT = 20, "gates/CPU s"


def layers(qubits: int) -> list[tuple]:
    """For each layer the angles of every qubit's rotation, and the pairs."""
    import numpy as np

    rng = np.random.default_rng(0)
    return [
        (
            rng.uniform(0, 2 * np.pi, (qubits, 3)).tolist(),
            [(k, k + 1) for k in range(layer % 2, qubits - 1, 2)],
        )
        for layer in range(DEPTH)
    ]


def rate(run: Callable[[], object], gates: int) -> float:
    best = 0.0
    for _ in range(5):
        began = time.process_time()
        run()
        best = max(best, gates / (time.process_time() - began))
    return best


def with_physkit(size: int, precision: str) -> dict:
    import jax

    from physkit import quantum as q

    del precision  # the environment's jax_enable_x64 decides
    gates = [
        [*(q.U(*angles, k) for k, angles in enumerate(rotations)), *(q.CNOT(*p) for p in pairs)]
        for rotations, pairs in layers(size)
    ]
    circuit = q.Circuit(gates)

    def amplitudes(circuit: q.Circuit) -> jax.Array:
        return circuit(q.StateVector.basis((2,) * size)).amplitudes

    began = time.perf_counter()
    compiled = jax.jit(amplitudes).lower(circuit).compile()
    seconds = time.perf_counter() - began
    jax.block_until_ready(compiled(circuit))
    measured = rate(lambda: jax.block_until_ready(compiled(circuit)), len(circuit.gates))
    return {"rate": measured, "unit": UNIT, "compile": seconds}


def with_aer(size: int, precision: str) -> dict:
    import qiskit
    import qiskit_aer

    circuit = qiskit.QuantumCircuit(size)
    for rotations, pairs in layers(size):
        for k, angles in enumerate(rotations):
            circuit.u(*angles, k)
        for a, b in pairs:
            circuit.cx(a, b)
    gates = circuit.size()
    circuit.save_statevector()
    simulator = qiskit_aer.AerSimulator(
        method="statevector", precision={"float32": "single", "float64": "double"}[precision]
    )

    def run() -> None:
        simulator.run(circuit, shots=1).result()

    run()
    return {"rate": rate(run, gates), "unit": UNIT, "note": "its own fusion of gates"}


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "qiskit-aer": with_aer})
