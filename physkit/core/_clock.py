"""Time as an integer: t = t0 + n·dt, computed afresh at every step, never accumulated."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._module import Module, data

_WORD = 24  # bits of the low word: exact in float32
_TWO_PI_LOW = {"float32": -1.7484555e-07, "float64": 2.4492935982947064e-16}  # 2π − rounded 2π
_DIGIT = 12  # bits of a digit of n: its products with half a float32 significand are exact


class StepCount(Module):
    """A step number of 55 bits in two int32 words, n = high·2²⁴ + low: it outlives 2³¹ steps."""

    high: Int[Array, "..."] = data()
    low: Int[Array, "..."] = data()

    @staticmethod
    def of(n: int = 0) -> "StepCount":
        return StepCount(jnp.int32(n >> _WORD), jnp.int32(n & (2**_WORD - 1)))

    def plus(self, steps: int | Int[Array, ""]) -> "StepCount":
        """n + steps, for 0 ≤ steps < 2³⁰."""
        total = self.low + jnp.asarray(steps, jnp.int32)
        return StepCount(self.high + (total >> _WORD), total & (2**_WORD - 1))

    def __int__(self) -> int:
        return (int(self.high) << _WORD) + int(self.low)


class Clock(Module):
    """Where a (sub-)step stands: its start `t`, its length `dt`, the step number, and its randomness.

    `t` is correctly rounded at any step number; `t + t_low` is about twice as precise, for phases
    (`phase`) that must stay smooth when t is large in float32. Sub-steps of a composition are made
    by `part`. The key depends on (seed, step, sub-step) only, so noise depends on neither chunking
    nor restarts.
    """

    step: StepCount
    origin: Float[Array, ""] = data()
    macro_dt: Float[Array, ""] = data()
    offset: Float[Array, ""] = data()
    dt: Float[Array, ""] = data()
    key: Array | None = data(None)

    @staticmethod
    def at(step: StepCount, origin, dt, key=None) -> "Clock":
        """The clock of macro step `step`."""
        origin, dt = jnp.asarray(origin), jnp.asarray(dt)
        if key is not None:
            key = jax.random.fold_in(jax.random.fold_in(key, step.high), step.low)
        return Clock(step, origin, dt, jnp.zeros_like(dt), dt, key)

    @property
    def t(self) -> Float[Array, ""]:
        """Time at the start of this (sub-)step."""
        return self._time()[0]

    @property
    def t_low(self) -> Float[Array, ""]:
        """What rounding `t` to its precision left off."""
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
        """The sub-step [t + start·dt, t + (start + length)·dt], with a fresh key per `tag`."""
        key = self.key
        if key is not None and tag is not None:
            key = jax.random.fold_in(key, tag)
        offset = self.offset + start * self.dt
        dt = length * self.dt if tag is not None else self.dt
        return Clock(self.step, self.origin, self.macro_dt, offset, dt, key)

    def phase(self, frequency: Float[Array, ""]) -> Float[Array, ""]:
        """frequency · t modulo 2π, to working precision however large t is."""
        t, low = self._time()
        frequency = jnp.asarray(frequency, t.dtype)
        angle, angle_low = _two_product(frequency, t)
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
        """Standard normal noise of `shape` per particle, drawn from (seed, step, particle id)."""
        if self.key is None:
            raise ValueError("this simulation needs noise: give a key, e.g. key=jax.random.key(0)")

        def draw(particle_id: Int[Array, ""]) -> Float[Array, "..."]:
            return jax.random.normal(jax.random.fold_in(self.key, particle_id), shape, dtype)

        return jax.vmap(draw)(ids)

    def _time(self):
        """t as the sum of two words: exact digit products, added up with their rounding errors."""
        dt = self.macro_dt
        high = jax.lax.stop_gradient(_upper_half(dt))
        total, rest = self.origin, jnp.zeros_like(self.origin)
        for word, place in ((self.step.high, _WORD), (self.step.low, 0)):
            for shift in (_DIGIT, 0):
                digit = ((word >> shift) & (2**_DIGIT - 1)).astype(dt.dtype)
                scale = 2.0 ** (place + shift)
                for part in (high, dt - high):
                    total, rest = _two_sum(total, digit * part * scale, rest)
        total, rest = _two_sum(total, self.offset, rest)
        return _two_sum(total, rest, jnp.zeros_like(rest))


def _upper_half(x: Float[Array, ""]) -> Float[Array, ""]:
    """`x` with the lower half of its significand cleared."""
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
