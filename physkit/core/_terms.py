"""Terms: one piece of physics each, with its own cache."""

import abc
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ._clock import Clock
from ._components import as_rate_of, at_time, combine_rates
from ._errors import DeclarationError
from ._faults import Fault
from ._module import Module, call_user_function, static
from ._types import Cache, PyTree, Rate, State
from .calls._arguments import as_arguments
from .calls._explain import describe
from .calls._returned import require_returned
from .numerics._matrix_products import at_full_precision


class AbstractTerm(Module):
    """One piece of physics on named components: `(clock, state, cache) → (value, cache)`."""

    def init(self, state: State) -> Cache:
        """What the term carries from step to step (a neighbor list, an initial guess); None if nothing."""
        del state

    @abc.abstractmethod
    def __call__(self, clock: Clock, state: State, cache: Cache) -> tuple[Any, Cache]:
        """The term's value at `clock.t`, and its cache for the next call."""

    def check_state(self, state: State) -> None:
        """Compare numbers of the term with those of a state, before the first step; here nothing.

        **Errors:** of the term, for numbers that contradict each other. Inside a trace they cannot be seen.
        """
        del state

    def check_step(self, state: State, dt: Float[Array, ""]) -> None:
        """Compare numbers of the term and a state with the length of a step, before the first; here nothing.

        **Errors:** `StepSizeError` for a step so long that it cannot but blow up, where numbers can be seen.
        """
        del state, dt

    def check_time(self, state: State, t: Float[Array, ""]) -> None:
        """Look at what depends on time, for a run that starts at `t`, before the first step; here nothing."""
        del state, t

    def check_beside(self, others: Sequence["AbstractTerm"], state: State) -> None:
        """Compare the term with the others of a simulation, before the first step; here nothing.

        **Errors:** of the term, for what is only wrong without another term.
        """
        del others, state

    def advice(self, fault: Fault) -> str | None:
        """What a fault of a run means and what helps, in the words of the term; None for those of all terms."""
        del fault

    def stiffest_rate(self, state: State) -> complex | float | None:
        """The λ of largest size in what the term makes of single waves, du/dt = λu; 1 / time.

        Decay is negative, oscillation imaginary. None where there is none such, or numbers cannot be seen.
        Explicit methods refuse steps with which such a wave cannot but blow up.
        """
        del state

    @property
    def needs_halo(self) -> bool:
        """Whether it reads the halo: copies of other devices' parts near the slab of this one.

        For the term alone: callers ask the terms inside of it themselves.
        """
        return False

    def for_shape_inference(self) -> "AbstractTerm":
        """A term with results of the same shapes, as cheap to trace as possible; its numbers are not used."""
        return self

    def for_start(self, state: State, least: int = 0) -> "AbstractTerm":
        """This term for a start from `state`, whose numbers only the host sees: `init` itself is traced.

        What a trace hides is checked and chosen here: whether numbers belong together, capacities of caches.
        For the term alone: callers ask the terms inside of it themselves.

        - `least`: at least this capacity for every cache whose capacity is chosen here.
        """
        del state, least
        return self

    def fit_cache(self, cache: Cache) -> Cache:
        """The cache that `init` made, with the capacity that it has turned out to need (host only)."""
        return cache

    def mark_current(self, cache: Cache, state: State) -> Cache:
        """`cache`, which the term has just brought up to date for `state`, knowing it: not to be done again.

        For this very object `state` only, within one trace; for any other the cache works as before.
        """
        del state
        return cache

    def require_reversible(self, state: State) -> None:
        """Check that the term's value is the same in the forward and the backward pass.

        **Errors:** `NotReversible` where it may depend on the history of its cache.
        """
        del state

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""] | None:
        """The largest signal speed divided by the size of a cell, 1 / time; None where nothing limits the step.

        Times dt it is the Courant number, which `CFLSubsteps` and `CourantLimit` bound.
        """
        del clock, state

    @property
    def drifts(self) -> tuple[tuple[str, str | None], ...]:
        """(name of this class, component) for each component that it moves by that component's own velocity.

        dx/dt = v: two terms that do it for one component would move it twice as far.
        """
        return ()

    def parts(self, state: State) -> tuple[str, ...]:
        """Names of the parts that some integrators advance apart; empty where there is only the whole."""
        del state
        return ()

    @property
    def has_constraint(self) -> bool:
        """Whether it holds its component to a constraint, so that it has a say in the rates of other terms."""
        return False

    def constrain(self, state: State, rate: Rate) -> Rate:
        """What the constraint leaves of another term's rate: all of it, unless `has_constraint`."""
        del state
        return rate

    # --- for methods that solve for a stiff part --------------------------------------------------

    def is_implicit(self, state: State) -> bool:
        """Whether implicit methods solve for a part of it by values: `solve_implicit` and what goes with it."""
        del state
        return False

    def solve_implicit(
        self, clock: Clock, state: State, interval: Float[Array, ""]
    ) -> tuple[State, Rate]:
        """The state u that solves u − interval·L(t, u) = `state` at `clock.t`, and the rate L(t, u).

        L is the stiff part of the term; constraints (no divergence) and values on walls hold for u.
        """
        raise DeclarationError(f"{type(self).__name__} has no part that is solved for implicitly")

    def implicit_rate(self, clock: Clock, state: State) -> Rate:
        """L(t, u), for methods that begin with it.

        **Errors:** `DeclarationError` for terms that know it only together with a solution.
        """
        raise DeclarationError(
            f"{type(self).__name__} has no implicit rate before a solution: take ARS222 or ARS343"
        )

    def explicit_rate(self, clock: Clock, state: State) -> Rate:
        """The rest of the rate where L is solved for; None for 0."""
        del clock, state

    def named(self, name: str) -> Any:
        """A sum of this one term under the name `name`: add it to others, and `find` it by that name."""
        return Tendencies((self,), (name,))

    def __mul__(self, factor: Any) -> Any:
        """**Errors:** `DeclarationError`: factors belong to the parameters of a term."""
        raise DeclarationError(
            f"{type(self).__name__} has no product with {describe(factor)}: scale its parameters instead"
        )

    __rmul__ = __truediv__ = __mul__

    def __sub__(self, other: Any) -> Any:
        """**Errors:** `DeclarationError`: terms add, with signs in their parameters."""
        raise DeclarationError(
            f"{type(self).__name__} has no difference with {describe(other)}: terms add, and signs belong to "
            "their parameters"
        )


