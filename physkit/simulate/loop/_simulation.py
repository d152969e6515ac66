"""`Simulation`: what is computed and recorded, as a pytree without methods that run."""

from collections.abc import Iterable
from itertools import pairwise

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    DeclarationError,
    Module,
    ObserverError,
    ParameterError,
    concrete_value,
    describe,
    param,
    show_numbers,
)
from physkit.integrators import AbstractIntegrator
from physkit.observe import AbstractGuard, AbstractObserver, Finite

from ..adjoint._adjoint import AbstractAdjoint
from ..adjoint._nested_checkpoint import NestedCheckpoint


def _as_tuple(
    observers: AbstractObserver | Iterable,  # of observers, which is what is checked here
    name: str = "observers",
    example: str = "Every(10, energy=TotalEnergy())",
) -> tuple[AbstractObserver, ...]:
    if isinstance(observers, AbstractObserver):
        return (observers,)
    if not isinstance(observers, Iterable) or isinstance(observers, str | type | dict):
        raise ObserverError(
            f"{name} come in a list, as {name}=[{example}]; got {describe(observers)}"
        )
    for one in observers:
        if not isinstance(one, AbstractObserver):
            raise ObserverError(
                f"{describe(one)} is not an observer; wrap quantities as Every(10, name=quantity)"
            )
    return tuple(observers)


def _as_observers(
    observers: AbstractObserver | Iterable,  # of observers, which is what is checked here
) -> tuple[AbstractObserver, ...]:
    found = _as_tuple(observers)
    for one in found:
        if isinstance(one, AbstractGuard):
            raise ObserverError(
                f"a {type(one).__name__} among observers stops nothing: give guards=[…]; "
                "Every(10, holds=function) records a condition"
            )
    return found


def _as_guards(
    guards: AbstractObserver | Iterable,  # of observers, which is what is checked here
) -> tuple[AbstractObserver, ...]:
    found = _as_tuple(guards, "guards", "Guard(10, lambda now: …)")
    # A condition of one's own may hold for NaN, as x > 0 in all but one place does: it comes in addition.
    if found and not any(isinstance(guard, Finite) for guard in found):
        return (*found, Finite())
    return found


class Simulation(Module):
    """How a state is advanced and what is recorded of it; verbs (`simulate`, `run`) act on it.

    **Arguments:**

    - `integrator`: anything that advances a state by dt, with its physics inside.
    - `dt`: time step.
    - `observers`: what is recorded; intervals must divide one another, names differ.
    - `guards`: observers whose frames must stay true; `run` raises when one does not. `Finite()` is one of
      them where others are given; `()` is no guard at all.
    - `adjoint`: what a derivative keeps and what it computes again.
    - `t0`: time at step 0.

    **Errors:** `ParameterError` for a step that is not positive, `ObserverError` for intervals that
    do not divide one another and guards among observers, `DeclarationError` where integrator or adjoint are not
    instances of one.
    """

    integrator: AbstractIntegrator
    dt: Float[Array, ""] = param()
    observers: tuple[AbstractObserver, ...] = eqx.field(converter=_as_observers, default=())
    guards: tuple[AbstractObserver, ...] = eqx.field(converter=_as_guards, default=(Finite(),))
    adjoint: AbstractAdjoint = NestedCheckpoint()
    t0: Float[Array, ""] = param(0.0)

    def __check_init__(self):
        if not isinstance(self.integrator, AbstractIntegrator):
            raise DeclarationError(
                f"a simulation advances by an integrator, e.g. RK4(…) or VelocityVerlet(force); got "
                f"{self.integrator!r}"
            )
        if not isinstance(self.adjoint, AbstractAdjoint):
            raise DeclarationError(
                "an adjoint is an instance: write adjoint=Reversible(), NestedCheckpoint(), Binomial(n) "
                f"or another; got {self.adjoint!r}"
            )
        dt = concrete_value(self.dt)  # None inside of a trace
        if dt is not None and dt.ndim == 0 and not 0 < dt < np.inf:
            raise ParameterError(
                f"the time step must be positive and finite; got dt = {show_numbers(dt)}"
            )
        intervals = self.intervals
        # Each interval is a level of the nested loop, so that each must divide the next.
        if any(long % short for short, long in pairwise(intervals)):
            raise ObserverError(
                f"observer intervals must divide one another; got {list(intervals)}"
            )

    @property
    def intervals(self) -> tuple[int, ...]:
        """The distinct intervals of observers and guards, shortest first."""
        intervals = {o.interval for o in self.observers + self.guards}
        return tuple(sorted(i for i in intervals if i is not None))

    @property
    def observation_period(self) -> int:
        """The longest interval: steps come in multiples of it."""
        return max(self.intervals, default=1)
