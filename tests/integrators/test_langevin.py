"""BAOAB: exact averages of positions, noise that belongs to particles, and its limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError
from physkit.integrators import BAOAB, Brownian, VelocityVerlet
from physkit.particles import Particles

from .problems import Spring, evolve, evolve_compiled, final_state

KEY = jax.random.key(7)


@pytest.mark.parametrize("dt", [pytest.param(0.5, marks=pytest.mark.slow), 1.2])
def test_harmonic_positions_are_sampled_exactly(dt):
    """⟨x²⟩ = k_B T/k at any stable dt, and ⟨v²⟩ = (k_B T/m)(1 − (ω dt)²/4)."""
    position, velocity = moments(dt, count=5_000, steps=1_000)
    assert position == pytest.approx(1, abs=2e-3)
    assert velocity == pytest.approx(1 - 4 * dt**2 / 16, abs=4e-3)


def moments(dt, count, steps, temperature=0.7, stiffness=2.0, mass=2.0):
    """⟨x²⟩ k/(k_B T) and ⟨v²⟩ m/(k_B T) over many oscillators of frequency 1."""
    start = jax.random.normal(KEY, (2, count, 1), jnp.float32)
    state = Particles(
        jnp.sqrt(temperature / stiffness) * start[0],
        jnp.sqrt(temperature / mass) * start[1],
        mass,
    )
    integrator = BAOAB(
        Spring(jnp.float32(stiffness), drive=jnp.float32(0)),
        temperature=jnp.float32(temperature),
        friction=jnp.float32(1),
    )

    @jax.jit
    def run(state):
        dt32 = jnp.float32(dt)
        state, aux = evolve(integrator, state, dt32, 20, key=KEY)

        def block(carry, n):
            state, aux = evolve(
                integrator, carry[0], dt32, 1, key=jax.random.fold_in(KEY, n), aux=carry[1]
            )
            return (state, aux), (jnp.mean(state.position**2), jnp.mean(state.velocity**2))

        return jax.lax.scan(block, (state, aux), jnp.arange(steps))[1]

    x2, v2 = (float(np.mean(np.asarray(m, float))) for m in run(state))
    return x2 * stiffness / temperature, v2 * mass / temperature


def oscillators(n=4, **options):
    draw = np.random.default_rng(1)
    return Particles(draw.normal(size=(n, 2)), draw.normal(size=(n, 2)), 1.5, **options)


BATH = BAOAB(Spring(), temperature=0.8, friction=0.5)


def test_noise_does_not_depend_on_chunks():
    dt, state = jnp.asarray(0.1), oscillators()
    whole, _ = evolve_compiled(BATH, state, dt, 6, key=KEY)
    half, aux = evolve_compiled(BATH, state, dt, 4, key=KEY)
    rest, _ = evolve_compiled(BATH, half, dt, 2, key=KEY, first=4, aux=aux)
    np.testing.assert_array_equal(whole.position, rest.position)
    np.testing.assert_array_equal(whole.velocity, rest.velocity)


def test_noise_depends_on_id_not_on_row():
    state, order = oscillators(), np.array([2, 0, 3, 1])
    shuffled = Particles(state.position[order], state.velocity[order], 1.5, id=order)
    out, shuffled_out = (final_state(BATH, s, 0.1, 5, key=KEY) for s in (state, shuffled))
    np.testing.assert_allclose(shuffled_out.position, out.position[order], rtol=1e-13)


def test_components_get_different_noise():
    alike = oscillators()
    forces = Spring(component="a") + Spring(component="b")
    out = final_state(BAOAB(forces, 0.8, 0.5), {"a": alike, "b": alike}, 0.1, 1, key=KEY)
    assert np.abs(out["a"].velocity - out["b"].velocity).min() > 1e-6


def test_order_of_forces_does_not_change_noise():
    state = {"a": oscillators(), "b": oscillators()}
    one = final_state(
        BAOAB(Spring(component="a") + Spring(component="b"), 0.8, 0.5), state, 0.1, 2, key=KEY
    )
    two = final_state(
        BAOAB(Spring(component="b") + Spring(component="a"), 0.8, 0.5), state, 0.1, 2, key=KEY
    )
    np.testing.assert_array_equal(one["a"].velocity, two["a"].velocity)


def test_frozen_particles_stay_as_they_are():
    frozen = np.array([False, True, False, True])
    state = oscillators(frozen=frozen)
    out = final_state(BATH, state, 0.1, 5, key=KEY)
    np.testing.assert_array_equal(out.position[frozen], state.position[frozen])
    np.testing.assert_array_equal(out.velocity[frozen], state.velocity[frozen])
    assert np.abs(out.position - state.position)[~frozen].min() > 0


def test_without_friction_it_is_velocity_verlet():
    out = final_state(BAOAB(Spring(), 0.8, 0.0), oscillators(), 0.1, 20, key=KEY)
    same = final_state(VelocityVerlet(Spring()), oscillators(), 0.1, 20)
    np.testing.assert_allclose(out.position, same.position, rtol=1e-12)


def test_friction_per_particle():
    state = oscillators()
    each = BAOAB(Spring(), 0.8, np.array([0.0, 0.5, 0.0, 0.5]))
    out = final_state(each, state, 0.1, 5, key=KEY)
    free = final_state(BAOAB(Spring(), 0.8, 0.0), state, 0.1, 5, key=KEY)
    bound = final_state(BATH, state, 0.1, 5, key=KEY)
    np.testing.assert_allclose(out.position[::2], free.position[::2], rtol=1e-12)
    np.testing.assert_allclose(out.position[1::2], bound.position[1::2], rtol=1e-12)


def test_a_missing_key_is_an_error():
    with pytest.raises(ValueError, match="give a key"):
        final_state(BATH, oscillators(), 0.1, 1)


@pytest.mark.parametrize("name", ["temperature", "friction"])
@pytest.mark.parametrize("kind", [BAOAB, Brownian])
def test_negative_temperature_or_friction_is_an_error(kind, name):
    """An error where numbers can be seen; NaN where a trace hides them, as in a sweep."""
    parameters = {"temperature": 0.5, "friction": 0.5}
    with pytest.raises(ParameterError, match=f"{name} must not be negative; got -0.1"):
        kind(Spring(), **parameters | {name: -0.1})

    def position_after(value):
        bath = kind(Spring(), **parameters | {name: value})
        return evolve(bath, oscillators(), jnp.asarray(0.1), 2, key=KEY)[0].position

    assert np.isnan(jax.jit(position_after)(-0.1)).all()
    assert np.isfinite(jax.jit(position_after)(0.1)).all()


@pytest.mark.parametrize("name", ["temperature", "friction"])
def test_derivative_at_zero_is_finite(name):
    def loss(value):
        parameters = {"temperature": 0.5, "friction": 0.5, name: value}
        state = evolve(BAOAB(Spring(), **parameters), oscillators(), jnp.asarray(0.1), 3, key=KEY)
        return jnp.sum(state[0].position ** 2)

    assert np.isfinite(jax.jit(jax.grad(loss))(jnp.asarray(0.0)))
