"""The potential part of Schrödinger's equation, advanced without any error in time, point by point."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    Clock,
    DeclarationError,
    State,
    get_component,
    put_component,
    ratio,
    recomputed,
)
from physkit.fields import Field
from physkit.fields.equations import Schroedinger, require_complex

from .._integrator import AbstractOneStep, AdvancedParts, TermsWithCaches


class PotentialPropagator(AbstractOneStep):
    """The potential and the interaction of Schrödinger's equation, exactly.

        ψ' = exp(−i (V + g|ψ|²) dt/ħ) ψ

    |ψ| does not change, so that the phase is right for g ≠ 0, too. Potentials that depend on time
    are taken in the middle of the step: order 2.

    **Arguments:**

    - `equation`: the `Schroedinger` whose potential it is.
    """

    equation: Schroedinger

    def __init__(self, equation: object):
        require_schroedinger(equation)
        self.equation = equation

    def step(self, plan: None, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        equation = self.equation
        field = get_component(state, equation.component)
        require_complex(field)
        turned = recomputed(_turned)(equation, clock.at_fraction(0.5).t, clock.dt, field)
        return put_component(state, equation.component, field.replace(data=turned)), aux

    def advanced_parts(self, state: State) -> AdvancedParts:
        return ((self.equation, ("nonlinear",)),)

    def terms(self, aux: None) -> TermsWithCaches:
        return ((self.equation, aux),)


def _turned(equation: Schroedinger, t: Array, dt: Array, field: Field) -> Array:
    # |ψ|² of the start will do for the whole step, since a phase does not change it.
    angle = -dt * ratio(equation.local(t, field), equation.hbar)
    return field.data * jax.lax.complex(jnp.cos(angle), jnp.sin(angle))


def require_schroedinger(equation: object) -> None:
    """**Errors:** `DeclarationError` for anything but a `Schroedinger`."""
    if not isinstance(equation, Schroedinger):
        raise DeclarationError(
            "this advances Schroedinger(…), whose two halves are exact phases; got "
            f"{type(equation).__name__}. For other equations see ETDRK4"
        )
