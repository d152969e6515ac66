"""Schrödinger's, von Neumann's and Lindblad's equations as rates of quantum states (ħ = 1)."""

import abc
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    ComponentError,
    DeclarationError,
    Module,
    Rate,
    State,
    concrete_value,
    describe,
    evaluate_now,
    get_component,
    is_tracing,
    param,
    require_nonnegative,
    scale_array,
    static,
    vdot,
)

from ._contraction import dagger
from ._local_parts import FEW_LEVELS, LocalPart, apply_parts
from ._operators import AbstractOperator
from ._pauli_sum import has_pauli_strings, require_subsystems
from ._quantum_state import AbstractQuantumState
from ._state_vector import StateVector

_FEW_ROWS = 8  # of a jump: its action on rows and columns is a matrix of the square of as many
_HERMITIAN = 1e-4  # of the size of H: how far it may be from H†


class AbstractEvolution(AbstractTendency):
    """A linear equation of motion of a quantum state."""

    hamiltonian: eqx.AbstractVar[AbstractOperator]
    component: eqx.AbstractVar[str | None]

    @abc.abstractmethod
    def generator(self, x: Array, t: ArrayLike, dims: tuple[int, ...]) -> Array:
        """d/dt of the numbers of a state: complex linear in `x`, which need not be a state."""

    def state_of(self, state: State) -> Any:
        """The quantum state that it drives.

        **Errors:** `ComponentError` where the component is none.
        """
        found = get_component(state, self.component)
        if not isinstance(found, AbstractQuantumState):
            raise ComponentError(
                f"{type(self).__name__} drives a StateVector or a DensityMatrix; got {describe(found)}"
            )
        return found

    def is_unresolved(self, clock: Clock, state: State) -> Bool[Array, ""]:
        """Whether dt ‖dx/dt‖ > ‖x‖: an explicit step then multiplies what it should turn."""
        quantum = self.state_of(state)
        register = quantum.register if isinstance(quantum, StateVector) else None
        rate = self.rate(clock, state)
        x, dx = quantum.array, rate if self.component is None else rate[self.component]
        sizes = jnp.stack([jnp.sum(a.real**2 + a.imag**2) for a in (x, dx)])
        before, change = sizes if register is None else register.sum(sizes)
        return jnp.isfinite(before) & ~(clock.dt**2 * change <= before)

    def as_rate(self, rate: Array) -> Rate:
        """The rate of the component that it drives, as terms return it."""
        return rate if self.component is None else {self.component: rate}

    def check_state(self, state: State) -> None:
        """**Errors:** `DeclarationError` for a Hamiltonian that is not Hermitian, `ShapeError` for operators on
        subsystems that the state does not have.
        """
        dims = self.state_of(state).dims
        require_subsystems(self, dims)
        if is_tracing():
            return
        generator = np.random.default_rng(0)
        a, b = (generator.normal(size=dims) + 1j * generator.normal(size=dims) for _ in "ab")
        dtype = np.result_type(jnp.result_type(float), np.complex64)
        with evaluate_now():
            left, right, size = _probe(
                self.hamiltonian, jnp.asarray(a, dtype), jnp.asarray(b, dtype)
            )
        numbers = [concrete_value(x) for x in (left, right, size)]
        if any(x is None for x in numbers):
            return  # parameters are traced
        one, other, scale = (complex(x) for x in numbers if x is not None)
        if not abs(one - other) <= _HERMITIAN * abs(scale):
            raise DeclarationError(
                "the Hamiltonian is not Hermitian at t = 0: ⟨a|H b⟩ and ⟨H a|b⟩ differ. Add the adjoint, "
                "g + g.adjoint(); loss belongs into the jumps of a Lindblad"
            )


@eqx.filter_jit
def _probe(operator: AbstractOperator, a: Array, b: Array) -> tuple[Array, Array, Array]:
    """⟨a|Ob⟩, ⟨Oa|b⟩, and their size."""
    x, y = operator.apply(a), operator.apply(b)
    size = jnp.linalg.norm(x.reshape(-1)) * jnp.linalg.norm(b.reshape(-1))
    return vdot(a, y), vdot(x, b), size


class UnitaryEvolution(AbstractEvolution):
    """A closed system: Schrödinger's equation of a vector, von Neumann's of a density matrix.

        i dψ/dt = H ψ,    dρ/dt = −i [H, ρ]

    For `RK4`, `Diffrax`, `Krylov`, `Magnus`, `Trotter`; ħ = 1, so that H is an angular frequency.

    **Arguments:**

    - `hamiltonian`: a Hermitian operator, which may be driven.
    - `component`: the state's name, where there are several components.

    **Errors:** `DeclarationError` for a Hamiltonian that is not Hermitian at the start.

    **Good values:** ‖H‖ dt ≤ 0.3 for RK4, whose norm falls by (‖H‖ dt)⁶/144 a step; `NormDrift` guards it.
    """

    hamiltonian: AbstractOperator
    component: str | None = static(default=None)

    def rate(self, clock: Clock, state: State) -> Rate:
        quantum = self.state_of(state)
        if isinstance(quantum, StateVector):
            turned = self.hamiltonian.apply_over(quantum.register, quantum.array, clock.t)
            return self.as_rate(_turned(turned))
        x = _turned(self.hamiltonian.apply(quantum.array, clock.t))
        return self.as_rate(x + dagger(x))  # ρ is its own adjoint

    def generator(self, x: Array, t: ArrayLike, dims: tuple[int, ...]) -> Array:
        y = _turned(self.hamiltonian.apply(x, t))
        if x.ndim == len(dims):
            return y
        return y + dagger(_turned(self.hamiltonian.apply(dagger(x), t)))


