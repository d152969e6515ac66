"""The wave equation advanced without any error in time, mode by mode."""

from typing import TypeAlias

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    Clock,
    DeclarationError,
    ShapeError,
    State,
    get_component,
    put_component,
    safe_sqrt,
)
from physkit.fields.equations import Wave, symbol_of_laplacian

from .._integrator import AbstractStateless, StepSize, TermsWithCaches

WavePlan: TypeAlias = tuple[Array, Array, Array]  # cos ωdt, sin ωdt/ω, −ω sin ωdt, per mode


class ExactWave(AbstractStateless):
    """The wave equation, exactly, on a grid that repeats.

        û' = cos(ωdt) û + sin(ωdt)/ω ŵ,   ŵ' = cos(ωdt) ŵ − ω sin(ωdt) û,   ω = ck

    Any step is stable and has no error in time. A part for compositions: what else accelerates the
    field is another part, `Strang(Euler(law.kick), ExactWave(Wave(c)))`.

    **Arguments:**

    - `wave`: a `Wave` of constant speed; ω is what its scheme makes of ck.

    **Errors:** `DeclarationError` for another equation, `ShapeError` for a speed per point,
    `ParameterError` on a box with walls.
    """

    wave: Wave

    def __init__(self, wave: object):
        if not isinstance(wave, Wave):
            raise DeclarationError(
                f"ExactWave advances Wave(speed); got {type(wave).__name__}. For other equations "
                "see ExactLinear"
            )
        self.wave = wave

    def prepare(self, state: State, dt: StepSize) -> WavePlan:
        field = get_component(state, self.wave.displacement)
        field.grid.require_periodic("exact waves")
        if self.wave.speed.ndim:
            raise ShapeError(
                "waves are exact for one speed everywhere; for a speed per point compose "
                "Strang(Euler(wave.kick), Euler(wave.drift))"
            )
        # −symbol ≥ 0, with a root whose derivative at the mean's ω = 0 is 0, not infinite.
        omega = self.wave.speed * safe_sqrt(-symbol_of_laplacian(field, self.wave.scheme))
        # sin(ωdt)/ω is dt for the mean, which drifts: sinc is smooth at ω = 0, the quotient is 0/0.
        return (
            jnp.cos(omega * dt),
            dt * jnp.sinc(omega * dt / jnp.pi),
            -omega * jnp.sin(omega * dt),
        )

    def step(self, plan: WavePlan, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        same, to_displacement, to_velocity = plan
        names = (self.wave.displacement, self.wave.velocity)
        fields = [get_component(state, name) for name in names]
        u, w = (field.spectrum() for field in fields)
        advanced = (
            u.multiply(same) + w.multiply(to_displacement),
            w.multiply(same) + u.multiply(to_velocity),
        )
        for name, field, new in zip(names, fields, advanced, strict=True):
            state = put_component(state, name, field.replace(data=new.field().data))
        return state, aux

    def terms(self, aux: None) -> TermsWithCaches:
        return ((self.wave, aux),)
