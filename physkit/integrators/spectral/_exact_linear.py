"""Steps without any error in time: linear equations mode by mode, potentials point by point."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    AbstractTerm,
    Clock,
    DeclarationError,
    get_component,
    put_component,
    scale_array,
)
from physkit.fields import AbstractEquation
from physkit.fields.equations import Schroedinger, require_complex

from .._integrator import AbstractOneStep, AbstractStateless


class ExactLinear(AbstractStateless):
    """The linear parts of equations, exactly: û' = exp(L dt) û for every Fourier mode.

    A part for compositions: `Strang(RK4(GrayScott(F, k)), ExactLinear(Diffusion(D)))` has no limit
    on dt from diffusion. What an equation has besides its symbol is left to other parts.

    **Arguments:** equations with a symbol; those of one field are added up.

    **Errors:** `DeclarationError` for a term without a symbol; `ParameterError` on a box with walls.
    """

    equations: tuple[AbstractEquation, ...]

    def __init__(self, *equations: Any):
        wrong = [type(e).__name__ for e in equations if not isinstance(e, AbstractEquation)]
        if wrong or not equations:
            raise DeclarationError(
                "ExactLinear takes one or more equations with a symbol, e.g. "
                f"ExactLinear(Diffusion(0.1)); got {wrong}"
            )
        self.equations = equations

    def prepare(self, state: Any, dt: Any) -> dict[str | None, Array]:
        symbols: dict[str | None, Any] = {}
        for equation in self.equations:
            field = get_component(state, equation.component)
            field.grid.require_periodic("exact linear steps")
            symbol = equation.symbol(field)
            if symbol is None:
                raise DeclarationError(
                    f"{type(equation).__name__} has no symbol: advance it by another method, e.g. RK4"
                )
            before = symbols.get(equation.component)
            symbols[equation.component] = symbol if before is None else _added(before, symbol)
        return {name: jnp.exp(scale_array(symbol, dt)) for name, symbol in symbols.items()}

    def step(self, plan: Any, clock: Clock, state: Any, aux: None) -> tuple[Any, None]:
        for name, factor in plan.items():
            field = get_component(state, name)
            advanced = field.spectrum().multiply(factor).field().data
            state = put_component(state, name, field.replace(data=advanced))
        return state, aux

    def terms(self, aux: None) -> tuple[tuple[AbstractTerm, Any], ...]:
        return tuple((equation, aux) for equation in self.equations)


def _added(a: Array, b: Array) -> Array:
    """a + b, of which one may be complex and the other real."""
    kind = np.result_type(a.dtype, b.dtype)
    return a.astype(kind) + b.astype(kind)


class PotentialPropagator(AbstractOneStep):
    """The potential and the interaction of Schrödinger's equation, exactly.

        ψ' = exp(−i (V + g|ψ|²) dt/ħ) ψ

    |ψ| does not change, so that the phase is right for g ≠ 0, too. Potentials that depend on time
    are taken in the middle of the step: order 2.

    **Arguments:**

    - `equation`: the `Schroedinger` whose potential it is.
    """

    equation: Schroedinger

    def __init__(self, equation: Any):
        require_schroedinger(equation)
        self.equation = equation

    def step(self, plan: None, clock: Clock, state: Any, aux: None) -> tuple[Any, None]:
        equation = self.equation
        field = get_component(state, equation.component)
        require_complex(field)
        angle = equation.local(clock.at_fraction(0.5).t, field) * (-clock.dt / equation.hbar)
        phase = jax.lax.complex(jnp.cos(angle), jnp.sin(angle))
        return put_component(state, equation.component, field.replace(data=field.data * phase)), aux

    def terms(self, aux: None) -> tuple[tuple[AbstractTerm, Any], ...]:
        return ((self.equation, aux),)


def require_schroedinger(equation: Any) -> None:
    """**Errors:** `DeclarationError` for anything but a `Schroedinger`."""
    if not isinstance(equation, Schroedinger):
        raise DeclarationError(
            "this advances Schroedinger(…), whose two halves are exact phases; got "
            f"{type(equation).__name__}. For other equations see ETDRK4"
        )
