"""`Clock`: time n·dt correctly rounded at any step; noise from seed, step, sub-step and id only."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from physkit.core import Clock, ParameterError, StepCount

# Steps below, at and far beyond 2³¹, and at the borders of the words.
STEPS = [0, 1, 7, 4095, 2**24 - 1, 2**24, 10**9 + 7, 2**31 - 1, 2**31, 2**31 + 3, 10**12 + 12345]


def clock_at(n, dt, dtype, origin=0.0, key=None):
    return Clock.at(StepCount.of(n), jnp.asarray(origin, dtype), jnp.asarray(dt, dtype), key)


def exact(n, dt, dtype, origin=0.0):
    """t0 + n·dt of the rounded dt and t0, without any rounding."""
    return Fraction(float(np.asarray(origin, dtype))) + n * Fraction(float(np.asarray(dt, dtype)))


class TestStepCount:
    @pytest.mark.parametrize("n", STEPS)
    def test_conversion_to_words_and_back(self, n):
        assert int(StepCount.of(n)) == n

    @given(st.integers(0, 2**50), st.integers(0, 2**30 - 1))
    @settings(max_examples=50, deadline=None)
    def test_addition(self, n, more):
        assert int(StepCount.of(n).plus(more)) == n + more

    def test_counting_beyond_2_to_the_31_in_a_loop(self):
        begin = StepCount.of(2**31 - 5)
        end = jax.jit(lambda c: jax.lax.fori_loop(0, 10, lambda _, c: c.plus(1), c))(begin)
        assert int(end) == 2**31 + 5


class TestTime:
    @pytest.mark.parametrize("n", STEPS)
    @pytest.mark.parametrize("dt", [0.004, 0.1, 1 / 3, 1e-15, 7.3e5])
    def test_is_correctly_rounded(self, n, dt, dtype):
        truth = exact(n, dt, dtype)
        t = float(jax.jit(lambda c: c.t)(clock_at(n, dt, dtype)))
        spacing = float(np.spacing(np.asarray(float(truth), dtype)))
        assert abs(Fraction(t) - truth) <= Fraction(spacing) * Fraction(501, 1000)

    @pytest.mark.parametrize("n", STEPS)
    def test_two_words_are_twice_as_precise(self, n, dtype):
        clock = clock_at(n, 0.1, dtype, origin=3.7)
        truth = exact(n, 0.1, dtype, origin=3.7)
        t, low = jax.jit(lambda c: (c.t, c.t_low))(clock)
        both = Fraction(float(t)) + Fraction(float(low))
        tolerance = float(jnp.finfo(dtype).eps) ** 2 * 8
        assert abs(both - truth) <= tolerance * truth

    @given(st.integers(0, 2**45), st.floats(1e-6, 1e3), st.floats(-1e3, 1e3))
    @settings(max_examples=60, deadline=None)
    def test_is_correctly_rounded_for_any_step_and_dt(self, n, dt, origin):
        truth = exact(n, dt, np.float32, origin)
        t = float(clock_at(n, dt, jnp.float32, origin).t)
        largest = max(abs(float(truth)), abs(origin), 1e-30)
        assert abs(Fraction(t) - truth) <= Fraction(float(np.spacing(np.float32(largest))))

    def test_does_not_depend_on_how_steps_were_counted(self, dtype):
        """The time of step n is the same for a counter and for a direct query."""

        def count(c, _):
            return c.plus(1), Clock.at(c, jnp.asarray(0, dtype), jnp.asarray(0.1, dtype)).t

        _, times = jax.lax.scan(count, StepCount.of(0), None, length=1000)
        direct = jax.vmap(
            lambda n: (
                Clock.at(StepCount.of(0).plus(n), jnp.asarray(0, dtype), jnp.asarray(0.1, dtype)).t
            )
        )(jnp.arange(1000))
        assert np.array_equal(times, direct)

    def test_derivative_by_dt_is_n(self, dtype):
        derivative = jax.grad(lambda dt: Clock.at(StepCount.of(10**6), jnp.zeros_like(dt), dt).t)
        assert derivative(jnp.asarray(0.1, dtype)) == pytest.approx(1e6, rel=1e-6)

    def test_derivatives_of_a_phase_are_those_of_its_time(self, dtype):
        def phase(origin, dt, frequency):
            return Clock.at(StepCount.of(1000), origin, dt).phase(frequency)

        numbers = [jnp.asarray(x, dtype) for x in (0.5, 0.01, 1.7)]
        derivatives = jax.grad(phase, (0, 1, 2))(*numbers)
        assert np.allclose(derivatives, [1.7, 1.7 * 1000, 0.5 + 10], rtol=1e-6)

    def test_phase_stays_smooth_when_t_is_large(self):
        dtype, n, dt, frequency = jnp.float32, 10**8, 0.1, 1.7
        t = np.array([float(exact(n + k, dt, np.float32)) for k in range(50)])
        phase = [float(clock_at(n + k, dt, dtype).phase(jnp.float32(frequency))) for k in range(50)]
        expected = np.sin(np.float32(frequency).astype(float) * t)
        # In one word t is good to 0.5 here; what is left is the rounding of 2π/ω and of the phase.
        assert np.std(np.sin(phase) - expected) < 0.5
        steps = np.diff(np.unwrap(phase))
        assert np.allclose(steps, frequency * dt, atol=1e-3)


class TestSubsteps:
    def test_sub_steps_start_where_they_should(self, dtype):
        clock = clock_at(10, 0.2, dtype, origin=1.0)
        substep = clock.substep(0.5, 0.25, 1)
        assert substep.t == pytest.approx(1.0 + 2.0 + 0.1, rel=1e-6)
        assert substep.dt == pytest.approx(0.05, rel=1e-6)
        assert clock.at_fraction(1.0).t == pytest.approx(3.2, rel=1e-6)
        assert clock.at_fraction(1.0).dt == clock.dt
        inner = substep.substep(1.0, 1.0, 0)
        assert inner.t == pytest.approx(3.15, rel=1e-6)

    def test_the_end_of_a_step_is_the_start_of_the_next(self):
        for n in (3, 2**31):
            end, start = (
                clock_at(n, 0.1, jnp.float64).at_fraction(1.0).t,
                clock_at(n + 1, 0.1, jnp.float64).t,
            )
            assert end == pytest.approx(float(start), rel=1e-15)


class TestNoise:
    ids = jnp.arange(4, dtype=jnp.int32)

    def draw(self, n, key, tag=None, ids=None):
        clock = clock_at(n, 0.1, jnp.float64, key=key)
        clock = clock if tag is None else clock.substep(0.0, 1.0, tag)
        return np.asarray(clock.random_normal(self.ids if ids is None else ids, (3,), jnp.float64))

    def test_depends_on_seed_step_and_substep(self, key):
        base = self.draw(5, key)
        assert np.array_equal(base, self.draw(5, key))
        for other in (
            self.draw(6, key),
            self.draw(5 + 2**24, key),
            self.draw(5, jax.random.key(1)),
            self.draw(5, key, tag=0),
            self.draw(5, key, tag=1),
        ):
            assert not np.any(base == other)

    def test_depends_on_the_particle_id_not_on_its_row(self, key):
        order = jnp.array([2, 0, 3, 1], jnp.int32)
        assert np.array_equal(self.draw(5, key, ids=order), self.draw(5, key)[order])

    def test_is_standard_normal(self, key):
        clock = clock_at(1, 0.1, jnp.float32, key=key)
        x = np.asarray(clock.random_normal(jnp.arange(20000, dtype=jnp.int32), (), jnp.float32))
        assert x.dtype == np.float32
        assert abs(x.mean()) < 0.03
        assert abs(x.std() - 1) < 0.03

    def test_raises_without_a_key(self):
        with pytest.raises(ValueError, match="give a key"):
            clock_at(0, 0.1, jnp.float64).random_normal(self.ids, (), jnp.float64)


def test_a_clock_without_a_key_says_so():
    clock = clock_at(5, 0.1, jnp.float32)
    for reader in (clock, clock.substep(0.5, 0.5, 1)):
        with pytest.raises(ParameterError, match="give a key"):
            jax.random.split(reader.key)
    assert jnp.array_equal(
        jax.random.key_data(clock_at(5, 0.1, jnp.float32, key=jax.random.key(1)).key),
        jax.random.key_data(clock_at(5, 0.1, jnp.float32, key=jax.random.key(1)).noise_key),
    )
