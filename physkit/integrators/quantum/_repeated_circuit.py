"""A circuit as a step of the loop."""

from physkit.core import Clock, DeclarationError, State, get_component, put_component, static
from physkit.quantum import Circuit, StateVector

from .._integrator import AbstractOneStep


class RepeatedCircuit(AbstractOneStep):
    """A circuit applied once a step: kicked and Floquet systems, rounds of an experiment with noise.

        state' = circuit(state)

    On a `StateVector` noise channels are drawn, by the key of the run; on a `DensityMatrix` they are applied.

    **Arguments:** `circuit`: a `Circuit`. `component`: the state's name, where there are several components.
    """

    circuit: Circuit
    component: str | None = static(default=None)

    def __check_init__(self):
        if not isinstance(self.circuit, Circuit):
            raise DeclarationError("RepeatedCircuit repeats a Circuit(H(0), CNOT(0, 1), …)")

    def step(self, plan: None, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        quantum = get_component(state, self.component)
        if isinstance(quantum, StateVector) and self.circuit.has_channels:
            after = self.circuit.sample_noise(quantum, clock.key)
        else:
            after = self.circuit(quantum)
        return put_component(state, self.component, after), aux
