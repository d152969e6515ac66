"""Brownian dynamics: averages in a harmonic trap, diffusion, noise that belongs to particles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.geometry import Box
from physkit.integrators import Brownian
from physkit.particles import Particles
from physkit.particles.forces import UniformAcceleration
from physkit.simulate import Simulation, run

from .problems import Spring, evolve, evolve_compiled, final_state

KEY = jax.random.key(7)
BATH = Brownian(Spring(), temperature=0.8, friction=0.5)


def walkers(n=4, **options):
    draw = np.random.default_rng(1)
    return Particles(draw.normal(size=(n, 2)), draw.normal(size=(n, 2)), 1.5, **options)


def mean_square(
    dt, count=20_000, steps=400, temperature=0.7, stiffness=2.0, mass=2.0, friction=1.25
):
    """⟨x²⟩ k/(k_B T) in a trap, whose rate is k/(γ m) = 0.8."""
    start = jnp.sqrt(temperature / stiffness) * jax.random.normal(KEY, (count, 1), jnp.float32)
    bath = Brownian(Spring(stiffness), temperature, friction)
    bath = jax.tree.map(lambda x: x.astype(jnp.float32), bath)
    dt = jnp.float32(dt)

    @jax.jit
    def run(state):
        def block(state, n):
            state, _ = evolve(bath, state, dt, 1, key=jax.random.fold_in(KEY, n))
            return state, jnp.mean(state.position**2)

        state, _ = evolve(bath, state, dt, 10, key=KEY)
        return jnp.mean(jax.lax.scan(block, state, jnp.arange(steps))[1])

    return float(run(Particles(start, mass=jnp.float32(mass)))) * stiffness / temperature


@pytest.mark.parametrize("dt", [0.25, pytest.param(1.0, marks=pytest.mark.slow)])
def test_a_trap_is_sampled_to_second_order(dt):
    """Heun's ⟨x²⟩ in closed form, z = k dt/(γ m); Euler–Maruyama's 1/(1 − z/2) is far off."""
    z = 0.8 * dt
    square = 2 * z * (1 - z / 2) ** 2 / (1 - (1 - z + z * z / 2) ** 2)
    assert mean_square(dt) == pytest.approx(square, abs=4e-3)
    assert abs(square - 1) < z**2 / 3  # of second order


@pytest.mark.slow
def test_free_diffusion():
    """⟨Δx²⟩ = 2 D t with D = k_B T/(γ m)."""
    n, steps, dt = 100_000, 50, 0.1
    bath = Brownian(Spring(0.0), temperature=0.6, friction=np.float64(2.0))
    end = final_state(bath, Particles(jnp.zeros((n, 1)), mass=1.5), dt, steps, key=KEY)
    expected = 2 * 0.6 / (2.0 * 1.5) * dt * steps
    assert float(jnp.mean(end.position**2)) == pytest.approx(expected, rel=0.015)
    np.testing.assert_array_equal(end.velocity, 0)


def test_without_noise_it_descends_the_potential():
    """γ m ẋ = −k x to second order."""
    errors = []
    for steps in (20, 40):
        bath = Brownian(Spring(2.0), temperature=0.0, friction=0.5)
        end = final_state(bath, Particles(jnp.ones((1, 1)), mass=1.5), 1.0 / steps, steps, key=KEY)
        errors.append(abs(float(end.position[0, 0]) - np.exp(-2.0 / (0.5 * 1.5))))
    assert errors[0] / errors[1] == pytest.approx(4, abs=0.5)


def test_noise_does_not_depend_on_chunks():
    dt, state = jnp.asarray(0.1), walkers()
    whole, _ = evolve_compiled(BATH, state, dt, 6, key=KEY)
    half, aux = evolve_compiled(BATH, state, dt, 4, key=KEY)
    rest, _ = evolve_compiled(BATH, half, dt, 2, key=KEY, first=4, aux=aux)
    np.testing.assert_array_equal(whole.position, rest.position)


def test_noise_depends_on_particle_id_and_component():
    state, order = walkers(), np.array([2, 0, 3, 1])
    shuffled = Particles(state.position[order], state.velocity[order], 1.5, id=order)
    out, shuffled_out = (final_state(BATH, s, 0.1, 5, key=KEY) for s in (state, shuffled))
    np.testing.assert_allclose(shuffled_out.position, out.position[order], rtol=1e-12)
    both = final_state(
        Brownian(Spring(component="a") + Spring(component="b"), 0.8, 0.5),
        {"a": state, "b": state},
        0.1,
        1,
        key=KEY,
    )
    assert np.abs(both["a"].position - both["b"].position).min() > 1e-6


def test_frozen_particles_stay_and_friction_may_differ():
    frozen = np.array([False, True, False, True])
    state = walkers(frozen=frozen)
    out = final_state(BATH, state, 0.1, 5, key=KEY)
    np.testing.assert_array_equal(out.position[frozen], state.position[frozen])
    assert np.abs(out.position - state.position)[~frozen].min() > 0
    each = Brownian(Spring(), 0.8, np.array([0.5, 5.0, 0.5, 5.0]))
    np.testing.assert_allclose(
        final_state(each, state, 0.1, 5, key=KEY).position[::2], out.position[::2]
    )


@pytest.mark.slow
def test_friction_per_particle_over_devices(monkeypatch):
    """Friction is `[n]` of the whole domain on every device: each takes the rows of its own particles."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")  # two devices, emulated on one
    lattice = 1.6 * np.stack(np.meshgrid(np.arange(6.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    atoms = Particles(lattice + 0.1, mass=1.5, space=Box([9.6, 6.4]))
    integrator = Brownian(UniformAcceleration([3.0, 1.0]), 0.8, np.linspace(0.5, 5.0, 24))
    sim = Simulation(integrator, dt=1e-3)
    one, two = (
        run(sim, atoms, 20, key=KEY, devices=devices, progress=False).state
        for devices in (None, (2,))
    )
    np.testing.assert_allclose(two.position, one.position, atol=1e-9)


def test_a_missing_key_is_an_error():
    with pytest.raises(ValueError, match="give a key"):
        final_state(BATH, walkers(), 0.1, 1)
