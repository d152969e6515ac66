"""Terms: one piece of physics each, with its own cache."""

import abc
from collections.abc import Callable
from typing import Any

import jax

from ._clock import Clock
from ._components import as_increment, combine_rates
from ._errors import DeclarationError
from ._module import Module, call_user_function, static


class AbstractTerm(Module):
    """One piece of physics on named components: `(clock, state, cache) → (value, cache)`."""

    def init(self, state: Any) -> Any:
        """What the term carries from step to step (a neighbor list, a warm start); None if nothing."""
        del state

    @abc.abstractmethod
    def __call__(self, clock: Clock, state: Any, cache: Any) -> tuple[Any, Any]:
        """The term's value at `clock.t`, and its cache for the next call."""

    def require_reversible(self, state: Any) -> None:
        """**Errors:** `NotReversible` where the term's value may depend on how its cache came about."""
        del state

    def max_signal_rate(self, clock: Clock, state: Any) -> Any:
        """The largest signal speed over the size of a cell, 1 / time; None where nothing limits the step.

        Times dt it is the Courant number, by which `Courant` and `CourantLimit` go.
        """
        del clock, state


class AbstractTendency(AbstractTerm):
    """A term that returns rates of change of the components that it drives, and of no others."""

    @abc.abstractmethod
    def rate(self, clock: Clock, state: Any) -> Any:
        """d state / dt: a dict of rates by component name, or the bare rate of a bare state."""

    def __call__(self, clock: Clock, state: Any, cache: Any) -> tuple[Any, Any]:
        return as_increment(self.rate(clock, state)), cache


class Function(AbstractTendency):
    """A plain function `(t, state) → rate` as a tendency.

    Numbers that the function should be differentiable in go into `args`: it is then called as
    `function(t, state, args)`.
    """

    function: Callable = static()
    args: Any = None

    def rate(self, clock: Clock, state: Any) -> Any:
        given = (clock.t, state) if self.args is None else (clock.t, state, self.args)
        signature = "(t, state)" if self.args is None else "(t, state, args)"
        rate = call_user_function(self.function, given, "a right-hand side", signature)
        if rate is None:
            raise DeclarationError("a right-hand side returned None: is there a return missing?")
        return rate


class Tendencies(AbstractTerm):
    """The sum of several tendencies, each with its own cache."""

    terms: tuple[AbstractTerm, ...]

    @staticmethod
    def of(*terms: Any) -> "Tendencies":
        """Terms, plain functions and other sums as one flat sum."""
        flat: list[AbstractTerm] = []
        for term in terms:
            if isinstance(term, Tendencies):
                flat.extend(term.terms)
            elif isinstance(term, AbstractTerm):
                flat.append(term)
            elif callable(term):
                flat.append(Function(term))
            else:
                raise TypeError(
                    f"expected a tendency or a function (t, state) → rate, got {term!r}"
                )
        return Tendencies(tuple(flat))

    def init(self, state: Any) -> Any:
        return tuple(term.init(state) for term in self.terms)

    def __call__(self, clock: Clock, state: Any, cache: Any) -> tuple[Any, Any]:
        rates, caches = [], []
        for term, own in zip(self.terms, cache, strict=True):
            rate, own = term(clock, state, own)
            rates.append(rate)
            caches.append(own)
        return combine_rates([1] * len(rates), rates), tuple(caches)


class Network(Module):
    """Any Equinox network as a Module: arrays are parameters, everything else (activations) static.

    Called like the network itself.
    """

    arrays: Any
    rest: Any = static()

    def __init__(self, network: Any):
        import equinox as eqx

        self.arrays, self.rest = eqx.partition(network, eqx.is_inexact_array)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import equinox as eqx

        return eqx.combine(self.arrays, self.rest)(*args, **kwargs)


def vmap_last(function: Callable, x: Any) -> Any:
    """`function` of a scalar, applied to every element of `x` whatever its shape."""
    return jax.vmap(function)(x.reshape(-1)).reshape(x.shape)
