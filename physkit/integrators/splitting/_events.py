"""Events within steps: located to rounding, with the right derivative of what follows."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    Aux,
    Clock,
    DeclarationError,
    Fault,
    Faults,
    Module,
    ParameterError,
    Plan,
    PyTree,
    State,
    as_arguments,
    as_count,
    as_state_like,
    call_user_function,
    require_returned,
    static,
)

from .._integrator import AbstractIntegrator, StepSize
from .._wrapper import AbstractWrapper

_MAX_TRIALS = 80  # of a root: Newton's steps, and halvings of the bracket where they leave it


class Event(Module):
    """What happens when a number falls to zero: a ball meets the floor.

        Event(lambda t, x: x[0], lambda t, x: jnp.stack([0 * x[0], -0.9 * x[1]]))

    **Arguments:**

    - `condition`: `(t, state)` → a number; the event happens where it changes from positive to negative.
    - `reset`: `(t, state)` → the state after the event.
    - `args`: numbers by which both should be differentiable: then they are called with `(t, state, args)`.
    """

    condition: Callable = static()
    reset: Callable = static()
    args: PyTree = eqx.field(default=None, converter=as_arguments)

    def __check_init__(self):
        if not callable(self.condition) or not callable(self.reset):
            raise DeclarationError("Event(condition, reset) takes two functions (t, state)")

    def value(self, clock: Clock, state: State) -> Float[Array, ""]:
        """The condition's number at `clock.t`."""
        found = self._call(self.condition, clock, state)
        require_returned(found, "a condition")
        found = jnp.asarray(found)
        if found.ndim:
            raise DeclarationError(f"a condition is one number; it returned shape {found.shape}")
        if not jnp.issubdtype(found.dtype, jnp.floating):
            raise DeclarationError(
                f"a condition is a number that falls through zero, such as a height; it returned {found.dtype}"
            )
        return found

    def after(self, clock: Clock, state: State) -> State:
        """The state after the event."""
        return as_state_like(state, self._call(self.reset, clock, state), "a reset")

    def _call(self, function: Callable, clock: Clock, state: State) -> Any:
        arguments = (clock.t, state) if self.args is None else (clock.t, state, self.args)
        signature = "(t, state)" if self.args is None else "(t, state, args)"
        return call_user_function(function, arguments, "a function of an event", signature)


