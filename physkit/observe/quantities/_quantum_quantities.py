"""Quantities of quantum states: expectations, probabilities, measures of mixture."""

from typing import Any

from jaxtyping import Array, Float

from physkit.core import ComponentError, State, describe, get_component, static
from physkit.quantum import AbstractOperator, AbstractQuantumState, fidelity

from .._observer import AbstractQuantity
from .._snapshot import Snapshot


class Expectation(AbstractQuantity):
    """⟨O⟩ of an operator: its real part, at the time of the snapshot where the operator is driven.

    **Arguments:**

    - `operator`: a `PauliSum`, a `LocalOperator`, a sum of such.
    - `component`: the state's name, where there are several components.

    **Returns:** a scalar.
    """

    operator: AbstractOperator
    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        state = require_quantum_state(snapshot.state, self.component)
        return state.expectation(self.operator, snapshot.clock.t)


class Probabilities(AbstractQuantity):
    """Probabilities of the outcomes of some subsystems, of all if left out.

    **Arguments:** `sites`: the subsystems. `component`: the state's name, where there are several components.

    **Returns:** an axis for each of `sites`, in their order.
    """

    sites: tuple[int, ...] | None = static(default=None)
    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, "..."]:
        return require_quantum_state(snapshot.state, self.component).probabilities(self.sites)


class Purity(AbstractQuantity):
    """Tr ρ²: 1 of a pure state, 1/D of the maximally mixed one.

    **Arguments:** `component`: the state's name, where there are several components.

    **Returns:** a scalar.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        return require_quantum_state(snapshot.state, self.component).purity()


class EntanglementEntropy(AbstractQuantity):
    """−Tr ρ ln ρ of some subsystems, in nats.

    **Arguments:** `sites`: the subsystems. `component`: the state's name, where there are several components.

    **Returns:** a scalar.
    """

    sites: tuple[int, ...] = static()
    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        return require_quantum_state(snapshot.state, self.component).entropy(self.sites)


class Fidelity(AbstractQuantity):
    """How alike the state is to a given one, 0 … 1.

    **Arguments:** `target`: a `StateVector` or a `DensityMatrix`. `component`: the state's name, where there
    are several components.

    **Returns:** a scalar.
    """

    target: AbstractQuantumState
    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        return fidelity(require_quantum_state(snapshot.state, self.component), self.target)


def require_quantum_state(state: State, name: str | None) -> Any:
    """The quantum state called `name`.

    **Errors:** `ComponentError` where the component is none.
    """
    found = get_component(state, name)
    if not isinstance(found, AbstractQuantumState):
        raise ComponentError(f"this reads a StateVector or a DensityMatrix; got {describe(found)}")
    return found
