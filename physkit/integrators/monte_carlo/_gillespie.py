"""Reactions one by one: Gillespie's direct method."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    Clock,
    DeclarationError,
    Fault,
    Faults,
    Module,
    ParameterError,
    ShapeError,
    State,
    as_count,
    data,
    describe,
    put_component,
    require_component,
    static,
)
from physkit.reactions import Populations, ReactionNetwork

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches


def as_network(network: object) -> ReactionNetwork:
    """`network`, of reactions.

    **Errors:** `DeclarationError` for something else.
    """
    if isinstance(network, ReactionNetwork) or type(network) is object:
        return network  # pyright: ignore[reportReturnType]
    raise DeclarationError(
        f'reactions come as ReactionNetwork(["A -> B", …], rates=[…]); got {describe(network)}'
    )


class Progress(Module):
    """How far the events of a step have come.

    - `time`: since the beginning of the step. `turn`: events or leaps so far.
    - `shorten`: what the next leap is multiplied by, after leaps that went below zero.
    """

    counts: Int[Array, " species"] = data()
    time: Float[Array, ""] = data()
    turn: Int[Array, ""] = data()
    shorten: Float[Array, ""] = data()


def is_in_range(now: Progress) -> Bool[Array, ""]:
    """Whether no count passed 2³¹ − 1: it goes on from −2³¹, and no reaction leads below zero by itself."""
    return jnp.all(now.counts >= 0)


class AbstractJumpProcess(AbstractIntegrator):
    """A step of dt made of as many turns, each an event or a leap, as fall into it.

    Waiting times have no memory: the one that a step's end cuts short is drawn anew in the next step, and the
    process stays exact however steps cut it.
    """

    network: eqx.AbstractVar[ReactionNetwork]
    max_events: eqx.AbstractVar[int]

    def prepare(self, state: State, dt: StepSize) -> None:
        """**Errors:** `ShapeError` unless there is a count for each species of the network."""
        del dt
        counts = self._populations(state).counts
        if counts.shape != (len(self.network.species),):
            raise ShapeError(
                f"the network has the species {list(self.network.species)}; the state has "
                f"{counts.shape[0]} counts"
            )

    def init(self, plan: None, clock: Clock, state: State) -> Faults:
        return Faults.none()

    def refresh(self, plan: None, clock: Clock, state: State, aux: Faults) -> Faults:
        return aux

    def is_stale(self, before: State, after: State) -> bool:
        return False

    def step(self, plan: None, clock: Clock, state: State, aux: Faults) -> tuple[State, Faults]:
        populations = self._populations(state)
        zero, one = jnp.zeros_like(clock.dt), jnp.ones_like(clock.dt)
        start = Progress(populations.counts, zero, jnp.zeros((), jnp.int32), one)
        key = clock.key

        def goes_on(now: Progress) -> Bool[Array, ""]:
            return (now.time < clock.dt) & (now.turn < self.max_events) & is_in_range(now)

        def turn(now: Progress) -> Progress:
            new_key = jax.random.fold_in(key, now.turn)
            return self.turn(new_key, now, populations.volume, clock.dt)

        end = jax.lax.while_loop(goes_on, turn, start)
        state = put_component(state, self.network.component, populations.with_counts(end.counts))
        fits = is_in_range(end)
        aux = aux.set_if(Fault.COUNT_RANGE, ~fits)
        return state, aux.set_if(Fault.SOLVER, fits & (end.time < clock.dt))

    @abc.abstractmethod
    def turn(
        self, key: Array, now: Progress, volume: Float[Array, ""], dt: Float[Array, ""]
    ) -> Progress:
        """The next event or leap; at time `dt` the step ends."""

    def terms(self, aux: Faults) -> TermsWithCaches:
        return ()

    def _populations(self, state: State) -> Populations:
        return require_component(state, self.network.component, Populations)


class Gillespie(AbstractJumpProcess):
    """Every reaction event by itself: an exact sample of the chemical master equation.

        time to the next event  −ln(u)/Σa,   reaction r with probability a_r/Σa

        network = ReactionNetwork(["0 -> X", "X -> 0"], rates=[10.0, 1.0])
        simulation = Simulation(Gillespie(network), dt=0.1)
        run(simulation, Populations([0]), 1000, key=0)

    `dt` is the time between observations only: whatever it is, the statistics are exact.

    **Arguments:**

    - `network`: a `ReactionNetwork`; the state is `Populations`.
    - `max_events`: in a step, at most; beyond it a run ends with an error.

    **Errors:** `DeclarationError` for what is no network, `ComponentError` for a state without `Populations`;
    `RangeError` in a run where a count passes 2³¹ − 1.

    **Notes:** needs a key. A trajectory takes as long as it has events: for large numbers take `TauLeaping`, or
    `RateEquations`. Many are members of a `sweep`, or of `jax.vmap`, which goes on until the last one has ended
    its step. Jumps have no derivative by the rates: differentiate `RateEquations`.

    **Reference:** Gillespie, J. Comput. Phys. 22, 403 (1976); J. Phys. Chem. 81, 2340 (1977).
    """

    network: ReactionNetwork = eqx.field(converter=as_network)
    max_events: int = static(default=1_000_000)

    def __init__(self, network: ReactionNetwork, *, max_events: int = 1_000_000):
        self.network = as_network(network)
        self.max_events = as_count(max_events, "max_events", ParameterError)

    def turn(
        self, key: Array, now: Progress, volume: Float[Array, ""], dt: Float[Array, ""]
    ) -> Progress:
        return next_event(self.network, key, now, volume, dt)


def next_event(
    network: ReactionNetwork,
    key: Array,
    now: Progress,
    volume: Float[Array, ""],
    dt: Float[Array, ""],
) -> Progress:
    """One event, unless it falls behind the end of the step."""
    for_time, for_choice = jax.random.split(key)
    levels = jnp.cumsum(network.propensities(now.counts, volume))
    total = levels[-1]
    wait = (
        jax.random.exponential(for_time, (), dt.dtype) / total
    )  # infinite where nothing can happen
    happens = now.time + wait < dt
    drawn = jax.random.uniform(for_choice, (), dt.dtype) * total
    chosen = jnp.searchsorted(levels, drawn, side="right")
    # Rounding may put the last number at the end of all levels: the last reaction that can happen.
    chosen = jnp.minimum(chosen, jnp.searchsorted(levels, total, side="left"))
    change = jnp.asarray(network.stoichiometry)[chosen]
    counts = jnp.where(happens, now.counts + change, now.counts)
    time = jnp.where(happens, now.time + wait, dt)
    return Progress(counts, time, now.turn + 1, jnp.ones_like(now.shorten))