class Events(AbstractWrapper):
    """Steps of an integrator that end where something happens, change the state, and go on.

        g(t*, Φ(t* − t) x) = 0,   x → reset(x),   the rest of the step from there

        floor = Event(lambda t, x: x[0], lambda t, x: jnp.stack([x[0], -0.9 * x[1]]))
        Simulation(Events(RK4(fall), floor), dt=0.1)

    The time of an event is the root of the condition along steps of the integrator, to rounding, so that its
    order stays. Several events may fall into a step. Derivatives of what follows include that of the time,

        dt*/dp = −(∂g/∂p)/ġ,

    by the implicit function theorem (the saltation matrix).

    **Arguments:**

    - `integrator`: what moves the state between events; deterministic.
    - `events`: `Event`s.
    - `max_events`: in a step, at most. A ball that comes to rest bounces infinitely often in a finite time
      (Zeno): then a run ends with `StepSizeError`, as it does where a reset does not turn the fall round.

    **Errors:** `DeclarationError` without events, or for an integrator that draws noise; `ParameterError` for a
    number of events below 1.

    **Notes:** an event is seen where its number is negative at the end of a step: give a dt shorter than what
    dips below zero and comes back. A start with a negative number waits until it was positive. First
    and second derivatives, in both modes; at a grazing event, ġ = 0, there is none.

    **Reference:** Hiskens & Pai, IEEE Trans. Circuits Syst. I 47, 204 (2000); Leine & Nijmeijer, Dynamics and
    Bifurcations of Non-Smooth Mechanical Systems (2004), chapter 7.
    """

    integrator: AbstractIntegrator
    events: tuple[Event, ...]
    max_events: int = static(default=8)

    def __init__(self, integrator: AbstractIntegrator, *events: Event, max_events: int = 8):
        if not events or not all(isinstance(e, Event) for e in events):
            raise DeclarationError("Events(integrator, Event(condition, reset), …) takes events")
        self.integrator, self.events = integrator, events
        self.max_events = as_count(max_events, "max_events", ParameterError)

    def prepare(self, state: State, dt: StepSize) -> Plan:
        return self.integrator.prepare(state, dt)

    def init(self, plan: Plan, clock: Clock, state: State) -> tuple[Aux, Faults]:
        aux = self.integrator.init(plan, clock, state)
        if clock.noise_key is not None and AbstractIntegrator.draws_momentum(
            self.integrator, plan, clock, state, aux
        ):
            raise DeclarationError(
                f"Events finds its times along steps without noise, and {type(self.integrator).__name__} draws "
                "some: the path to an event would change with its time"
            )
        return aux, Faults.none()

    def refresh(
        self, plan: Plan, clock: Clock, state: State, aux: tuple[Aux, Faults]
    ) -> tuple[Aux, Faults]:
        return self.integrator.refresh(plan, clock, state, aux[0]), aux[1]

    def inner_aux(self, aux: tuple[Aux, Faults]) -> Aux:
        return aux[0]

    def with_inner_aux(self, aux: tuple[Aux, Faults], inner: Aux) -> tuple[Aux, Faults]:
        return inner, aux[1]

    def step(
        self, plan: Plan, clock: Clock, state: State, aux: tuple[Aux, Faults]
    ) -> tuple[State, tuple[Aux, Faults]]:
        inner, faults = aux

        def segment(carry: PyTree, _: None) -> tuple[PyTree, None]:
            # A plain function: JAX hashes branches, and the hash of a method would hash arrays.
            go = lambda carry: self._to_next_event(carry, clock)
            return jax.lax.cond(carry[0] < 1, go, lambda carry: carry, carry), None

        del plan  # of a whole step: shorter ones have their own
        start = jnp.zeros_like(clock.dt), state, inner
        done, state, inner = jax.lax.scan(segment, start, None, length=self.max_events + 1)[0]
        return state, (inner, faults.set_if(Fault.SOLVER, ~(done >= 1)))

    @property
    def keeps_caches_current(self) -> bool:
        """False: a reset moves the state after the step before it."""
        return False

    @property
    def conserves_momentum(self) -> bool:
        """False: walls take momentum up."""
        return False

    # --- inside: times are fractions of the whole step ---------------------------------------------

    def _flow(
        self, clock: Clock, done: Array, by: Array, state: State, aux: Aux
    ) -> tuple[State, Aux, Clock]:
        """State, aux and clock after a step of `by`, from `done` on."""
        sub = clock.substep(done, by, 0)
        plan = self.integrator.prepare(state, sub.dt)
        state, aux = self.integrator.step(plan, sub, state, aux)
        return state, aux, sub.at_fraction(1.0)

    def _to_next_event(self, carry: PyTree, clock: Clock) -> PyTree:
        """Through the next event, or to the end of the step."""
        done, state, aux = carry
        left = 1 - done
        ends, ends_aux, end = self._flow(clock, done, left, state, aux)
        # Searching has no derivative: that of a root is taken at the root.
        frozen = jax.lax.stop_gradient(eqx.filter((self, clock, carry), eqx.is_inexact_array))
        frozen = eqx.combine(frozen, (self, clock, carry))
        times = []
        for k, event in enumerate(self.events):
            below = jax.lax.stop_gradient(event.value(end, ends)) <= 0

            def search(operands: PyTree, k: int = k) -> Array:
                me, clock, carry = operands
                return me._root(k, clock, carry)

            times.append(
                jax.lax.cond(below, search, lambda o: jnp.full_like(left, jnp.inf), frozen)
            )
        roots = jnp.stack(times)
        first, happens = jnp.argmin(roots), jnp.isfinite(jnp.min(roots))

        def through(_: None) -> PyTree:
            def of(k: int) -> Callable:
                return lambda root: self._through(k, clock, carry, root)

            return jax.lax.switch(first, [of(k) for k in range(len(self.events))], roots[first])

        return jax.lax.cond(happens, through, lambda _: (jnp.ones_like(done), ends, ends_aux), None)

    def _through(self, k: int, clock: Clock, carry: PyTree, root: Array) -> PyTree:
        """The state after event `k`, at `root`, with its derivative."""
        done, state, aux = carry
        event, root = self.events[k], jax.lax.stop_gradient(root)
        time = root
        # Steps of Newton's that change no bit: after two the root has derivatives up to the third.
        for _ in range(2):
            value, slope = self._value_and_slope(k, clock, carry, time)
            slope = jnp.where(slope == 0, jnp.nan, slope)
            time = time - (value - jax.lax.stop_gradient(value)) / slope
        at, at_aux, at_clock = self._flow(clock, done, time, state, aux)
        after = event.after(at_clock, at)
        # The reset has moved the state: what is carried must follow.
        plan = self.integrator.prepare(after, clock.dt)
        return done + time, after, self.integrator.refresh(plan, at_clock, after, at_aux)

    def _value_and_slope(
        self, k: int, clock: Clock, carry: PyTree, by: Array
    ) -> tuple[Array, Array]:
        """g of event `k` after a step of `by`, and its derivative by the length of the step."""
        value = lambda by: self._value(k, clock, carry, by)
        return jax.jvp(value, (by,), (jnp.ones_like(by),))

    def _value(self, k: int, clock: Clock, carry: PyTree, by: Array) -> Array:
        """g of event `k` after a step of `by`."""
        done, state, aux = carry
        at, _, now = self._flow(clock, done, by, state, aux)
        return self.events[k].value(now, at)

    def _root(self, k: int, clock: Clock, carry: PyTree) -> Float[Array, ""]:
        """Where event `k`, which is not above zero at the end of the step, falls to it; infinite if nowhere."""
        left = 1 - carry[0]
        value, slope = self._value_and_slope(k, clock, carry, jnp.zeros_like(left))
        rounding = 1e3 * jnp.finfo(left.dtype).eps * jnp.abs(slope)
        starts_above = value > rounding
        # Two events at one time: the second is there already, and still falls.
        is_now = (jnp.abs(value) <= rounding) & (slope < 0)
        # After an event the number is zero to rounding, and rises: the bracket begins where it is positive.
        rises = starts_above | (slope > 0)

        def shorter(search: tuple[Array, Array]) -> tuple[Array, Array]:
            by = 0.5 * search[0]
            return by, self._value(k, clock, carry, by)

        def is_not_above(search: tuple[Array, Array]) -> Bool[Array, ""]:
            return (
                (search[1] <= 0) & (search[0] > jnp.finfo(left.dtype).eps) & rises & ~starts_above
            )

        low, above = jax.lax.while_loop(is_not_above, shorter, (left, -jnp.ones_like(left)))
        low = jnp.where(starts_above, 0, low)
        found = rises & (starts_above | (above > 0))

        def refine(search: tuple[Array, ...]) -> tuple[Array, ...]:
            low, high, by, _, trials = search
            value, slope = self._value_and_slope(k, clock, carry, by)
            low, high = jnp.where(value > 0, by, low), jnp.where(value > 0, high, by)
            newton = by - value / slope
            inside = (newton > low) & (newton < high)
            new = jnp.where(inside, newton, 0.5 * (low + high))
            new = jnp.where(value == 0, by, new)
            return low, high, new, jnp.abs(new - by), trials + 1

        def is_rough(search: tuple[Array, ...]) -> Bool[Array, ""]:
            _, _, by, change, trials = search
            return (change > jnp.finfo(by.dtype).eps * by) & (trials < _MAX_TRIALS) & found

        start = low, left, 0.5 * (low + left), left, jnp.zeros((), jnp.int32)
        by = jax.lax.while_loop(is_rough, refine, start)[2]
        return jnp.where(is_now, 0, jnp.where(found, by, jnp.inf))