class Jump(Module):
    """A way in which a system loses coherence: √γ L of Lindblad's equation.

    **Arguments:** `operator`: L. `rate`: γ, 1 / time.
    """

    operator: AbstractOperator
    rate: Float[Array, ""] = param(1.0)

    def __check_init__(self):
        require_nonnegative(self, "rate")

    def local_part(self, t: ArrayLike) -> LocalPart | None:
        """L at time `t` where it is one matrix on a few subsystems."""
        parts = self.operator.local_parts(t)
        is_one = parts is not None and len(parts) == 1 and len(parts[0].matrix) <= _FEW_ROWS
        return parts[0] if parts is not None and is_one else None


class Lindblad(AbstractEvolution):
    """An open system: Lindblad's equation of a density matrix.

        dρ/dt = −i [H, ρ] + Σ γₖ (Lₖ ρ Lₖ† − ½ Lₖ†Lₖ ρ − ½ ρ Lₖ†Lₖ)

    For `RK4`, `Diffrax` and `Magnus` of a `DensityMatrix`; `QuantumJumps` takes a `StateVector`. Every operator
    is applied to its subsystems; no superoperator of the whole is made.

    **Arguments:**

    - `hamiltonian`: a Hermitian operator, which may be driven.
    - `jumps`: any number of `Jump(L, rate)`.
    - `component`: the state's name, where there are several components.

    **Errors:** `DeclarationError` for a Hamiltonian that is not Hermitian at the start, or a vector.

    **Good values:** T₁ is Jump(|0⟩⟨1|, 1/T₁); pure dephasing T_φ of a qubit is Jump(Z, 1/2T_φ), with
    1/T₂ = 1/2T₁ + 1/T_φ.

    **Reference:** Breuer & Petruccione, The Theory of Open Quantum Systems (2002), eq. 3.63.
    """

    hamiltonian: AbstractOperator
    jumps: tuple[Jump, ...]
    component: str | None = static(default=None)

    def __init__(self, hamiltonian: AbstractOperator, *jumps: Jump, component: str | None = None):
        self.hamiltonian, self.jumps, self.component = hamiltonian, jumps, component
        for jump in jumps:
            if not isinstance(jump, Jump):
                raise DeclarationError(f"jumps are Jump(operator, rate); got {describe(jump)}")

    def rate(self, clock: Clock, state: State) -> Rate:
        quantum = self.state_of(state)
        if isinstance(quantum, StateVector):
            raise DeclarationError(
                "Lindblad's equation makes a pure state mixed: start from state.density(), or let "
                "QuantumJumps(Lindblad(…)) draw trajectories of vectors"
            )
        x, t, dims = quantum.array, clock.t, quantum.dims
        left = self.damped(x, t, dims)
        return self.as_rate(
            left + dagger(left) + self._refilled(x, t, dims)
        )  # ρ is its own adjoint

    def damped(self, x: Array, t: ArrayLike, dims: tuple[int, ...]) -> Array:
        """(−iH − ½ Σ γ L†L) x: what happens to a vector while nothing jumps."""
        # Many qubits: a flip of axes for Pauli strings is less than a matrix for each of them.
        is_small = math.prod(dims) <= FEW_LEVELS or not has_pauli_strings(self.hamiltonian)
        parts = self.hamiltonian.local_parts(t) if is_small else None
        left = _turned(self.hamiltonian.apply(x, t)) if parts is None else jnp.zeros_like(x)
        parts = [part._replace(matrix=-1j * part.matrix) for part in parts or ()]
        for jump in self.jumps:
            local = jump.local_part(t)
            if local is None:
                y = jax.lax.optimization_barrier(jump.operator.apply(x, t))
                y = jump.operator.adjoint().apply(y, t)
                left = left - scale_array(y, 0.5 * jump.rate)
            else:
                parts.append(local.squared().times(-0.5 * jump.rate))
        return left + apply_parts(parts, x, dims)

    def _refilled(self, x: Array, t: ArrayLike, dims: tuple[int, ...]) -> Array:
        """Σ γ L x L†."""
        parts, total = [], jnp.zeros_like(x)
        for jump in self.jumps:
            local = jump.local_part(t)
            if local is None:
                y = jax.lax.optimization_barrier(dagger(jump.operator.apply(x, t)))
                total = total + scale_array(dagger(jump.operator.apply(y, t)), jump.rate)
            else:
                parts.append(local.conjugation(len(dims)).times(jump.rate))
        return total + apply_parts(parts, x, (*dims, *dims))

    def generator(self, x: Array, t: ArrayLike, dims: tuple[int, ...]) -> Array:
        if x.ndim == len(dims):
            raise DeclarationError("Lindblad's equation is one of density matrices")
        right = dagger(self.damped(dagger(x), t, dims))
        return self.damped(x, t, dims) + right + self._refilled(x, t, dims)


def _turned(x: Array) -> Array:
    """−i x, without products."""
    return jax.lax.complex(x.imag, -x.real)
