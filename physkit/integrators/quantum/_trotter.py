"""The split-operator method for sums of Pauli strings and of local operators."""

from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Aux,
    Clock,
    DeclarationError,
    ParameterError,
    Plan,
    State,
    matmul,
    param,
    put_component,
    static,
)
from physkit.quantum import (
    AbstractGate,
    AbstractOperator,
    Driven,
    LocalOperator,
    OperatorSum,
    PauliRotation,
    PauliSum,
    Scaled,
    StateVector,
    UnitaryEvolution,
    apply_gates,
    apply_matrix,
)

from .._integrator import AbstractIntegrator, AbstractOneStep, StepSize, TermsWithCaches
from .._splitting_coefficients import YOSHIDA
from ..splitting._symmetric_composition import Composition


class Trotter(AbstractIntegrator):
    """Every term's exponential in turn, there and back: the split-operator method. Order 2, or 4, 6, 8;
    unitary.

        Φ_dt = Π→ e^{−i Hₖ dt/2} Π← e^{−i Hₖ dt/2}

    Each factor acts on its few subsystems; those that follow one another on the same ones are applied together,
    as the gates of a `Circuit` are: a step of a chain of 16 spins in a field takes 9 passes over the state, not
    62, and its derivative runs backwards. Driven terms are taken in the middle of the step.

    **Arguments:**

    - `evolution`: a `UnitaryEvolution` of a `StateVector`, whose Hamiltonian is a sum of `PauliSum` and of
      Hermitian `LocalOperator` terms, scaled by real numbers or driven by real envelopes.
    - `order`: 2; or 4, 6, 8 at 3, 7, 15 times the cost.

    **Errors:** `DeclarationError` for terms without an exponential of their own: write a hopping a₀†a₁ + a₁†a₀
    as one `LocalOperator` of two sites.

    **Good values:** couplings times dt of 0.1 to 0.3. Strings that commute in the order given cost no accuracy.

    **Reference:** Trotter, Proc. Am. Math. Soc. 10, 545 (1959); Suzuki, Phys. Lett. A 146, 319 (1990).
    """

    evolution: UnitaryEvolution
    order: int = static(default=2)

    def __check_init__(self):
        if not isinstance(self.evolution, UnitaryEvolution):
            raise DeclarationError("Trotter advances UnitaryEvolution(H) of a StateVector")
        if self.order not in (2, *YOSHIDA):
            raise ParameterError(f"Trotter has orders {[2, *YOSHIDA]}; got order={self.order!r}")
        _terms_of(self.evolution.hamiltonian)  # for its errors

    @property
    def parts(self) -> AbstractIntegrator:
        """The composition of exact steps that this is."""
        sweep = _Sweep(self.evolution)
        return sweep if self.order == 2 else Composition(sweep, self.order)

    def prepare(self, state: State, dt: StepSize) -> Plan:
        return self.parts.prepare(state, dt)

    def init(self, plan: Plan, clock: Clock, state: State) -> Aux:
        return self.parts.init(plan, clock, state)

    def refresh(self, plan: Plan, clock: Clock, state: State, aux: Aux) -> Aux:
        return self.parts.refresh(plan, clock, state, aux)

    def is_stale(self, before: State, after: State) -> bool:
        del before, after
        return False

    def step(self, plan: Plan, clock: Clock, state: State, aux: Aux) -> tuple[State, Aux]:
        return self.parts.step(plan, clock, state, aux)

    def terms(self, aux: Aux) -> TermsWithCaches:
        del aux
        return ((self.evolution, None),)


class _Sweep(AbstractOneStep):
    """Half a step of every term in their order, and half a step of every term in the other order."""

    evolution: UnitaryEvolution

    def step(self, plan: None, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        quantum = self.evolution.state_of(state)
        if not isinstance(quantum, StateVector):
            raise DeclarationError(
                "Trotter advances a StateVector; a DensityMatrix takes Magnus or RK4"
            )
        t, half = clock.at_fraction(0.5).t, 0.5 * clock.dt
        gates, phase = [], jnp.zeros_like(half)
        for term, factor in _terms_of(self.evolution.hamiltonian):
            angle = half * factor(t)
            sites = (
                [k for k, letter in enumerate(term) if letter != "I"] if _is_string(term) else None
            )
            if sites is None:
                gates.append(_HermitianTurn(angle, term.elements, term.sites))
            elif sites:
                gates.append(PauliRotation(2 * angle, term.replace("I", ""), *sites))
            else:
                phase = phase + 2 * angle
        # As a circuit: what acts on few subsystems in turn is one matrix, and one pass over the state.
        x = quantum.array
        if gates:
            x = apply_gates((*gates, *reversed(gates)), x, quantum.register)
        turn = jax.lax.complex(jnp.cos(phase), -jnp.sin(phase)).astype(x.dtype)
        return put_component(state, self.evolution.component, quantum.with_array(x * turn)), aux


class _HermitianTurn(AbstractGate):
    """e^{−i θ A} of a Hermitian matrix.

    - `angle`: θ. `elements`: A, a constant of the program.
    """

    angle: Float[Array, ""] = param()
    elements: tuple[tuple[complex, ...], ...] = static()
    sites: tuple[int, ...] = static()

    def apply(self, x: Array) -> Array:
        values, vectors = np.linalg.eigh(np.array(self.elements))
        turned = -self.angle.astype(x.real.dtype) * jnp.asarray(values, x.real.dtype)
        phases = jax.lax.complex(jnp.cos(turned), jnp.sin(turned))
        left, right = (jnp.asarray(v, x.dtype) for v in (vectors, vectors.conj().T))
        return apply_matrix(matmul(left * phases[None], right), x, self.sites)

    def inverse(self) -> "_HermitianTurn":
        return _HermitianTurn(-self.angle, self.elements, self.sites)

    def conjugate(self) -> "_HermitianTurn":
        conjugated = tuple(tuple(complex(z).conjugate() for z in row) for row in self.elements)
        return _HermitianTurn(-self.angle, conjugated, self.sites)


def _terms_of(operator: AbstractOperator) -> list[Any]:
    """(a Pauli string or local operator, t → its real factor) for every term.

    **Errors:** `DeclarationError` for a term without an exponential of its own.
    """
    if isinstance(operator, OperatorSum):
        return [pair for term in operator.terms for pair in _terms_of(term)]
    if isinstance(operator, Scaled | Driven):
        outer = operator

        def times(inner: Any) -> Any:
            return lambda t: _real(outer, t) * inner(t)

        return [(term, times(inner)) for term, inner in _terms_of(outer.operator)]
    if isinstance(operator, PauliSum):
        c = operator.coefficients
        return [(s, lambda t, k=k: c[k]) for k, s in enumerate(operator.strings)]
    if isinstance(operator, LocalOperator):
        matrix = np.array(operator.elements)
        if np.allclose(matrix, matrix.conj().T):
            return [(operator, lambda t: 1.0)]
    raise DeclarationError(
        f"{type(operator).__name__} has no exponential of its own: Trotter takes sums of PauliSum and of "
        "Hermitian LocalOperator; others take Krylov or RK4"
    )


def _real(operator: Scaled | Driven, t: ArrayLike) -> Array:
    value = operator.factor if isinstance(operator, Scaled) else operator.factor(t)
    if jnp.iscomplexobj(value):
        raise DeclarationError(
            "Trotter takes real factors and envelopes; write the two quadratures as two terms"
        )
    return value


def _is_string(term: Any) -> TypeGuard[str]:
    return isinstance(term, str)
