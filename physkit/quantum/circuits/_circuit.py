"""Circuits: gates and channels one after the other, differentiated by running them backwards."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax

from physkit.core import (
    DeclarationError,
    Module,
    ShapeError,
    as_key,
    describe,
    drop_outdated_programs,
    static,
)

from .._channels import AbstractChannel, ChannelOnAxes
from .._density_matrix import DensityMatrix
from .._gates import AbstractGate
from .._quantum_state import AbstractQuantumState
from .._register import Register
from .._state_vector import StateVector
from ._own_operations import check_own_operations
from ._reversible_circuit import apply_gates

Q = TypeVar("Q", bound=AbstractQuantumState)


class Circuit(Module):
    """Gates and noise channels, applied one after the other.

        bell = Circuit(H(0), CNOT(0, 1))
        state = bell(StateVector.basis((2, 2)))

    A circuit is a pytree whose leaves are the angles of its gates: `jax.grad`, `vmap`, `fit` and `sweep` take
    it as it is. Of gates alone the derivative runs the circuit backwards from its end, U†, instead of storing
    the states between: memory does not grow with the number of gates. Forward mode works, too.

    **Arguments:** gates, channels, other circuits, lists of such, in the order of time.

    **Errors:** `DeclarationError` for a channel on a `StateVector`; `ShapeError` for a subsystem that the state
    does not have.

    **Notes:** in single precision the way back adds rounding errors of the gates to the derivative, about
    1e-7 √gates.
    """

    gates: tuple[AbstractGate | AbstractChannel, ...]
    num_sites: int = static()

    def __init__(self, *gates: "AbstractGate | AbstractChannel | Circuit | Sequence"):
        flat = list(_flatten(gates))
        for gate in flat:
            if not isinstance(gate, AbstractGate | AbstractChannel):
                raise DeclarationError(
                    f"a circuit is made of gates and channels, e.g. H(0), CNOT(0, 1); got {describe(gate)}"
                )
        if not flat:
            raise DeclarationError("a circuit has at least one gate, e.g. Circuit(H(0))")
        self.gates = tuple(flat)
        self.num_sites = 1 + max(max(gate.sites) for gate in flat)

    def __call__(self, state: Q) -> Q:
        """The state after the circuit; of the kind that `state` is."""
        if isinstance(state, StateVector) and self.has_channels:
            raise DeclarationError(
                "this circuit has noise channels, which make a pure state mixed: give it "
                "state.density(), or draw trajectories with circuit.sample_noise(state, key)"
            )
        if not isinstance(state, StateVector | DensityMatrix):
            raise DeclarationError(
                f"a circuit takes a StateVector or a DensityMatrix; got {describe(state)}"
            )
        if self.num_sites > len(state.dims):
            raise ShapeError(
                f"a circuit on {self.num_sites} subsystems; the state has {len(state.dims)}"
            )
        check_own_operations(self.gates, state.dims)
        drop_outdated_programs(self)
        return _run(self, state)

    @property
    def has_channels(self) -> bool:
        """Whether it has channels, so that it takes density matrices only."""
        return any(isinstance(gate, AbstractChannel) for gate in self.gates)

    def inverse(self) -> "Circuit":
        """The circuit that undoes this one.

        **Errors:** `DeclarationError` for one with channels, which nothing undoes.
        """
        if self.has_channels:
            raise DeclarationError("a circuit with noise channels has no inverse")
        return Circuit(*(gate.inverse() for gate in reversed(self.gates)))  # pyright: ignore

    def __add__(self, other: "Circuit") -> "Circuit":
        return Circuit(self, other)

    def sample_noise(self, state: StateVector, key: Any) -> StateVector:
        """One quantum trajectory through the circuit: of each channel one Kraus operator, drawn by its weight.

        The mean of |ψ⟩⟨ψ| over keys is what the circuit makes of `state.density()`.
        """
        check_own_operations(self.gates, state.dims)
        drop_outdated_programs(self)
        return _sample(self, state, as_key(key))


def _flatten(gates: Any) -> Iterator[Any]:
    """Gates one after the other, out of circuits and nested lists."""
    for gate in gates:
        if isinstance(gate, Circuit):
            yield from gate.gates
        elif isinstance(gate, list | tuple):
            yield from _flatten(gate)
        else:
            yield gate


@eqx.filter_jit
def _run(circuit: Circuit, state: Any) -> Any:
    if isinstance(state, StateVector):
        return state.with_array(apply_gates(circuit.gates, state.array, state.register))
    # On the columns the complex conjugate, at once with what acts on the rows.
    n, both = len(state.dims), []
    for gate in circuit.gates:
        if isinstance(gate, AbstractChannel):
            both.append(ChannelOnAxes(gate, (*gate.sites, *(n + s for s in gate.sites))))
        else:
            both += [gate, gate.conjugate().on(*(n + s for s in gate.sites))]
    return state.with_array(
        apply_gates(both, state.array, Register(state.array.shape), not circuit.has_channels)
    )


@eqx.filter_jit
def _sample(circuit: Circuit, state: StateVector, key: Any) -> StateVector:
    state.register.require_whole("noise that is drawn")
    x = state.array
    for number, gate in enumerate(circuit.gates):
        if isinstance(gate, AbstractChannel):
            x = gate.sample(x, jax.random.fold_in(key, number))
        else:
            x = gate.apply(x)
    return state.with_array(x)
