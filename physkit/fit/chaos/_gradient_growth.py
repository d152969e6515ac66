"""Chaos, measured: how the derivative of a state grows with the window."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    Clock,
    Fault,
    Health,
    ParameterError,
    SimulationDiverged,
    cast_floats,
    float_dtype,
    grow_caches,
    replace_fields,
)
from physkit.observe import block_average
from physkit.simulate import Carry, Direct, Simulation, init, simulate

_LOOKS = 400  # renormalizations, where the caller does not say
_GROWTHS = 6  # of neighbor lists, before giving up
_STEEPEST = 2.0  # powers of time up to which growth counts as that of a regular system
_SETTLING = 4  # the first quarter is left out: directions turn, the start may be off the attractor


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
                f"chaotic: gradients grow as exp(λ t), λ = {_pair(self.exponent, self.error)}",
                f"  Lyapunov time {_pair(self.lyapunov_time, self.lyapunov_time_error)}, "
                f"measured over {window:.4g}",
            ]
        else:
            lines = [
                f"no exponential growth within {window:.4g}: gradients grow as t^{self.power:.2f}, "
                f"λ < {max(self.exponent, 0) + 2 * self.error:.2g}"
            ]
        whole = self.safe_time >= window
        lines.append(
            f"  safe window (growth below {self.factor:.4g}): "
            f"{'all of ' if whole else ''}{self.safe_time:.4g}, {self.safe_steps} steps"
        )
        return "\n".join(lines)


def gradient_growth(
    sim: Simulation,
    state: Any,
    steps: int,
    *,
    every: int | None = None,
    directions: int = 4,
    factor: float = 1e3,
    key: Array | None = None,
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
    every = max(1, steps // _LOOKS) if every is None else every
    looks = steps // every if every > 0 else 0
    if looks < 8 or directions < 1 or not factor > 1:
        raise ParameterError(
            "gradient_growth needs at least 8 renormalizations, one direction and a factor above 1; "
            f"got steps={steps}, every={every}, directions={directions}, factor={factor}"
        )
    key = jax.random.key(0) if key is None else key
    bare = replace_fields(sim, {"observers": (), "guards": (), "adjoint": Direct()})
    carry = state if isinstance(state, Carry) else init(bare, state, key=key)
    carry = carry.replace(observer_state=(), guards=(), is_initial=False)
    bare = cast_floats(bare, float_dtype(carry.state))
    moving = _moving(bare, carry)
    for _ in range(_GROWTHS):
        seeds = jax.random.split(key, directions)
        last, health, rates = _measure(bare, carry, moving, seeds, looks, every)
        if Fault.OVERFLOW not in health.faults():
            break
        aux, _ = grow_caches(carry.aux, last.aux)
        carry = carry.replace(aux=aux)
    health.check("while the growth of gradients was measured", sim=bare, carry=carry, steps=steps)
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
    times = every * np.arange(1, looks + 1) * float(sim.dt)
    return _judged(times, np.cumsum(rates, axis=0), factor, float(sim.dt))


def _moving(sim: Simulation, carry: Carry) -> tuple[bool, ...]:
    """Which leaves of the state change with time; all floating ones if none does (a rest)."""
    after = eqx.filter_jit(lambda s, c: simulate(s, c, 1).state)(sim, carry)
    pairs = list(zip(jax.tree.leaves(carry.state), jax.tree.leaves(after), strict=True))
    is_float = tuple(eqx.is_inexact_array(a) for a, _ in pairs)
    moves = tuple(f and not np.array_equal(*p) for f, p in zip(is_float, pairs, strict=True))
    return moves if any(moves) else is_float


@eqx.filter_jit
def _measure(sim, carry, moving, seeds, looks, every):
    """The last carry, its health, and the logarithmic growth in each stretch, `[looks k]`."""
    split = lambda carry: eqx.partition(carry, eqx.is_inexact_array)

    def look(loop, _):
        floats, rest, tangents = loop

        def flow(floats):
            result = simulate(sim, eqx.combine(floats, rest), every)
            after, rest_after = split(result.carry)
            return after, (rest_after, result.health.bits)

        push = lambda t: jax.jvp(flow, (floats,), (t,), has_aux=True)
        ends, tangents, hidden = jax.vmap(push)(tangents)
        # The state does not depend on the direction: any of the batch will do.
        floats, (rest, bits) = jax.tree.map(lambda x: x[0], (ends, hidden))
        tangents, size = jax.vmap(_shortened)(tangents)
        return (floats, rest, tangents), (jnp.log(size), bits)

    floats, rest = split(carry)
    tangents = jax.vmap(lambda seed: _direction(sim, floats, rest, moving, seed))(seeds)
    loop, (rates, bits) = jax.lax.scan(look, (floats, rest, tangents), None, length=looks)
    bits = jax.lax.reduce(bits, jnp.zeros((), bits.dtype), jax.lax.bitwise_or, (0,))
    return eqx.combine(*loop[:2]), Health(bits), rates


def _direction(sim, floats, rest, moving, seed):
    """A random direction of length 1 among what moves, and what it does to all that is carried."""
    leaves, structure = jax.tree.flatten(eqx.combine(floats, rest).state)
    keys = jax.random.split(seed, len(leaves))

    def drawn(k, x, moves):
        if not eqx.is_inexact_array(x):
            return None
        return jax.random.normal(k, x.shape, x.dtype) if moves else jnp.zeros_like(x)

    parts = [drawn(*one) for one in zip(keys, leaves, moving, strict=True)]
    tangent = jax.tree.map(jnp.zeros_like, floats)
    tangent = tangent.replace(state=jax.tree.unflatten(structure, parts))
    # A force that is carried along is one at the start, and so has a derivative by it.
    now = eqx.combine(floats, rest)

    def refreshed(state):
        clock = Clock.at(now.step, sim.t0, sim.dt, now.key)
        state = eqx.combine(state, rest.state)
        plan = sim.integrator.prepare(state, sim.dt)
        return eqx.filter(sim.integrator.refresh(plan, clock, state, now.aux), eqx.is_inexact_array)

    _, aux = jax.jvp(refreshed, (floats.state,), (tangent.state,))
    return _shortened(tangent.replace(aux=aux))[0]


def _shortened(tangent):
    """`tangent` divided by the length of its state, and that length."""
    squares = [jnp.sum(jnp.abs(x) ** 2) for x in jax.tree.leaves(tangent.state)]
    size = jnp.sqrt(sum(squares[1:], squares[0]))
    return jax.tree.map(lambda x: x / size.astype(x.real.dtype), tangent), size


def _judged(times: np.ndarray, growth: np.ndarray, factor: float, dt: float) -> GradientGrowth:
    """Exponential or a power of time, and where the worst direction passes `factor`."""
    first = len(times) // _SETTLING
    mean = growth.mean(axis=1)
    late, t = mean[first:], times[first:]
    rates = block_average(np.diff(late) / np.diff(t))
    exponent, error = float(rates.mean), float(rates.error)
    rest = lambda x: np.sum((late - np.polyval(np.polyfit(x, late, 1), x)) ** 2)
    power = float(np.polyfit(np.log(t), late, 1)[0])
    rises = late[-1] - late[0] > _STEEPEST * math.log(t[-1] / t[0])
    chaotic = bool(rises and rest(t) < rest(np.log(t)))
    safe = _first_passage(times, growth.max(axis=1), math.log(factor))
    return GradientGrowth(
        times, growth, exponent, error, power, chaotic, factor, safe, int(round(safe / dt, 6))
    )


def _first_passage(times: np.ndarray, growth: np.ndarray, level: float) -> float:
    """When `growth` first passes `level`, between looks by interpolation; the end if it does not."""
    above = growth > level
    if not above.any():
        return float(times[-1])
    k = int(np.argmax(above))
    t, g = np.concatenate([[0.0], times]), np.concatenate([[0.0], growth])
    return float(t[k] + (t[k + 1] - t[k]) * (level - g[k]) / (g[k + 1] - g[k]))


def _pair(value: float, error: float) -> str:
    """`value ± error`, to two digits of the error."""
    if not (error > 0 and math.isfinite(error)):
        return f"{value:.4g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{digits}f} ± {error:.{digits}f}"
