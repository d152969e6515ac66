"""The contract of a partial differential equation for one field."""

from typing import Any

import equinox as eqx
from jaxtyping import Array

from physkit.core import (
    AbstractTendency,
    Clock,
    ComponentError,
    DeclarationError,
    ParameterError,
    Rate,
    State,
    StepCount,
    as_increment,
    combine_rates,
    describe,
    get_component,
    put_component,
)

from ._field import Field
from ._field_increment import FieldIncrement
from ._spectrum import Spectrum


class AbstractEquation(AbstractTendency):
    """∂u/∂t = L u + N(t, u) + F for the field called `component` (None when the state is that field).

    Write `symbol` for a part L that multiplies every Fourier mode by a number, `steady` for a part F that
    neither time nor the field change, `nonlinear` for the rest, or several of them. Explicit integrators add
    them up (`rate`); exponential and implicit ones take the symbol by itself, so that stiff waves and diffusion
    do not limit the step, and transform F once for a run.

    L and N see the field with the boundary that it has now.
    """

    component: eqx.AbstractVar[str | None]

    def symbol(self, field: Field) -> Array | None:
        """L per mode, ready to broadcast against `field.spectrum().coefficients`; None for L = 0.

        May depend on parameters and on the field's grid, never on its data.
        """
        del field

    def nonlinear(self, clock: Clock, field: Field) -> Field | Spectrum | None:
        """N(t, u), by values or by coefficients, whichever comes cheaper; None for N = 0."""
        del clock, field

    def steady(self, field: Field) -> Field | Spectrum | None:
        """F, by values or by coefficients; None for F = 0.

        May depend on parameters and on the field's grid, never on its data.
        """
        del field

    def parts(self, state: State) -> tuple[str, ...]:
        """ "linear", "nonlinear" and "steady", as far as there are any."""
        field, clock = get_component(state, self.component), Clock.at(StepCount.of(0), 0.0, 1.0)
        if not isinstance(field, Field):
            return ()

        def all_of(equation: AbstractEquation, field: Field) -> Any:
            now = field.at_time(clock.t)
            return equation.symbol(now), equation.nonlinear(clock, now), equation.steady(now)

        # Traced only: no number is computed.
        found = eqx.filter_eval_shape(all_of, self, field)
        names = ("linear", "nonlinear", "steady")
        parts = tuple(name for name, part in zip(names, found, strict=True) if part is not None)
        return (*parts, "own rate") if self.has_own_rate else parts

    @property
    def has_own_rate(self) -> bool:
        """Whether its rate is written apart: it may hold more, which only integrators of rates see."""
        return type(self).rate is not AbstractEquation.rate

    def linear(self, field: Field) -> Field | Spectrum | None:
        """L u, for explicit integrators: by the symbol, unless an equation knows a way without it."""
        symbol = self.symbol(field)
        return None if symbol is None else field.spectrum().multiply(symbol)

    # --- between walls, for implicit methods ------------------------------------------------------

    def can_solve(self, field: Field) -> bool:
        """Whether `solve` solves for L on this field's grid: where there are walls, or L has no symbol."""
        del field
        return False

    def solve(self, field: Field, interval: Array) -> Field:
        """u of u − interval·L u = `field`, with the boundary of `field`, which is that of now."""
        del interval
        raise ParameterError(f"{type(self).__name__} cannot solve for its linear part: {field!r}")

    def is_implicit(self, state: State) -> bool:
        field = get_component(state, self.component)
        return isinstance(field, Field) and self.can_solve(field)

    def solve_implicit(self, clock: Clock, state: State, interval: Array) -> tuple[State, Rate]:
        field = get_component(state, self.component)
        now = field.at_time(clock.t)
        solution = self.solve(now, interval).data
        rate = FieldIncrement(
            (solution - now.data) / interval.astype(solution.dtype), field.location
        )
        after = put_component(state, self.component, field.replace(data=solution))
        return after, rate if self.component is None else {self.component: rate}

    def implicit_rate(self, clock: Clock, state: State) -> Rate:
        field = get_component(state, self.component)
        return self.rate_of_parts(field, self.linear(field))

    def explicit_rate(self, clock: Clock, state: State) -> Rate:
        field = get_component(state, self.component)
        return self.rate_of_parts(field, self.nonlinear(clock, field), self.steady(field))

    def rate_of_parts(self, field: Field, *parts: Field | Spectrum | Array | None) -> Rate:
        """The sum of parts of the field's rate, by the component's name; None for 0."""
        # By values or by coefficients, as each part came: what is added up stays in its own form.
        increments = [
            field.as_own_increment(as_increment(part)) for part in parts if part is not None
        ]
        if not increments:
            return None
        rate = combine_rates([1] * len(increments), increments)
        return rate if self.component is None else {self.component: rate}

    def constrain_modes(self, field: Field, coefficients: Array) -> Array:
        """What a constraint of this equation leaves of the field's coefficients; here all of them."""
        del field
        return coefficients

    def constrain(self, state: State, rate: Rate) -> Rate:
        part = rate.get(self.component) if isinstance(rate, dict) else rate
        if not self.has_constraint or part is None:
            return rate
        field = require_field(get_component(state, self.component), type(self).__name__)
        increment = field.as_own_increment(part)
        modes = increment.coefficients
        if increment.values is not None:
            of_values = field.grid.fft(increment.values)
            modes = of_values if modes is None else of_values + modes
        if modes is None:
            return rate
        held = FieldIncrement(None, field.location, self.constrain_modes(field, modes))
        return {**rate, self.component: held} if isinstance(rate, dict) else held

    def rate(self, clock: Clock, state: State) -> Rate:
        field = require_field(get_component(state, self.component), type(self).__name__)
        rate = self.rate_of_parts(
            field, self.linear(field), self.nonlinear(clock, field), self.steady(field)
        )
        if rate is None:
            raise DeclarationError(
                f"{type(self).__name__} has neither a symbol nor a nonlinear or steady part: write one of them"
            )
        return rate


def require_field(component: object, what: str) -> Field:
    """`component`, if it is a field.

    **Errors:** `ComponentError` for anything else.
    """
    if not isinstance(component, Field):
        raise ComponentError(
            f"{what} moves a field, not {describe(component)}; give component=… where the state has several "
            "components"
        )
    return component
