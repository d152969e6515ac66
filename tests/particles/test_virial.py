"""The virial of a force that gives only its energy: by strain, or an error, never a silent 0."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import physkit as pk
from physkit.core import Clock, StepCount
from physkit.particles.forces import AbstractExternalForce

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.0)


def pair_energy(t, particles, height):
    """Σ over pairs of A exp(−r²) in the nearest image."""
    x = particles.position
    i, j = np.triu_indices(len(x), 1)
    r = particles.space.displacement(x[i], x[j])
    return height * jnp.sum(jnp.exp(-jnp.sum(r**2, axis=-1)))


class OwnForce(pk.AbstractForce):
    """A force between particles that writes only an energy."""

    height: Float[Array, ""] = pk.param(1.5)
    component: str | None = pk.static(default=None)
    conserves_momentum: ClassVar[bool] = True

    def energy(self, clock, state, cache=None):
        return pair_energy(clock.t, self.particles(state), self.height)


class Wrapped(pk.AbstractForce):
    """A force that holds another one and carries its list."""

    inner: pk.Pairwise
    component: str | None = pk.static(default=None)
    conserves_momentum: ClassVar[bool] = True

    def init(self, state):
        return self.inner.init(state)

    def __call__(self, clock, state, cache):
        return self.inner(clock, state, cache)

    def energy(self, clock, state, cache=None):
        return self.inner.energy(clock, state, cache)


class ReadsLengths(pk.AbstractForce):
    """Nearest images by hand, from the lengths of a box."""

    component: str | None = pk.static(default=None)
    conserves_momentum: ClassVar[bool] = True

    def energy(self, clock, state, cache=None):
        p = self.particles(state)
        d = p.position[:, None] - p.position[None]
        d = d - p.space.lengths * jnp.round(d / p.space.lengths)
        return jnp.sum(jnp.exp(-jnp.sum(d**2, axis=-1)))


class OnlyForce(pk.AbstractForce):
    component: str | None = pk.static(default=None)
    conserves_momentum: ClassVar[bool] = True

    def force(self, clock, state):
        return jnp.zeros_like(self.particles(state).position)


class Anchor(pk.AbstractForce):
    """An energy of places, which says nothing about a virial."""

    component: str | None = pk.static(default=None)
    conserves_momentum: ClassVar[bool] = False

    def energy(self, clock, state, cache=None):
        return jnp.sum(self.particles(state).position ** 2)


class Well(AbstractExternalForce):
    component: str | None = pk.static(default=None)

    def energy(self, clock, state, cache=None):
        return jnp.sum(self.particles(state).position ** 2)


def atoms(space, n=9, d=3):
    x = np.random.default_rng(0).uniform(0, 4, (n, d))
    return pk.Particles(x, space=space)


SPACES = {
    "free": pk.Free(),
    "box": pk.Box([4.0, 5.0, 6.0]),
    "slab": pk.Box([4.0, 5.0, 6.0], periodic=(True, False, True)),
    "tilted": pk.Triclinic([[4.0, 0.0, 0.0], [1.1, 5.0, 0.0], [-0.7, 0.4, 6.0]]),
}


def pair_virial(particles, height):
    """Σ r ⊗ f, written out."""
    x = particles.position
    i, j = np.triu_indices(len(x), 1)
    r = np.asarray(particles.space.displacement(x[i], x[j]))
    f = 2 * float(height) * np.exp(-np.sum(r**2, axis=-1))[:, None] * r
    return r.T @ f


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_an_energy_is_enough(space):
    particles = atoms(space)
    found = OwnForce().virial(CLOCK, particles)
    np.testing.assert_allclose(found, pair_virial(particles, 1.5), rtol=1e-10, atol=1e-12)


def test_a_list_of_its_own_is_used():
    particles = atoms(pk.Box([5.0, 5.0]), n=6, d=2)
    inner = pk.Pairwise(pk.potentials.SoftSphere(), 2.0)
    cache = inner.init(particles)
    force = Wrapped(inner)
    virials = jax.jit(lambda p, c: (force.virial(CLOCK, p, c), inner.virial(CLOCK, p, c)))
    found, expected = virials(particles, cache)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_the_pressure_of_an_own_force_is_minus_the_slope_by_volume():
    particles = atoms(SPACES["box"])
    simulation = pk.Simulation(
        pk.VelocityVerlet(OwnForce()), dt=0.01, observers=pk.Every(1, pressure=pk.Pressure())
    )
    found = pk.simulate(simulation, particles, 1).frames["pressure"][0]

    def energy_at(scale):
        box = pk.Box(scale * particles.space.lengths)
        scaled = particles.replace(position=scale * particles.position, space=box)
        return pair_energy(0.0, scaled, 1.5)

    # dE/dV = dE/ds / (3 V) at s = 1.
    expected = -jax.jit(jax.grad(energy_at))(1.0) / (3 * particles.space.volume)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


class TestRefusals:
    def refuses(self, force, match, space="box"):
        with pytest.raises(pk.errors.NoVirialError, match=match):
            force.virial(CLOCK, atoms(SPACES[space]))

    def test_neither_energy_nor_virial(self):
        self.refuses(OnlyForce(), "OnlyForce has neither an energy nor a virial")

    def test_an_energy_of_places_is_not_strained(self):
        self.refuses(Anchor(), "AbstractExternalForce")

    def test_lengths_read_by_hand(self):
        self.refuses(ReadsLengths(), r"space\.lengths.*displacement")

    def test_pressure_names_the_force(self):
        simulation = pk.Simulation(
            pk.VelocityVerlet(OnlyForce()), dt=0.01, observers=pk.Every(1, pressure=pk.Pressure())
        )
        with pytest.raises(pk.errors.NoVirialError, match="OnlyForce"):
            pk.simulate(simulation, atoms(SPACES["box"]), 1)

    def test_a_function_that_does_not_say_where_it_acts_from(self):
        self.refuses(pk.ExternalEnergy(pair_energy, jnp.asarray(1.5)), "outside=False")
        self.refuses(pk.ExternalForce(lambda t, p: p.velocity), "outside=True")
        inside = pk.ExternalForce(lambda t, p: p.velocity, outside=False)
        self.refuses(inside, "neither an energy nor a virial")


def test_functions_say_where_they_act_from():
    particles = atoms(SPACES["tilted"])
    between = pk.ExternalEnergy(pair_energy, jnp.asarray(1.5), outside=False)
    expected = pair_virial(particles, 1.5)
    np.testing.assert_allclose(between.virial(CLOCK, particles), expected, rtol=1e-10, atol=1e-12)
    for outside in (
        pk.ExternalEnergy(pair_energy, jnp.asarray(1.5), outside=True),
        pk.ExternalForce(lambda t, p: p.velocity, outside=True),
        Well(),
        pk.HarmonicTrap(2.0),
        pk.UniformAcceleration([0.0, 0.0, -9.8]),
    ):
        np.testing.assert_array_equal(outside.virial(CLOCK, particles), np.zeros((3, 3)))
