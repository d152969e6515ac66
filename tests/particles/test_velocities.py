"""Degrees of freedom, kinetic energy, momenta and Maxwell–Boltzmann velocities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ParameterError, ShapeError
from physkit.geometry import Box
from physkit.particles import (
    Particles,
    angular_momentum,
    center_of_mass,
    degrees_of_freedom,
    kinetic_energy,
    maxwell_boltzmann,
    remove_drift,
    temperature,
    total_momentum,
)

FROZEN = jnp.array([False, True, False, False, True])


def random_particles(n=5, d=3, frozen=None, dtype=float, **more):
    random = np.random.default_rng(3)
    return Particles(
        jnp.asarray(random.normal(size=(n, d)), dtype),
        random.normal(size=(n, d)),
        1 + random.random(n),
        frozen=frozen,
        **more,
    )


@pytest.mark.parametrize(
    ("d", "frozen", "conserved", "expected"),
    [
        (3, None, True, 12),
        (3, None, False, 15),
        (2, None, True, 8),
        (1, None, True, 4),
        (3, FROZEN, False, 9),
        (3, FROZEN, True, 9),  # frozen particles take up momentum
        (3, jnp.zeros(5, bool), True, 12),
    ],
)
def test_degrees_of_freedom(d, frozen, conserved, expected):
    p = random_particles(d=d, frozen=frozen)
    assert float(degrees_of_freedom(p, conserved)) == expected
    assert degrees_of_freedom(p, conserved).dtype == p.position.dtype


def test_sums_over_particles():
    p = random_particles(frozen=FROZEN)
    keep = ~np.asarray(FROZEN)
    m, v, x = (np.asarray(a) for a in (p.mass, p.velocity, p.position))
    np.testing.assert_allclose(kinetic_energy(p), 0.5 * np.sum(m[keep, None] * v[keep] ** 2))
    np.testing.assert_allclose(total_momentum(p), (m[:, None] * v)[keep].sum(axis=0))
    expected = np.cross(x, m[:, None] * v)[keep].sum(axis=0)
    np.testing.assert_allclose(angular_momentum(p), expected)
    shifted = np.cross(x - [1, 2, 3], m[:, None] * v)[keep].sum(axis=0)
    np.testing.assert_allclose(angular_momentum(p, [1, 2, 3]), shifted)
    np.testing.assert_allclose(center_of_mass(p), m @ x / m.sum())
    np.testing.assert_allclose(temperature(p), 2 * kinetic_energy(p) / 9)


def test_angular_momentum_in_the_plane():
    p = Particles([[2.0, 0.0]], [[0.0, 3.0]], 0.5)
    np.testing.assert_allclose(angular_momentum(p), 3.0)
    with pytest.raises(ShapeError, match="one dimension"):
        angular_momentum(random_particles(d=1))


def test_center_of_mass_follows_unwrapped_paths():
    p = Particles([[0.9], [0.5]], [[1.0], [0.0]], space=Box([1.0])).drift(jnp.asarray(0.3))
    np.testing.assert_allclose(center_of_mass(p), [0.85])


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("frozen", [False, True])
def test_exact_temperature_and_no_momentum(key, d, frozen, dtype):
    mask = jnp.arange(60) % 3 == 0 if frozen else None
    p = maxwell_boltzmann(key, random_particles(60, d, mask, dtype), 1.44)
    assert p.velocity.dtype == dtype
    eps = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(temperature(p), 1.44, rtol=20 * eps)
    np.testing.assert_allclose(total_momentum(p), 0, atol=200 * eps)
    if frozen:
        assert bool(jnp.all(p.velocity[mask] == 0))


def test_maxwell_boltzmann_moments(key):
    mass = jnp.where(jnp.arange(20000) % 2 == 0, 1.0, 4.0)
    p = Particles(jnp.zeros((20000, 3)), mass=mass)
    v = maxwell_boltzmann(key, p, 2.0, remove_momentum=False, exact=False).velocity
    scaled = np.asarray(v * jnp.sqrt(mass / 2.0)[:, None]).ravel()
    assert abs(scaled.mean()) < 4 / np.sqrt(scaled.size)
    assert abs(scaled.var() - 1) < 4 * np.sqrt(2 / scaled.size)
    assert abs((scaled**4).mean() - 3) < 4 * np.sqrt(96 / scaled.size)
    for half in (scaled[0::6], scaled[3::6]):  # both masses
        assert abs(half.var() - 1) < 4 * np.sqrt(2 / half.size)


def test_velocities_are_drawn_by_id(key):
    """Another order of the same particles gets the same velocities."""
    order = jnp.array([3, 1, 4, 0, 2])
    p = random_particles()
    q = Particles(p.position[order], mass=p.mass[order], id=order)
    v = maxwell_boltzmann(key, p, 1.0).velocity
    np.testing.assert_allclose(maxwell_boltzmann(key, q, 1.0).velocity, v[order], rtol=1e-12)


def test_zero_degrees_of_freedom_give_no_nan(key):
    """One particle without momentum has no motion and no temperature; never NaN."""
    one = random_particles(1)
    with pytest.raises(ParameterError, match="remove_momentum=False"):
        maxwell_boltzmann(key, one, 1.0)
    at_rest = maxwell_boltzmann(key, one, 0.0)
    np.testing.assert_array_equal(at_rest.velocity, 0)
    assert float(temperature(at_rest)) == 0
    moving = maxwell_boltzmann(key, one, 1.0, remove_momentum=False)
    np.testing.assert_allclose(temperature(moving, momentum_conserved=False), 1.0, rtol=1e-12)
    every = maxwell_boltzmann(key, random_particles(frozen=jnp.ones(5, bool)), 1.0)
    np.testing.assert_array_equal(every.velocity, 0)


def test_derivative_by_temperature(key):
    energy = lambda t: kinetic_energy(maxwell_boltzmann(key, random_particles(), t))
    np.testing.assert_allclose(jax.grad(energy)(1.3), 6.0, rtol=1e-12)
    assert (
        float(jax.grad(lambda t: maxwell_boltzmann(key, random_particles(), t).velocity[0, 0])(0.0))
        == 0
    )
    batch = jax.vmap(energy)(jnp.array([0.5, 2.0]))
    np.testing.assert_allclose(batch, [3.0, 12.0], rtol=1e-12)


def test_remove_drift_leaves_frozen_alone():
    p = random_particles(frozen=FROZEN)
    q = remove_drift(p)
    np.testing.assert_allclose(total_momentum(q), 0, atol=1e-14)
    np.testing.assert_array_equal(q.velocity[FROZEN], p.velocity[FROZEN])


@pytest.mark.parametrize("bad", [-1.0, jnp.array([1.0, 2.0]), float("nan")])
def test_bad_temperature(key, bad):
    with pytest.raises(ParameterError, match="temperature"):
        maxwell_boltzmann(key, random_particles(), bad)


def test_replaced_numbers_are_arrays_of_the_particles():
    p = random_particles(2, dtype=np.float32)
    for given in (np.ones((2, 3)), [[1, 1, 1], [1, 1, 1]], jnp.ones((2, 3), int), 1):
        velocity = p.replace(velocity=given).velocity
        assert velocity.dtype == np.float32
        np.testing.assert_array_equal(velocity, 1)
    assert p.replace(position=np.zeros((2, 3))).position.dtype == np.float32
    for bad in (jnp.ones(3), np.ones((3, 3)), [1.0, 2.0, 3.0]):
        with pytest.raises(ShapeError, match="velocity must have shape"):
            p.replace(velocity=bad)


def test_a_single_mobile_particle_keeps_its_momentum():
    particles = pk.Particles(np.eye(3), frozen=[False, True, True])
    with pytest.raises(pk.errors.ParameterError, match="a single mobile particle is at rest"):
        pk.particles.maxwell_boltzmann(0, particles, 1.5)
    assert (
        pk.particles.maxwell_boltzmann(0, particles, 1.5, remove_momentum=False).velocity[0].any()
    )
