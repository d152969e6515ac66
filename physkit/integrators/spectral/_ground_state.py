"""Ground states of Schrödinger's equation, by the split-step method in imaginary time."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ParameterError, as_parameter, cast_floats, ratio, scale_array
from physkit.fields import Field
from physkit.fields.equations import Schroedinger, require_complex

from .._integrator import StepSize


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

    # τ = dt/ħ: t → −it makes the phases of a Strang step decays, and the norm has to be put back.
    def step(psi: Array, tau: Array) -> tuple[Array, None]:
        field = guess.replace(data=psi)
        # Both halves by the potential (with g|ψ|²) at the start of the step.
        half = jnp.exp(equation.local(0.0, field) * (-0.5 * tau))

        def damp(x: Array) -> Array:
            return scale_array(x, half)

        damped = field.map(damp).spectrum().multiply(jnp.exp(-kinetic * tau))
        return _normalize(damped.field().map(damp)).data, None

    # Long steps first, to get near; the fixed point of shorter ones is nearer to the ground state of H.
    taus = [ratio(dt, equation.hbar) / 4**k for k in range(refinements)]
    lengths = jnp.repeat(jnp.stack(taus), steps)
    psi, _ = jax.lax.scan(step, _normalize(guess).data, lengths)
    state = guess.replace(data=psi)
    return state, equation.energy(state)


def _normalize(field: Field) -> Field:
    density = field.data.real**2 + field.data.imag**2
    norm = jnp.sqrt(field.grid.sum(density) * field.grid.cell_volume)
    return field.replace(data=scale_array(field.data, ratio(1.0, norm)))
