"""Linear equations advanced without any error in time, mode by mode."""

import jax.numpy as jnp

from physkit.core import (
    Clock,
    DeclarationError,
    State,
    get_component,
    put_component,
    scale_array,
)
from physkit.fields import AbstractEquation

from .._integrator import AbstractStateless, AdvancedParts, StepSize, TermsWithCaches
from ._semilinear import Modes, add_symbols


class ExactLinear(AbstractStateless):
    """The linear parts of equations, exactly: û' = exp(L dt) û for every Fourier mode.

    A part for compositions: `Strang(RK4(GrayScott(F, k)), ExactLinear(Diffusion(D)))` has no limit
    on dt from diffusion. What an equation has besides its symbol is for another part of a splitting to
    advance, as `PotentialPropagator` does that of Schrödinger's.

    **Arguments:** equations with a symbol; those of one field are added up.

    **Errors:** `DeclarationError` for a term without a symbol, and for an equation whose other part nothing
    advances; `ParameterError` on a box with walls.
    """

    equations: tuple[AbstractEquation, ...]

    def __init__(self, *equations: object):
        wrong = [type(e).__name__ for e in equations if not isinstance(e, AbstractEquation)]
        if wrong or not equations:
            raise DeclarationError(
                "ExactLinear takes one or more equations with a symbol, e.g. "
                f"ExactLinear(Diffusion(0.1)); got {wrong}"
            )
        self.equations = equations

    def prepare(self, state: State, dt: StepSize) -> Modes:
        symbols: Modes = {}
        for equation in self.equations:
            field = get_component(state, equation.component)
            field.grid.require_periodic("exact linear steps")
            symbol = equation.symbol(field)
            if symbol is None:
                raise DeclarationError(
                    f"{type(equation).__name__} has no symbol: advance it by another method, e.g. RK4"
                )
            symbols[equation.component] = add_symbols(symbols.get(equation.component), symbol)
        return {name: jnp.exp(scale_array(symbol, dt)) for name, symbol in symbols.items()}

    def step(self, plan: Modes, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        for name, factor in plan.items():
            # Data alone: the field keeps its boundary, which the transform there and back would lose.
            field = get_component(state, name)
            values = field.spectrum().multiply(factor).field().data
            state = put_component(state, name, field.replace(data=values))
        return state, aux

    def advanced_parts(self, state: State) -> AdvancedParts:
        return tuple((equation, ("linear",)) for equation in self.equations)

    def terms(self, aux: None) -> TermsWithCaches:
        return tuple((equation, aux) for equation in self.equations)