class AbstractTendency(AbstractTerm):
    """A term that returns rates of change of the components that it drives, and of no others."""

    # The cache passes through: a tendency that has one overrides `init` and `__call__`.

    def __add__(self, other: Any) -> Any:
        """**Errors:** `DeclarationError`: tendencies are added by the integrator that they are given to."""
        raise DeclarationError(
            f"{type(self).__name__} + {describe(other)}: rates are given one after the other, RK4(a, b), "
            "which adds them; forces act by VelocityVerlet(force), beside them in Strang(…)"
        )

    @abc.abstractmethod
    def rate(self, clock: Clock, state: State) -> Rate:
        """d state / dt: a dict of rates by component name, or the bare rate of a bare state."""

    def __call__(self, clock: Clock, state: State, cache: Cache) -> tuple[Rate, Cache]:
        # Here, for every term alike: fields with the boundary, and the values on walls, of this instant.
        now = at_time(state, clock.t)
        return as_rate_of(now, self.rate(clock, now), f"{type(self).__name__}.rate"), cache

    def is_unresolved(self, clock: Clock, state: State) -> Bool[Array, ""] | None:
        """Whether an explicit step of `clock.dt` is too long to mean anything; None where nothing tells.

        Asked at the end of every chunk, with no part in derivatives.
        """
        del clock, state


class Function(AbstractTendency):
    """A plain function `(t, state) → rate` as a tendency.

    Numbers by which the function should be differentiable go into `args`. It is then called as
    `function(t, state, args)`. Numbers in its closure are constants. The function may be an Equinox module
    that is called like one, or a method of it: its arrays are parameters.
    """

    function: Callable | None = static()
    args: PyTree = eqx.field(default=None, converter=as_arguments)
    network: "Network | None" = None

    def __init__(self, function: Callable, args: PyTree = None):
        # Arrays are no part of what a program is compiled for: a module keeps them in its tree.
        has_arrays = isinstance(function, eqx.Module) and any(
            map(eqx.is_array, jax.tree.leaves(function))
        )
        self.function = None if has_arrays else function
        self.network = Network(function) if has_arrays else None
        self.args = args

    def rate(self, clock: Clock, state: State) -> Rate:
        function = self.function
        if self.network is not None:
            function = eqx.combine(self.network.arrays, self.network.rest)
        arguments = (clock.t, state) if self.args is None else (clock.t, state, self.args)
        signature = "(t, state)" if self.args is None else "(t, state, args)"
        rate = call_user_function(function, arguments, "a right-hand side", signature)
        require_returned(rate, "a right-hand side")
        if isinstance(rate, list | tuple) and isinstance(state, jax.Array):
            rate = jnp.asarray(rate)  # of a state that is one array, its entries in a list
        for leaf in jax.tree.leaves(rate):
            if not eqx.is_array_like(leaf):
                raise DeclarationError(
                    f"a right-hand side returns numbers: the rate of its state; got {describe(leaf)}"
                )
        return rate

    def __check_init__(self):
        if self.network is not None and callable(self.network.rest):
            return
        if not callable(self.function) or isinstance(self.function, type):
            raise DeclarationError(
                "a right-hand side is a function (t, state) → rate, e.g. lambda t, y: -y; got "
                f"{describe(self.function)}"
            )
        names = _argument_names(self.function)
        if len(names) > 1 and names[1] in _TIMES and names[0] not in _TIMES:
            # With a state that is one number nothing else would tell.
            raise DeclarationError(
                f"a right-hand side is called as function(t, state), the time first; this one takes "
                f"({', '.join(names)})"
            )


