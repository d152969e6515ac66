"""Time as an integer step number: t = t0 + n·dt is computed anew at every step, never accumulated."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._errors import ParameterError
from ._module import Module, data
from .numerics._custom_jvp import custom_jvp
from .numerics._linear_call import linear_call

_WORD = 24  # bits of the low word: exact in float32
_TWO_PI_LOW = {"float32": -1.7484555e-07, "float64": 2.4492935982947064e-16}  # 2π − rounded 2π
_DIGIT = 12  # bits of a digit of n: its products with half a float32 significand are exact


class StepCount(Module):
    """A step number of 55 bits in two int32 words, n = high·2²⁴ + low, for runs beyond 2³¹ steps.

    JAX has no 64-bit integers unless x64 is enabled.
    """

    high: Int[Array, "..."] = data()
    low: Int[Array, "..."] = data()

    @staticmethod
    def of(n: int = 0) -> "StepCount":
        """The step number `n`, n ≥ 0."""
        return StepCount(jnp.int32(n >> _WORD), jnp.int32(n & (2**_WORD - 1)))

    def plus(self, steps: int | Int[Array, ""]) -> "StepCount":
        """n + steps, for 0 ≤ steps < 2³⁰."""
        total = self.low + jnp.asarray(steps, jnp.int32)
        return StepCount(self.high + (total >> _WORD), total & (2**_WORD - 1))

    def __int__(self) -> int:
        return (int(self.high) << _WORD) + int(self.low)


class Clock(Module):
    """The time of a (sub-)step: its start `t`, its length `dt`, the step number, and its random key.

    `t` is correctly rounded at any step number. `t + t_low` is about twice as precise, for phases
    (`phase`) that must stay smooth when t is large in float32. Compositions make sub-steps by `substep`.
    The key depends on (seed, step, sub-step) only, so that noise depends neither on chunks nor on restarts.

    - `step`, `origin`, `macro_dt`: number of the whole step, t0, and the length of whole steps.
    - `offset`: from the start of the whole step to that of this sub-step, in time units.
    - `dt`: length of this (sub-)step, in time units.
    - `noise_key`: a JAX random key; None where a run has none. `key` is the same, and raises there.
    """

    step: StepCount
    origin: Float[Array, ""] = data()
    macro_dt: Float[Array, ""] = data()
    offset: Float[Array, ""] = data()
    dt: Float[Array, ""] = data()
    noise_key: Array | None = data(None)

    @staticmethod
    def at(step: StepCount, origin, dt, key=None) -> "Clock":
        """The clock of the whole step number `step`."""
        origin, dt = jnp.asarray(origin), jnp.asarray(dt)
        if key is not None:
            key = jax.random.fold_in(jax.random.fold_in(key, step.high), step.low)
        return Clock(step, origin, dt, jnp.zeros_like(dt), dt, key)

    @property
    def key(self) -> Array:
        """The random key of this (sub-)step, for noise of a term's or an integrator's own.

        **Errors:** `ParameterError` where the run has none.
        """
        if self.noise_key is None:
            raise ParameterError(
                "this simulation needs noise: give a key, e.g. key=0 or key=jax.random.key(0)"
            )
        return self.noise_key

    @property
    def t(self) -> Float[Array, ""]:
        """Time at the start of this (sub-)step."""
        return self._time()[0]

    @property
    def t_low(self) -> Float[Array, ""]:
        """The rounding error of `t`: t0 + n·dt + offset − t."""
        return self._time()[1]

    def at_fraction(self, fraction: float | Float[Array, ""]) -> "Clock":
        """This clock at the instant t + fraction·dt."""
        return self.substep(fraction, 0.0, None)

    def substep(
        self,
        start: float | Float[Array, ""],
        length: float | Float[Array, ""],
        tag: int | Int[Array, ""] | None,
    ) -> "Clock":
        """The sub-step [t + start·dt, t + (start + length)·dt], with a new key for each `tag`.

        Without a `tag` it is the same step seen at another instant: key and `dt` stay.
        """
        key = self.noise_key
        if key is not None and tag is not None:
            key = jax.random.fold_in(key, tag)
        # Offsets of nested sub-steps add up within one whole step only: their rounding errors stay bounded.
        offset = self.offset + start * self.dt
        dt = length * self.dt if tag is not None else self.dt
        return Clock(self.step, self.origin, self.macro_dt, offset, dt, key)

    def phase(self, frequency: Float[Array, ""]) -> Float[Array, ""]:
        """frequency · t modulo 2π, to working precision however large t is."""
        t, low = self._time()
        frequency = jnp.asarray(frequency, t.dtype)
        angle, angle_low = _two_product(frequency, t)
        # Whole turns drop out of every periodic function, so they need no derivative.
        turns = jax.lax.stop_gradient(jnp.round(angle / (2 * jnp.pi)))
        # 2π in two words: one alone is off by a radian after some 10⁷ turns in float32.
        circle = jnp.asarray(2 * jnp.pi, t.dtype)
        circle_low = _TWO_PI_LOW[t.dtype.name]
        full_turns, full_turns_low = _two_product(turns, circle)
        correction = angle_low + frequency * low - full_turns_low - turns * circle_low
        return (angle - full_turns) + correction

    def random_normal(
        self, ids: Int[Array, " n"], shape: tuple[int, ...], dtype
    ) -> Float[Array, "n ..."]:
        """Standard normal noise `[n, *shape]`, drawn for each particle from (seed, step, particle id).

        **Errors:** `ParameterError` without a key.
        """
        step_key = self.key

        # One key per id: noise then depends neither on the order of particles nor on their devices.
        def draw(particle_id: Int[Array, ""]) -> Float[Array, "..."]:
            return jax.random.normal(jax.random.fold_in(step_key, particle_id), shape, dtype)

        return jax.vmap(draw)(ids)

    def random_uniform(self, ids: Int[Array, " n"], dtype) -> Float[Array, " n"]:
        """Noise between 0 and 1 `[n]`, drawn for each particle from (seed, step, particle id).

        **Errors:** `ParameterError` without a key.
        """
        step_key = self.key

        def draw(particle_id: Int[Array, ""]) -> Float[Array, ""]:
            return jax.random.uniform(jax.random.fold_in(step_key, particle_id), (), dtype)

        return jax.vmap(draw)(ids)

    def _time(self):
        """t as the sum of two words."""
        step = self.step
        return _sum_time(step.high, step.low, self.origin, self.macro_dt, self.offset)


@custom_jvp
def _sum_time(step_high, step_low, origin, dt, offset):
    """t0 + n·dt + offset as the sum of two words. The derivative is all in the first."""
    return _add_digits(step_high, step_low, origin, dt, offset)


@_sum_time.defjvp
def _sum_time_jvp(primals, tangents):
    # It keeps the step number, which a loop over steps has anyway, and not the numbers on the way to t.
    t, low = _sum_time(*primals)
    dot = linear_call(_time_tangent, _time_cotangent, primals[:2], tuple(tangents[2:]), result=t)
    return (t, low), (dot, jnp.zeros_like(low))


def _time_tangent(step, dots):
    origin, dt, offset = dots
    return origin + _as_float(step, dt.dtype) * dt + offset


def _time_cotangent(step, cotangent):
    return cotangent, _as_float(step, cotangent.dtype) * cotangent, cotangent


def _as_float(step, dtype):
    high, low = step
    return high.astype(dtype) * 2.0**_WORD + low.astype(dtype)


# Traced once, not at every use of the time: hundreds of operations, in every program several times.
@functools.partial(jax.jit, inline=True)
def _add_digits(step_high, step_low, origin, dt, offset):
    """t0 + n·dt + offset: exact digit products, added up with their rounding errors."""
    # dt = high + (dt − high), where both have half a significand: times 12 bits of n they are exact.
    high = _upper_half(dt)
    total, rest = origin, jnp.zeros_like(origin)
    for word, place in ((step_high, _WORD), (step_low, 0)):
        for shift in (_DIGIT, 0):
            digit = ((word >> shift) & (2**_DIGIT - 1)).astype(dt.dtype)
            scale = 2.0 ** (place + shift)
            for part in (high, dt - high):
                total, rest = _two_sum(total, digit * part * scale, rest)
    total, rest = _two_sum(total, offset, rest)
    return _two_sum(total, rest, jnp.zeros_like(rest))


def _upper_half(x: Float[Array, ""]) -> Float[Array, ""]:
    """`x` with the lower half of its significand cleared."""
    # 24 and 53 bits of significand, of which so many are cleared.
    bits, cleared = (jnp.uint32, 12) if x.dtype.itemsize == 4 else (jnp.uint64, 27)
    word = jax.lax.bitcast_convert_type(x, bits)
    mask = ~((jnp.ones((), bits) << jnp.asarray(cleared, bits)) - jnp.ones((), bits))
    return jax.lax.bitcast_convert_type(word & mask, x.dtype)


def _two_sum(a, b, rest):
    """(s, e): s = a + b rounded and e = its rounding error plus `rest` (Knuth's TwoSum)."""
    s = a + b
    v = s - a
    return s, rest + ((a - (s - v)) + (b - v))


def _two_product(a, b):
    """(p, e): p = a · b rounded and e its rounding error (Dekker), by exact products of halves."""
    p = a * b
    a_high, b_high = (jax.lax.stop_gradient(_upper_half(x)) for x in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
