"""Chaos, measured: how the derivative of a state grows with the window."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Aux,
    Clock,
    Fault,
    Health,
    Key,
    KeyLike,
    ParameterError,
    SimulationDiverged,
    State,
    as_count,
    as_key,
    cast_floats,
    explain_call,
    float_dtype,
    grow_caches,
    replace_fields,
)
from physkit.observe import block_average
from physkit.simulate import Carry, Direct, Simulation, init, simulate

_RENORMALIZATIONS = 400  # of tangents in a measurement, by default
_MAX_GROWTHS = 6  # of neighbor lists, before giving up
_MAX_REGULAR_POWER = 2.0  # growth up to this power of time may be that of a regular system
_TRANSIENT = 4  # 1/4 of the run is left out: directions turn, the start may be off the attractor


class GradientGrowth(NamedTuple):
    """How the derivative of the state by the start grew, and what it says of chaos.

    - `times`: `[m]`, since the start.
    - `growth`: `[m k]`, natural logarithm of |δ(t)| / |δ(0)| for k directions.
    - `exponent`, `error`: the largest Lyapunov exponent λ, 1 / time, and its standard error; of a
      regular system the slope that is left at the end, an upper bound.
    - `power`: p, where growth is best described by tᵖ.
    - `chaotic`: whether growth is exponential.
    - `factor`: growth up to which a gradient counts as safe.
    - `safe_time`, `safe_steps`: the longest window in which no direction grew by more than
      `factor`; all of the measured window if none did.
    """

    times: np.ndarray
    growth: np.ndarray
    exponent: float
    error: float
    power: float
    chaotic: bool
    factor: float
    safe_time: float
    safe_steps: int

    @property
    def lyapunov_time(self) -> float:
        """1/λ: in this time errors and gradients grow by e. Infinite for a regular system."""
        return 1 / self.exponent if self.chaotic else math.inf

    @property
    def lyapunov_time_error(self) -> float:
        """Standard error of the Lyapunov time."""
        return self.error / self.exponent**2 if self.chaotic else 0.0

    def __str__(self) -> str:
        window = self.times[-1]
        if self.chaotic:
            lines = [
                f"chaotic: gradients grow as exp(λ t), λ = {_value_and_error(self.exponent, self.error)}",
                f"  Lyapunov time {_value_and_error(self.lyapunov_time, self.lyapunov_time_error)}, "
                f"measured over {window:.4g}",
            ]
        else:
            lines = [
                f"no exponential growth within {window:.4g}: gradients grow as t^{self.power:.2f}, "
                f"λ < {max(self.exponent, 0) + 2 * self.error:.2g}"
            ]
        everywhere = self.safe_time >= window
        lines.append(
            f"  safe window (growth below {self.factor:.4g}): "
            f"{'all of ' if everywhere else ''}{self.safe_time:.4g}, {self.safe_steps} steps"
        )
        return "\n".join(lines)


@explain_call
def gradient_growth(
    sim: Simulation,
    state: State | Carry,
    steps: int,
    *,
    every: int | None = None,
    directions: int = 4,
    factor: float = 1e3,
    key: KeyLike | None = None,
) -> GradientGrowth:
    """How much longer a gradient becomes the longer the window: the largest Lyapunov exponent.

        δ' = (∂Φ/∂x) δ,   λ = lim ln(|δ(t)| / |δ(0)|) / t

    Random directions in state space are carried along by the derivative of the flow and shortened to
    length 1 again every few steps. In chaos they grow as e^{λt}; then a gradient through a window of
    many 1/λ is exact and worthless: it describes a landscape rougher than any optimizer can use. A
    regular orbit's grow as a power of time, mostly t (neighbors have other frequencies).

    **Arguments:**

    - `sim`, `state`: as for `simulate`. Observers and guards are left out; the adjoint plays no part.
    - `steps`: of the measurement. For λ many Lyapunov times; for the safe window a few.
    - `every`: steps between renormalizations; some 400 of them if left out.
    - `directions`: how many random directions.
    - `factor`: growth of a gradient that you still trust.
    - `key`: of the directions, and of the dynamics where they have noise.

    **Errors:** `ParameterError` for sizes that make no sense; `SimulationDiverged` where state or
    derivative become infinite.

    **Good values:** 10 to 100 Lyapunov times for λ within 10 %; hundreds to thousands for 1 %. A factor
    of 1000 means: what differs by 0.1 % of the state's size at the start differs by all of it.

    **Notes:** only what changes with time is varied, not masses or boxes. Lengths are Euclidean over
    positions, velocities … in your units: these change the first few Lyapunov times and the safe
    window by some factor, but not λ. The error bar comes from blocks of time. Noise is the same for
    all directions.

    **Reference:** Benettin, Galgani, Giorgilli & Strelcyn, Meccanica 15, 9 (1980); Metz, Freeman,
    Schoenholz & Kachman, Gradients are Not All You Need, arXiv:2111.05803.
    """
    steps = as_count(steps)
    every = max(1, steps // _RENORMALIZATIONS) if every is None else every
    # A stretch is the steps between two renormalizations.
    stretches = steps // every if every > 0 else 0
    if stretches < 8 or directions < 1 or not factor > 1:
        raise ParameterError(
            "gradient_growth needs at least 8 renormalizations, one direction and a factor above 1; "
            f"got steps={steps}, every={every}, directions={directions}, factor={factor}"
        )
    key = as_key(0 if key is None else key)
    # Forward mode stores nothing, so `Direct` is the cheapest adjoint.
    bare = replace_fields(sim, {"observers": (), "guards": (), "adjoint": Direct()})
    carry = state if isinstance(state, Carry) else init(bare, state, key=key)
    # Observers would record frames that nobody reads, and guards stop what is only to be measured.
    carry = carry.replace(observer_state=(), guards=(), is_initial=False)
    bare = cast_floats(bare, float_dtype(carry.state))
    evolves = _evolving_leaves(bare, carry)
    # Nothing grows inside the compiled measurement: it is run again with larger caches.
    for _ in range(_MAX_GROWTHS):
        seeds = jax.random.split(key, directions)
        last, health, rates = _measure(bare, carry, evolves, seeds, stretches, every)
        if Fault.OVERFLOW not in health.faults():
            break
        aux, _ = grow_caches(carry.aux, last.aux)
        carry = carry.replace(aux=aux)
    health.check("while the growth of gradients was measured", sim=bare, carry=carry, steps=steps)
    # In double precision: thousands of logarithms are added up.
    rates = np.asarray(rates, np.float64)
    if not np.all(np.isfinite(rates)):
        bad = int(np.argmin(np.all(np.isfinite(rates), axis=1)))
        raise SimulationDiverged(
            f"the state or its derivative is not finite after {(bad + 1) * every} steps, or nothing "
            "in the state depends on the start",
            sim=bare,
            carry=carry,
            steps=steps,
        )
    times = every * np.arange(1, stretches + 1) * float(sim.dt)
    return _analyze(times, np.cumsum(rates, axis=0), factor, float(sim.dt))


def _evolving_leaves(sim: Simulation, carry: Carry) -> tuple[bool, ...]:
    """Which leaves of the state change with time; all floating ones if none does (a rest)."""
    after = eqx.filter_jit(lambda s, c: simulate(s, c, 1).state)(sim, carry)
    pairs = list(zip(jax.tree.leaves(carry.state), jax.tree.leaves(after), strict=True))
    is_float = tuple(eqx.is_inexact_array(a) for a, _ in pairs)
    moves = tuple(f and not np.array_equal(*p) for f, p in zip(is_float, pairs, strict=True))
    return moves if any(moves) else is_float


@eqx.filter_jit
def _measure(
    sim: Simulation,
    carry: Carry,
    evolves: tuple[bool, ...],
    seeds: Key,
    stretches: int,
    every: int,
) -> tuple[Carry, Health, Float[Array, "stretches k"]]:
    """The last carry, its health, and the logarithmic growth of k tangents in each stretch."""

    def advance_tangents(loop: tuple[Carry, Carry, Carry], _: None):
        floats, rest, tangents = loop

        def flow(floats: Carry) -> tuple[Carry, tuple[Carry, Array]]:
            result = simulate(sim, eqx.combine(floats, rest), every)
            floats_after, rest_after = _partition(result.carry)
            return floats_after, (rest_after, result.health.bits)

        def push_forward(tangent: Carry) -> tuple[Carry, Carry, tuple[Carry, Array]]:
            # Also through forces and histories that are carried: their tangents go along.
            return jax.jvp(flow, (floats,), (tangent,), has_aux=True)

        ends, tangents, not_differentiated = jax.vmap(push_forward)(tangents)
        # The state does not depend on the direction: any of the batch will do.
        floats, (rest, bits) = jax.tree.map(lambda x: x[0], (ends, not_differentiated))
        # Shortened after every stretch, or they would overflow; what they grew by is recorded.
        tangents, lengths = jax.vmap(_normalize)(tangents)
        return (floats, rest, tangents), (jnp.log(lengths), bits)

    floats, rest = _partition(carry)
    tangents = jax.vmap(lambda seed: _random_tangent(sim, floats, rest, evolves, seed))(seeds)
    loop, (rates, bits) = jax.lax.scan(
        advance_tangents, (floats, rest, tangents), None, length=stretches
    )
    # Fault bits of all stretches together.
    bits = jax.lax.reduce(bits, jnp.zeros((), bits.dtype), jax.lax.bitwise_or, (0,))
    return eqx.combine(*loop[:2]), Health(bits), rates


def _partition(carry: Carry) -> tuple[Carry, Carry]:
    return eqx.partition(carry, eqx.is_inexact_array)


def _random_tangent(
    sim: Simulation, floats: Carry, rest: Carry, evolves: tuple[bool, ...], seed: Key
) -> Carry:
    """A random direction of length 1 among what evolves, and what it does to all that is carried."""
    carry = eqx.combine(floats, rest)
    leaves, structure = jax.tree.flatten(carry.state)
    keys = jax.random.split(seed, len(leaves))

    # Only what evolves is varied: masses and boxes are floats of the state, too, but constants.
    def draw(key: Key, x: Array, evolves: bool) -> Array | None:
        if not eqx.is_inexact_array(x):
            return None
        return jax.random.normal(key, x.shape, x.dtype) if evolves else jnp.zeros_like(x)

    parts = [draw(*one) for one in zip(keys, leaves, evolves, strict=True)]
    tangent = jax.tree.map(jnp.zeros_like, floats)
    tangent = tangent.replace(state=jax.tree.unflatten(structure, parts))

    # A force that is carried along belongs to the state, and so has a derivative by it.
    def refresh(state_floats: State) -> Aux:
        clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
        state = eqx.combine(state_floats, rest.state)
        plan = sim.integrator.prepare(state, sim.dt)
        aux = sim.integrator.refresh(plan, clock, state, carry.aux)
        return eqx.filter(aux, eqx.is_inexact_array)

    _, aux = jax.jvp(refresh, (floats.state,), (tangent.state,))
    return _normalize(tangent.replace(aux=aux))[0]


def _normalize(tangent: Carry) -> tuple[Carry, Float[Array, ""]]:
    """`tangent` divided by the length of its state, and that length."""
    squares = [jnp.sum(jnp.abs(x) ** 2) for x in jax.tree.leaves(tangent.state)]
    length = jnp.sqrt(sum(squares[1:], squares[0]))
    return jax.tree.map(lambda x: x / length.astype(x.real.dtype), tangent), length


def _analyze(times: np.ndarray, growth: np.ndarray, factor: float, dt: float) -> GradientGrowth:
    """Exponential or a power of time, and where the worst direction passes `factor`."""
    first = len(times) // _TRANSIENT
    # The mean over directions for λ, the worst of them for the safe window.
    mean = growth.mean(axis=1)
    late, t = mean[first:], times[first:]
    rates = block_average(np.diff(late) / np.diff(t))
    exponent, error = float(rates.mean), float(rates.error)

    def misfit_of_line(x: np.ndarray) -> float:
        return np.sum((late - np.polyval(np.polyfit(x, late, 1), x)) ** 2)

    # Chaotic: more growth than a regular system has, and straighter over t than over ln t.
    power = float(np.polyfit(np.log(t), late, 1)[0])
    rises = late[-1] - late[0] > _MAX_REGULAR_POWER * math.log(t[-1] / t[0])
    chaotic = bool(rises and misfit_of_line(t) < misfit_of_line(np.log(t)))
    safe = _first_passage(times, growth.max(axis=1), math.log(factor))
    return GradientGrowth(
        times, growth, exponent, error, power, chaotic, factor, safe, int(round(safe / dt, 6))
    )


def _first_passage(times: np.ndarray, growth: np.ndarray, level: float) -> float:
    """When `growth` first passes `level`, interpolated; the end if it does not."""
    above = growth > level
    if not above.any():
        return float(times[-1])
    k = int(np.argmax(above))
    # All directions have length 1 at the start, where growth is 0.
    t, g = np.concatenate([[0.0], times]), np.concatenate([[0.0], growth])
    return float(t[k] + (t[k + 1] - t[k]) * (level - g[k]) / (g[k + 1] - g[k]))


def _value_and_error(value: float, error: float) -> str:
    """`value ± error`, to two digits of the error."""
    if not (error > 0 and math.isfinite(error)):
        return f"{value:.4g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{digits}f} ± {error:.{digits}f}"
