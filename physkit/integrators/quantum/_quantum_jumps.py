"""Quantum trajectories: an open system as a random state vector."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    Clock,
    DeclarationError,
    Fault,
    Faults,
    State,
    put_component,
    safe_divide,
    scale_array,
)
from physkit.quantum import Lindblad, StateVector

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches

_RARE = 0.5  # of a jump, the largest probability in a step: beyond it two would be common


class QuantumJumps(AbstractIntegrator):
    """One trajectory of an open system: a state vector that decays, and sometimes jumps. Weak order 1.

        dψ/dt = (−iH − ½ Σ γ L†L) ψ,    jump k with probability ∝ γₖ ‖Lₖψ‖²

    Over a step the vector loses the norm 1 − p; with probability p it jumps at the end of the step, otherwise
    it is normalized. The mean of |ψ⟩⟨ψ| over trajectories is the density matrix of `Lindblad`: n of them, under
    `vmap` over keys or as members of a `sweep`, leave an error of 1/√n, for 2ⁿ numbers each instead of 4ⁿ.

    **Arguments:** `evolution`: a `Lindblad` equation; the state is a `StateVector`, the run has a key.

    **Errors:** `DeclarationError` for another equation, or a density matrix.

    **Good values:** γ dt ≤ 0.02: a second jump within a step is left out. Between jumps the step is RK4's:
    ‖H‖ dt ≤ 0.3. A run ends with `SimulationDiverged` where a jump in a step becomes likelier than not, or
    ‖H‖ dt is beyond 1.

    **Notes:** a derivative by a parameter is that of one trajectory with its jumps held fixed; it leaves out
    how the parameter changes when they happen. Differentiate `Lindblad` instead.

    **Reference:** Mølmer, Castin & Dalibard, J. Opt. Soc. Am. B 10, 524 (1993).
    """

    evolution: Lindblad

    def __check_init__(self):
        if not isinstance(self.evolution, Lindblad) or not self.evolution.jumps:
            raise DeclarationError("QuantumJumps draws trajectories of Lindblad(H, Jump(…), …)")

    def prepare(self, state: State, dt: StepSize) -> None:
        del state, dt

    def init(self, plan: None, clock: Clock, state: State) -> Faults:
        return Faults.none()

    def refresh(self, plan: None, clock: Clock, state: State, aux: Faults) -> Faults:
        return aux

    def is_stale(self, before: State, after: State) -> bool:
        del before, after
        return False

    def step(self, plan: None, clock: Clock, state: State, aux: Faults) -> tuple[State, Faults]:
        quantum = self.evolution.state_of(state)
        if not isinstance(quantum, StateVector):
            raise DeclarationError("QuantumJumps advances a StateVector; a DensityMatrix takes RK4")
        quantum.register.require_whole("a trajectory")
        x, first = self._decay(clock, quantum.array, quantum.dims)
        survival = _square(x)
        # Normalized at the end of each step, a vector that RK4 has multiplied would look like any other.
        is_resolved = (survival >= _RARE) & (clock.dt**2 * _square(first) <= 1)
        # Candidates for all jumps at once: a jump is rare, but under `vmap` somebody always jumps.
        end = clock.at_fraction(1.0).t
        branches = jnp.stack([jump.operator.apply(x, end) for jump in self.evolution.jumps])
        rates = jnp.stack([jump.rate for jump in self.evolution.jumps])
        weights = jnp.cumsum(rates * jax.vmap(_square)(branches))
        which, when = jax.random.split(clock.key)
        drawn = jax.random.uniform(which, (), weights.dtype) * weights[-1]
        chosen = jnp.minimum(jnp.searchsorted(weights, drawn, side="right"), len(rates) - 1)
        jumps = (jax.random.uniform(when, (), survival.dtype) > survival) & (weights[-1] > 0)
        x = jnp.where(jumps, branches[chosen], x)
        norm = jnp.sqrt(_square(x))
        x = scale_array(x, safe_divide(jnp.ones_like(norm), norm))
        after = put_component(state, self.evolution.component, quantum.with_array(x))
        return after, aux.set_if(Fault.UNRESOLVED, ~is_resolved)

    def _decay(self, clock: Clock, x: Array, dims: tuple[int, ...]) -> tuple[Array, Array]:
        """A step of RK4 of what happens between jumps, and its first rate."""
        dt = clock.dt
        begin, middle, end = (clock.at_fraction(f).t for f in (0.0, 0.5, 1.0))
        k1 = self.evolution.damped(x, begin, dims)
        k2 = self.evolution.damped(x + scale_array(k1, 0.5 * dt), middle, dims)
        k3 = self.evolution.damped(x + scale_array(k2, 0.5 * dt), middle, dims)
        k4 = self.evolution.damped(x + scale_array(k3, dt), end, dims)
        return x + scale_array(k1 + 2 * (k2 + k3) + k4, dt / 6), k1

    def terms(self, aux: Faults) -> TermsWithCaches:
        del aux
        return ((self.evolution, None),)


def _square(x: Array) -> Array:
    return jnp.sum(x.real**2 + x.imag**2)