_TIMES = ("t", "time")


def _argument_names(function: Callable) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []  # some compiled functions have no signature


class Tendencies(AbstractTerm):
    """The sum of several tendencies, each with its own cache.

    `term_names`: one for each term, or empty where no term has a name.
    """

    terms: tuple[AbstractTerm, ...]
    term_names: tuple[str | None, ...] = static(default=(), repr=False, metadata={"label": True})

    @staticmethod
    def of(*terms: Any) -> "Tendencies":
        """Terms, plain functions and other sums as one flat sum.

        **Errors:** `TypeError` for what is none of them, `DeclarationError` for a name that occurs twice.
        """
        flat: list[AbstractTerm] = []
        names: list[str | None] = []
        for term in terms:
            if isinstance(term, Tendencies):
                flat.extend(term.terms)
                names.extend(term.term_names or [None] * len(term.terms))
                continue
            if not isinstance(term, AbstractTerm):
                if not callable(term):
                    raise DeclarationError(
                        "expected a tendency or a function (t, state) → rate, got "
                        f"{describe(term)}{_advice(term)}"
                    )
                if isinstance(term, type):
                    raise DeclarationError(
                        f"{term.__name__} is a class: write {term.__name__}(…), with its arguments"
                    )
                term = Function(term)
            flat.append(term)
            names.append(None)
        return Tendencies(tuple(flat), names_of_terms(names))

    def named(self, name: str) -> "Tendencies":
        """Always raises: names belong to terms, not to sums of them.

        **Errors:** `DeclarationError`.
        """
        raise DeclarationError(f"give {name!r} to one term, before it is added to others")

    @property
    def drifts(self) -> tuple[tuple[str, str | None], ...]:
        return tuple(drift for term in self.terms for drift in term.drifts)

    def init(self, state: State) -> Cache:
        return tuple(term.init(state) for term in self.terms)

    def check_state(self, state: State) -> None:
        for term in self.terms:
            term.check_state(state)

    def check_time(self, state: State, t: Float[Array, ""]) -> None:
        for term in self.terms:
            term.check_time(state, t)

    def __call__(self, clock: Clock, state: State, cache: Cache) -> tuple[Rate, Cache]:
        rates, caches = [], []
        for term, term_cache in zip(self.terms, cache, strict=True):
            rate, term_cache = term(clock, state, term_cache)
            rates.append(rate)
            caches.append(term_cache)
        return sum_rates(self.terms, state, rates), tuple(caches)


def sum_rates(terms: Sequence[AbstractTerm], state: State, rates: Sequence[Rate]) -> Rate:
    """The sum of the terms' rates; each passes the constraints of all other terms."""
    rates = list(rates)
    for k, term in enumerate(terms):
        if term.has_constraint:
            rates = [r if j == k else term.constrain(state, r) for j, r in enumerate(rates)]
    # The integer 1 as weight leaves dtypes and numbers of the rates as they are.
    return combine_rates([1] * len(rates), rates)


def _advice(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ": give terms one after the other, without a list"
    if hasattr(value, "force_over_distance"):
        return ": a pair potential acts by Pairwise(potential, cutoff=…) in VelocityVerlet(force)"
    return ""


def names_of_terms(names: Sequence[str | None]) -> tuple[str | None, ...]:
    """Names of the terms of a sum, in the form that sums store: empty where no term has one.

    **Errors:** `DeclarationError` for a name that occurs twice.
    """
    given = [name for name in names if name is not None]
    if len(set(given)) < len(given):
        raise DeclarationError(f"terms of a sum have different names; got {given}")
    return tuple(names) if given else ()


class Network(Module):
    """Any Equinox network as a Module: floating arrays are parameters, everything else (activations) is static.

    It is called like the network itself.
    """

    arrays: PyTree
    rest: PyTree = static()

    def __init__(self, network: PyTree):
        self.arrays, self.rest = eqx.partition(network, eqx.is_inexact_array)

    @at_full_precision
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return eqx.combine(self.arrays, self.rest)(*args, **kwargs)
