"""The energy of a chain of spins after a deep circuit, and its gradient by all angles.

The circuit is hardware-efficient: RY and RZ of every qubit, then CNOTs of neighbors. Times are CPU seconds, by
which other work on the machine hardly matters: an evaluation, and value and gradient.
"""

import statistics
import time
from collections.abc import Callable

from benchmarks._harness import print_measurement

DEPTH, ROUNDS = 20, 9


def cpu_seconds(run: Callable[[], object]) -> float:
    """Of one call, out of as many as take a tenth of a second."""
    calls, spent = 1, 0.0
    while True:
        began = time.process_time()
        for _ in range(calls):
            run()
        spent = time.process_time() - began
        if spent > 0.1:
            return spent / calls
        calls *= 2


def with_physkit(size: int, precision: str) -> dict:
    import jax
    import numpy as np

    from physkit import quantum as q

    bytes_each = {"float32": 8, "float64": 16}[precision]  # jax_enable_x64 is the environment's
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, (DEPTH, size, 2)).tolist()
    gates = []
    for layer in angles:
        gates += [gate for k, (a, b) in enumerate(layer) for gate in (q.RY(a, k), q.RZ(b, k))]
        gates += [q.CNOT(k, k + 1) for k in range(size - 1)]
    circuit = q.Circuit(gates)
    chain = {f"Z{k} Z{k + 1}": -1.0 for k in range(size - 1)} | {f"X{k}": -0.7 for k in range(size)}
    hamiltonian = q.PauliSum(chain, qubits=size)

    def energy(circuit: q.Circuit) -> jax.Array:
        return circuit(q.StateVector.basis((2,) * size)).expectation(hamiltonian)

    began = time.perf_counter()
    both = jax.jit(jax.value_and_grad(energy)).lower(circuit).compile()
    compiling = time.perf_counter() - began
    alone = jax.jit(energy).lower(circuit).compile()
    pairs = [
        tuple(cpu_seconds(lambda f=f: jax.block_until_ready(f(circuit))) for f in (alone, both))
        for _ in range(ROUNDS)
    ]
    ratio = statistics.median(b / a for a, b in pairs)
    a, b = (min(column) for column in zip(*pairs, strict=True))
    states = both.memory_analysis().temp_size_in_bytes / (2**size * bytes_each)
    note = f"{ratio:.2f}× an evaluation ({1e3 * a:.3g} ms), memory of {states:.1f} states"
    return {"rate": 1 / b, "unit": "gradients/CPU s", "compile": compiling, "note": note}


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit})
