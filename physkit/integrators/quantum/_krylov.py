"""Propagation of state vectors in Krylov spaces."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    DeclarationError,
    Fault,
    Faults,
    ParameterError,
    Plan,
    State,
    param,
    put_component,
    static,
)
from physkit.quantum import StateVector, UnitaryEvolution

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches
from ._exponential_action import exponential_action
from ._magnus import magnus_exponents


class Krylov(AbstractIntegrator):
    """exp(−i∫H dt) ψ in the space spanned by ψ, Hψ, …, H^{m−1}ψ, by Lanczos. Order 2, or 4; unitary.

        ψ' = ‖ψ‖ V exp(−i dt T) e₁,    V†HV = T tridiagonal

    Needs H only through its products with vectors, m of them a step (twice as many in order 4). The step is
    limited by the spectrum, not by accuracy: errors fall faster than exponentially once m > ‖H‖ dt. A constant
    H has no error of time; a driven one that of the Magnus expansion of `order`.

    **Arguments:**

    - `evolution`: a `UnitaryEvolution` of a `StateVector`.
    - `dimension`: m, of the Krylov space.
    - `order`: 2: H in the middle of the step; 4: two exponentials of combinations of H at Gauss's points.
    - `tolerance`: of the error that m leaves in a step, as estimated; beyond, `run` raises `StepSizeError`.

    **Errors:** `DeclarationError` for another equation or a density matrix.

    **Good values:** half the spread of H's eigenvalues times dt below m/2: m = 12 for 5, 20 for 10.

    **Notes:** derivatives are those of the exact exponential, by an integral over the step in the same space:
    right for eigenstates, too, where those of Lanczos's recurrence are not. Memory is m vectors, of one step.

    **Reference:** Park & Light, J. Chem. Phys. 85, 5870 (1986); Blanes et al., Phys. Rep. 470, 151 (2009), eq.
    258.
    """

    evolution: UnitaryEvolution
    dimension: int = static(default=12)
    order: int = static(default=2)
    tolerance: Float[Array, ""] = param(1e-6)

    def __check_init__(self):
        if not isinstance(self.evolution, UnitaryEvolution):
            raise DeclarationError(
                "Krylov advances UnitaryEvolution(H) of a StateVector; Lindblad's equation takes "
                "RK4, Diffrax or "
                "Magnus"
            )
        if self.order not in (2, 4) or self.dimension < 2:
            raise ParameterError(
                f"Krylov has orders 2 and 4 and a dimension of 2 or more; got order={self.order!r}, "
                f"dimension={self.dimension!r}"
            )

    def prepare(self, state: State, dt: StepSize) -> None:
        del state, dt

    def init(self, plan: Plan, clock: Clock, state: State) -> Faults:
        if not isinstance(self.evolution.state_of(state), StateVector):
            raise DeclarationError(
                "Krylov advances a StateVector; a DensityMatrix takes Magnus or RK4"
            )
        self.evolution.state_of(state).register.require_whole("a Krylov space")
        return Faults.none()

    def refresh(self, plan: Plan, clock: Clock, state: State, aux: Faults) -> Faults:
        return aux

    def is_stale(self, before: State, after: State) -> bool:
        del before, after
        return False

    def step(self, plan: Plan, clock: Clock, state: State, aux: Faults) -> tuple[State, Faults]:
        quantum = self.evolution.state_of(state)
        x, worst = quantum.array, jnp.zeros_like(clock.dt)
        for weights, times in magnus_exponents(clock, self.order):
            x, error = exponential_action(
                _Combination(weights),
                self.dimension,
                (self.evolution.hamiltonian, times),
                x,
                clock.dt,
            )
            worst = jnp.maximum(worst, error)
        after = put_component(state, self.evolution.component, quantum.with_array(x))
        return after, aux.set_if(Fault.SOLVER, ~(worst <= self.tolerance))

    def terms(self, aux: Faults) -> TermsWithCaches:
        del aux
        return ((self.evolution, None),)


class _Combination:
    """Σ wᵢ H(tᵢ) applied to a vector: a function that is equal to others of the same weights."""

    def __init__(self, weights: tuple[float, ...]):
        self.weights = weights

    def __call__(self, operator: tuple, x: Array) -> Array:
        hamiltonian, times = operator
        parts = [w * hamiltonian.apply(x, t) for w, t in zip(self.weights, times, strict=True)]
        return sum(parts[1:], parts[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Combination) and self.weights == other.weights

    def __hash__(self) -> int:
        return hash(self.weights)
