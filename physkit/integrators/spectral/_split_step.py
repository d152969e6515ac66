"""The split-step Fourier method, in real time and in imaginary."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Aux,
    Clock,
    ParameterError,
    Plan,
    State,
    as_parameter,
    cast_floats,
    scale_array,
    static,
)
from physkit.fields import Field
from physkit.fields.equations import Schroedinger, require_complex

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches
from .._splitting_coefficients import YOSHIDA
from ..splitting._lie_strang import Strang
from ..splitting._symmetric_composition import Composition
from ._exact_linear import ExactLinear
from ._potential_propagator import PotentialPropagator, require_schroedinger


class SplitStep(AbstractIntegrator):
    """Split-step Fourier method for Schrödinger's equation. Order 2, or 4, 6, 8; unitary.

        Φ_dt = e^{−iV dt/2ħ} ∘ e^{−iT dt/ħ} ∘ e^{−iV dt/2ħ}

    The potential's phase is exact at every point, the kinetic one for every wave: the norm stays to
    rounding whatever the step, and a step of −dt undoes a step. Short for
    `Strang(PotentialPropagator(equation), ExactLinear(equation))`, and a `Composition` of that.

    **Arguments:**

    - `equation`: a `Schroedinger`.
    - `order`: 2; or 4, 6, 8 at 3, 7, 15 times the cost.

    **Errors:** `ParameterError` for another order, and on a box with walls; `DeclarationError` for
    another equation.

    **Good values:** phases below 1 a step where the wave function is: |V| dt < ħ, ħk² dt < 2m. The
    shortest wave of the grid should turn by less than half a circle, ħk_max² dt < 2πm: beyond, waves
    in resonance with the step grow out of nothing.

    **Reference:** Feit, Fleck & Steiger, J. Comput. Phys. 47, 412 (1982).
    """

    equation: Schroedinger
    order: int = static()

    def __init__(self, equation: object, order: int = 2):
        require_schroedinger(equation)
        if order not in (2, *YOSHIDA):
            raise ParameterError(f"SplitStep has orders {[2, *YOSHIDA]}; got order={order!r}")
        self.equation, self.order = equation, order

    @property
    def parts(self) -> AbstractIntegrator:
        """The composition of exact steps that this is."""
        strang = Strang(PotentialPropagator(self.equation), ExactLinear(self.equation))
        return strang if self.order == 2 else Composition(strang, self.order)

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
        return ((self.equation, None),)


def ground_state(
    equation: Schroedinger, guess: Field, dt: StepSize, steps: int, refinements: int = 3
) -> tuple[Field, Float[Array, ""]]:
    """The lowest state of a Hamiltonian and its energy, by imaginary time.

        ψ → e^{−V dt/2ħ} e^{−T dt/ħ} e^{−V dt/2ħ} ψ / ‖…‖,   E = ⟨ψ|H|ψ⟩

    Excited states die out as exp(−ΔE t/ħ). The energy is that of H itself in the state found, whose
    splitting error enters squared: E is off by O(dt⁴) of the last refinement.

    **Arguments:**

    - `guess`: a complex field that is not orthogonal to the ground state; a broad hump will do.
    - `dt`, `steps`: `steps` steps of dt, as many of dt/4, as many of dt/16, …
    - `refinements`: how many different steps.

    **Returns:** the state, ∫|ψ|² dV = 1, and its energy.

    **Good values:** dt·steps some 20 ħ/ΔE, where ΔE is the gap to the next state of the guess's
    symmetry.

    **Notes:** differentiable in everything; derivatives of the energy are Hellmann and Feynman's.
    With an interaction ψ solves Gross and Pitaevskii's equation and E is the energy per particle.

    **Reference:** Lehtovaara, Toivanen & Eloranta, J. Comput. Phys. 221, 148 (2007).
    """
    require_complex(guess)
    if steps < 1 or refinements < 1:
        raise ParameterError(
            f"steps and refinements count from 1; got steps={steps!r}, refinements={refinements!r}"
        )
    equation, dt = cast_floats((equation, as_parameter(dt)), guess.real_dtype)
    kinetic = equation.kinetic(guess)

    def step(psi: Array, tau: Array) -> tuple[Array, None]:
        field = guess.replace(data=psi)
        half = jnp.exp(equation.local(0.0, field) * (-0.5 * tau))
        damped = (
            field.map(lambda x: scale_array(x, half)).spectrum().multiply(jnp.exp(-kinetic * tau))
        )
        return _normalized(damped.field().map(lambda x: scale_array(x, half))).data, None

    taus = [dt / equation.hbar / 4**k for k in range(refinements)]
    lengths = jnp.repeat(jnp.stack(taus), steps)
    psi, _ = jax.lax.scan(step, _normalized(guess).data, lengths)
    state = guess.replace(data=psi)
    return state, equation.energy(state)


def _normalized(field: Field) -> Field:
    density = field.data.real**2 + field.data.imag**2
    norm = jnp.sqrt(field.grid.sum(density) * field.grid.cell_volume)
    return field.replace(data=scale_array(field.data, 1 / norm))
