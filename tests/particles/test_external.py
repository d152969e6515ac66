"""Forces from outside: values, energies, time, bad input."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    Clock,
    DeclarationError,
    Network,
    NoEnergyError,
    ParameterError,
    ShapeError,
    StepCount,
    cast_floats,
    static,
)
from physkit.geometry import Box
from physkit.particles import Particles
from physkit.particles.forces import (
    AbstractForce,
    ExternalEnergy,
    ExternalForce,
    Forces,
    HarmonicTrap,
    Modulated,
    UniformAcceleration,
    UniformField,
)


def random_particles(d=3, space=None, dtype=float):
    random = np.random.default_rng(d)
    return Particles(
        jnp.asarray(random.normal(size=(5, d)), dtype),
        random.normal(size=(5, d)),
        1 + random.random(5),
        space,
        charge=random.normal(size=5),
    )


def clock_at(step, dt=0.1, dtype=float):
    return Clock.at(StepCount.of(step), jnp.asarray(0, dtype), jnp.asarray(dt, dtype))


def wave(t, particles, depth):
    return depth * jnp.sum(jnp.cos(particles.position) * jnp.sin(t))


FORCES = {
    "acceleration": UniformAcceleration([0.3, -1.0, 2.0]),
    "field": UniformField([0.3, -1.0, 2.0]),
    "trap": HarmonicTrap(2.0, [0.1, 0.2, 0.3]),
    "trap by axis": HarmonicTrap([1.0, 2.0, 3.0]),
    "trap by particle": HarmonicTrap(2.0, random_particles().position + 0.1),
    "energy": ExternalEnergy(wave, jnp.asarray(1.5), outside=True),
    "modulated": Modulated(HarmonicTrap(2.0), 3.0, 0.4),
}


@pytest.mark.parametrize("force", FORCES.values(), ids=FORCES.keys())
@pytest.mark.parametrize("space", [None, Box([9.0, 9.0, 9.0])])
def test_force_is_the_gradient_of_energy(force, space):
    p = random_particles(space=space)
    slope = jax.jit(jax.grad(lambda x: force.energy(clock_at(7), p.replace(position=x))))(
        p.position
    )
    found, cache = force(clock_at(7), p, force.init(p))
    np.testing.assert_allclose(found, -slope, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(found, force.force(clock_at(7), p))
    assert cache is None
    assert not Forces.of(force).conserves_momentum
    np.testing.assert_array_equal(force.virial(clock_at(7), p), np.zeros((3, 3)))


@pytest.mark.parametrize("force", FORCES.values(), ids=FORCES.keys())
def test_single_precision(force):
    single = cast_floats(force, jnp.float32).force(
        clock_at(7, dtype=jnp.float32), random_particles(dtype=jnp.float32)
    )
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(
        single, force.force(clock_at(7), random_particles()), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("d", [1, 2, 3])
def test_values(d):
    p, v = random_particles(d), np.arange(1.0, d + 1)
    x, m, q = (np.asarray(a) for a in (p.position, p.mass, p.charge))
    np.testing.assert_allclose(UniformAcceleration(v).force(clock_at(0), p), m[:, None] * v)
    np.testing.assert_allclose(UniformAcceleration(v).energy(clock_at(0), p), -np.sum(m * (x @ v)))
    np.testing.assert_allclose(UniformField(v).force(clock_at(0), p), q[:, None] * v)
    np.testing.assert_allclose(HarmonicTrap(v, v).force(clock_at(0), p), -v * (x - v))
    np.testing.assert_allclose(HarmonicTrap(2.0).energy(clock_at(0), p), np.sum(x**2))


def test_trap_attracts_the_nearest_image():
    p = Particles([[0.5, 9.5]], space=Box([10.0, 10.0]))
    np.testing.assert_allclose(HarmonicTrap(1.0, [9.5, 0.5]).force(clock_at(0), p), [[-1.0, 1.0]])


def test_energy_follows_unwrapped_positions():
    p = Particles([[0.9]], [[1.0]], space=Box([1.0])).drift(jnp.asarray(0.3))
    np.testing.assert_allclose(UniformAcceleration([2.0]).energy(clock_at(0), p), -2.4)


@pytest.mark.parametrize("step", [0, 3, 10**9])
def test_modulation_is_accurate_at_large_times(step, dtype):
    """cos(ωt + φ) to working precision, also where t itself is large."""
    p = random_particles(dtype=dtype)
    force = cast_floats(Modulated(UniformAcceleration([1.0, 0, 0]), 2.0, 0.3), dtype)
    dt = float(np.asarray(0.01, dtype))
    circle = 8 * np.arctan(np.longdouble(1))
    exact = np.cos(float(np.remainder(np.longdouble(step) * dt * 2, circle)) + 0.3)
    pushed = eqx.filter_jit(lambda f, clock: f.force(clock, p))(force, clock_at(step, 0.01, dtype))
    found = pushed[:, 0] / p.mass
    np.testing.assert_allclose(
        found, np.full(5, exact), atol=1e-6 if dtype == jnp.float32 else 1e-11
    )


def test_function_of_time_and_arguments():
    p = random_particles()
    force = ExternalForce(lambda t, p, drag: -drag * p.velocity * t, jnp.asarray(0.5))
    np.testing.assert_allclose(force.force(clock_at(20), p), -p.velocity, rtol=1e-12)
    slope = jax.grad(lambda f: jnp.sum(f.force(clock_at(20), p)), allow_int=True)(force)
    np.testing.assert_allclose(slope.args, -2 * jnp.sum(p.velocity), rtol=1e-12)
    plain = ExternalForce(lambda t, p: t + p.position)
    np.testing.assert_allclose(plain.force(clock_at(20), p), 2 + p.position, rtol=1e-12)
    with pytest.raises(NoEnergyError):
        plain.energy(clock_at(0), p)


PARAMETERS = {
    "acceleration": lambda w: UniformAcceleration(w * jnp.array([0.3, -1.0, 2.0])),
    "field": lambda w: UniformField(w * jnp.array([0.3, -1.0, 2.0])),
    "stiffness": lambda w: HarmonicTrap(w, [0.1, 0.2, 0.3]),
    "center": lambda w: HarmonicTrap(2.0, w * jnp.array([0.1, 0.2, 0.3])),
    "args": lambda w: ExternalEnergy(wave, w),
    "frequency": lambda w: Modulated(HarmonicTrap(2.0), w, 0.4),
    "phase": lambda w: Modulated(HarmonicTrap(2.0), 3.0, w),
}


@pytest.mark.parametrize("make", PARAMETERS.values(), ids=PARAMETERS.keys())
def test_derivative_by_parameters(make):
    @jax.jit
    def response(w):
        weight = jnp.cos(jnp.arange(15.0)).reshape(5, 3)
        return jnp.sum(weight * make(w).force(clock_at(7), random_particles())) + make(w).energy(
            clock_at(7), random_particles()
        )

    found = jax.grad(response)(jnp.asarray(0.7))
    expected = (response(jnp.asarray(0.7 + 1e-6)) - response(jnp.asarray(0.7 - 1e-6))) / 2e-6
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    assert abs(float(found)) > 1e-3


def test_named_component():
    state = {"ions": random_particles(), "gas": random_particles(2)}
    force = Modulated(UniformField([1.0, 0, 0], component="ions"), 0.0)
    assert force.component == "ions"
    assert force.force(clock_at(0), state).shape == (5, 3)


@pytest.mark.parametrize(
    ("force", "error", "words"),
    [
        (UniformAcceleration([1.0, 2.0]), ShapeError, "3 components"),
        (UniformField([1.0]), ShapeError, "field"),
        (HarmonicTrap([1.0, 2.0]), ShapeError, "stiffness"),
        (HarmonicTrap(1.0, jnp.zeros((4, 3))), ShapeError, "center"),
        (ExternalForce(lambda t, p: p.mass), ShapeError, "one force per particle"),
    ],
)
def test_bad_shapes(force, error, words):
    with pytest.raises(error, match=words):
        force.force(clock_at(0), random_particles())


def test_field_needs_charges():
    with pytest.raises(ParameterError, match="charge"):
        UniformField([1.0]).force(clock_at(0), Particles([[0.0]]))


class Bowl(eqx.Module):
    """An energy as a module of Equinox's own."""

    steepness: jax.Array

    def __call__(self, t, particles):
        return self.steepness * jnp.sum(particles.position**2)


def test_modules_with_arrays_are_given_as_args():
    """As the function itself their arrays were constants, of which `grad` and `fit` knew nothing."""
    bowl, particles = Bowl(jnp.asarray(2.0)), random_particles()
    clock = Clock.at(StepCount.of(0), 0.0, 0.1)
    for kind in (ExternalEnergy, ExternalForce):
        with pytest.raises(DeclarationError, match="give them as args"):
            kind(bowl)
    term = ExternalEnergy(lambda t, p, module: module(t, p), args=Network(bowl))
    slope = jax.jit(jax.grad(lambda term: term.energy(clock, particles)))(term)
    expected = float(jnp.sum(particles.position**2))
    np.testing.assert_allclose(jax.tree.leaves(slope), [expected], rtol=1e-6)


class EnergyOfEach(AbstractForce):
    conserves_momentum: ClassVar[bool] = False
    component: str | None = static(default=None)

    def energy(self, clock, state, cache=None):
        return jnp.exp(-state.position[:, 2])


def test_an_energy_of_each_particle_is_refused():
    with pytest.raises(ShapeError, match=r"EnergyOfEach is one number; it has shape \[5\]"):
        EnergyOfEach().force(clock_at(0), random_particles())
