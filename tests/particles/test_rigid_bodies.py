"""Rigid bodies: how they are built, what forces do to them, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    Clock,
    ComponentError,
    DeclarationError,
    ParameterError,
    ShapeError,
    StepCount,
)
from physkit.geometry import Box, Free
from physkit.particles import (
    Particles,
    RigidBodies,
    RigidBodyIncrement,
    angular_momentum,
    center_of_mass,
    degrees_of_freedom,
    kinetic_energy,
    maxwell_boltzmann,
    random_orientations,
    temperature,
    total_momentum,
)
from physkit.particles.forces import (
    Coulomb,
    ExternalWrench,
    HarmonicTrap,
    Pairwise,
    SiteForce,
    UniformAcceleration,
    wrench,
)

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
MOLECULE = np.array([[0.0, 0, 0], [0.7569503, 0.5858823, 0], [-0.7569503, 0.5858823, 0]])
MASS = np.array([15.999, 1.008, 1.008])


def lumps(n=4, sites=5, seed=0, space=None):
    """Bodies of no symmetry, whose sites move at random."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, sites, 3)) + 4 * np.arange(n)[:, None, None]
    return x, rng.uniform(1, 2, (n, sites)), rng.normal(size=x.shape)


def water(n=2, space=None):
    grid = 3.1 * np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3)
    return RigidBodies.from_molecule(
        MOLECULE, grid, MASS, Box([3.1 * n] * 3) if space is None else space,
        orientation=random_orientations(0, n**3), site_charge=[-0.8, 0.4, 0.4],
        site_species=["O", "H", "H"],
    )  # fmt: skip


class TestBuilding:
    @pytest.mark.slow
    def test_from_sites_keeps_places_and_motion(self):
        x, mass, v = lumps()
        bodies = RigidBodies.from_sites(x, mass, velocity=v)
        sites, points = (
            bodies.site_particles(),
            Particles(x.reshape(-1, 3), v.reshape(-1, 3), mass.ravel()),
        )
        np.testing.assert_allclose(sites.position, points.position, atol=1e-12)
        np.testing.assert_allclose(bodies.mass, mass.sum(1))
        for of_all in (center_of_mass, total_momentum, angular_momentum):
            np.testing.assert_allclose(of_all(bodies), of_all(points), rtol=1e-12)
        # Sites of a rigid body move as one: their energy is that of the body, and their momenta its own.
        np.testing.assert_allclose(kinetic_energy(sites), kinetic_energy(bodies), rtol=1e-12)
        again = RigidBodies.from_particles(sites, np.arange(20).reshape(4, 5))
        np.testing.assert_allclose(again.angular_momentum, bodies.angular_momentum, atol=1e-11)
        expected = np.linalg.eigvalsh(_tensors(x, mass))
        np.testing.assert_allclose(bodies.inertia, expected, rtol=1e-12)

    def test_bodies_of_one_shape_have_the_same_axes(self):
        bodies = water()
        sites = bodies.site_particles()
        again = RigidBodies.from_particles(sites, np.arange(24).reshape(8, 3))
        np.testing.assert_allclose(again.site_offset, bodies.site_offset, atol=1e-13)
        # Those of the first cross the border of the box: they are put together by the nearest image.
        apart = bodies.space.displacement(again.position, bodies.position)
        np.testing.assert_allclose(apart, np.zeros((8, 3)), atol=1e-13)
        assert sites.species_names == ("O", "H")
        np.testing.assert_array_equal(bodies.site_pairs[:4], [[0, 1], [0, 2], [1, 2], [3, 4]])

    def test_lines(self):
        x = np.array([[[0.0, 0, 0], [0, 1, 0]], [[3.0, 0, 0], [3, 0, 1]]])
        rods = RigidBodies.from_sites(x, [1.0, 2.0], velocity=np.ones_like(x))
        assert rods.linear
        np.testing.assert_allclose(rods.inertia, [[0, 2 / 3, 2 / 3]] * 2)
        np.testing.assert_allclose(rods.site_particles().position, x.reshape(-1, 3), atol=1e-15)
        assert (degrees_of_freedom(rods, False), degrees_of_freedom(rods)) == (10, 7)

    def test_derivatives_of_the_geometry(self):
        """Principal axes and moments by the places of sites, against differences."""
        x, mass, v = lumps(2)
        weights = np.random.default_rng(1).normal(size=(2, 5, 3))

        @jax.jit
        def probe(x, mass):
            bodies = RigidBodies.from_sites(x, mass, velocity=v, linear=False)
            turned = bodies.drift(jnp.asarray(0.1)).site_particles().position
            return jnp.sum(weights.reshape(-1, 3) * turned) + jnp.sum(bodies.inertia**1.5)

        gradient = jax.jit(jax.grad(probe, argnums=(0, 1)))(x, mass)
        for k, slope in enumerate(gradient):
            direction = np.random.default_rng(k).normal(size=slope.shape)

            def at(h, k=k, direction=direction):
                return probe(x + h * direction, mass) if k == 0 else probe(x, mass + h * direction)

            difference = (at(1e-5) - at(-1e-5)) / 2e-5
            np.testing.assert_allclose(np.sum(slope * direction), difference, rtol=1e-6)


def _tensors(x, mass):
    c = (mass[..., None] * x).sum(1) / mass.sum(1)[:, None]
    r = x - c[:, None]
    square = (mass * (r**2).sum(-1)).sum(1)
    return square[:, None, None] * np.eye(3) - np.einsum("nm,nmi,nmj->nij", mass, r, r)


class TestForces:
    @pytest.mark.slow
    def test_bodies_and_particles_feel_one_force(self):
        """Bodies and ions under one pair force: the same as by particles, added up by hand."""
        bodies = water()
        ions = Particles(
            [[1.5, 1.5, 1.4], [4.6, 4.5, 4.6]], charge=[1.0, -1.0], species=2, space=Box([6.2] * 3)
        )
        pairs = Pairwise(Coulomb(2.0), 3.0, exclude=bodies.site_pairs)
        force = SiteForce(pairs, component=["water", "ions"])
        state = {"water": bodies, "ions": ions}
        got = force.force(CLOCK, state)
        sites = force.seen_state(state)
        on_sites = np.asarray(pairs.force(CLOCK, sites))
        arms = bodies.space.displacement(sites.position[:24], jnp.repeat(bodies.position, 3, 0))
        torque = np.cross(arms, on_sites[:24]).reshape(8, 3, 3).sum(1)
        np.testing.assert_allclose(
            got["water"][:, :3], on_sites[:24].reshape(8, 3, 3).sum(1), atol=1e-13
        )
        np.testing.assert_allclose(got["water"][:, 3:], torque, atol=1e-13)
        np.testing.assert_allclose(got["ions"], on_sites[24:], atol=1e-13)
        np.testing.assert_allclose(
            got["water"][:, :3].sum(0) + got["ions"].sum(0), np.zeros(3), atol=1e-12
        )
        assert len(np.unique(sites.id)) == 26

    def test_wrenches(self):
        bodies = lumps()
        bodies = RigidBodies.from_sites(*bodies[:2])
        gravity = SiteForce(UniformAcceleration([0.0, 0, -2])).force(CLOCK, bodies)
        # Gravity pulls at the center of mass.
        np.testing.assert_allclose(gravity[:, 2], -2 * bodies.mass)
        np.testing.assert_allclose(gravity[:, 3:], np.zeros((4, 3)), atol=1e-12)
        own = ExternalWrench(lambda t, b: (b.position, 2 * b.position))
        np.testing.assert_array_equal(own.force(CLOCK, bodies)[:, 3:], 2 * bodies.position)
        pushed = wrench(bodies, jnp.ones((4, 5, 3)))
        np.testing.assert_allclose(pushed[:, :3], np.full((4, 3), 5.0))

    def test_a_trap_outside_has_no_virial(self):
        force = SiteForce(HarmonicTrap(1.0))
        assert not np.any(force.virial(CLOCK, water()))


class TestTemperatures:
    def test_random_velocities(self):
        bodies = maxwell_boltzmann(0, water(), 0.7)
        assert degrees_of_freedom(bodies) == 6 * 8 - 3
        np.testing.assert_allclose(temperature(bodies), 0.7, rtol=1e-13)
        np.testing.assert_allclose(total_momentum(bodies), np.zeros(3), atol=1e-12)
        many = RigidBodies(np.zeros((4000, 3)), [1.0, 2, 3])
        u = maxwell_boltzmann(0, many, 0.7, exact=False).generalized_velocity
        energies = np.mean(np.asarray(many.generalized_mass * u**2), axis=0)
        np.testing.assert_allclose(energies, np.full(6, 0.7), rtol=0.08)

    def test_frozen_bodies_stay(self):
        bodies = RigidBodies.from_molecule(MOLECULE, np.eye(3), MASS, frozen=[True, False, False])
        moved = maxwell_boltzmann(0, bodies, 1.0).drift(jnp.asarray(0.3))
        np.testing.assert_array_equal(moved.orientation[0], bodies.orientation[0])
        np.testing.assert_array_equal(moved.position[0], bodies.position[0])
        assert np.all(np.abs(moved.orientation[1:] - bodies.orientation[1:]).max(1) > 0)
        assert degrees_of_freedom(bodies) == 12

    def test_bodies_of_frozen_particles_are_frozen(self):
        x = np.concatenate([MOLECULE, MOLECULE + 3])
        particles = Particles(x, frozen=[True] * 3 + [False] * 3)
        bodies = RigidBodies.from_particles(particles, [[0, 1, 2], [3, 4, 5]])
        assert bodies.frozen.tolist() == [True, False]


BROWNIAN = pk.Brownian(SiteForce(HarmonicTrap(1.0)), 1.0, 1.0)
BAROSTAT = pk.MonteCarloBarostat(
    pk.BAOAB(SiteForce(Pairwise(Coulomb(), 2.9)), 1.0, 1.0), pressure=1.0, max_change=0.02
)
ORIGIN = np.zeros((1, 3))
BAD = [
    (lambda: RigidBodies(ORIGIN, [1, 2, 3], orientation=[1, 1, 0, 0]), ParameterError, "length 1.41421"),
    (lambda: RigidBodies(ORIGIN, [1, 2, 3], orientation=[np.nan] * 4), ParameterError, "unit quaternions"),
    (lambda: RigidBodies(ORIGIN, [1, 2, 3], mass=0.0), ParameterError, "masses must be positive"),
    (lambda: RigidBodies(ORIGIN, [1, -2, 3]), ParameterError, "must be positive"),
    (lambda: RigidBodies(ORIGIN, [0, 0, 0]), ParameterError, "use Particles"),
    (lambda: RigidBodies(ORIGIN, [1, 2, 3.5]), ParameterError, "below the third"),
    (lambda: RigidBodies(np.zeros((2, 3)), [[0, 1, 1], [1, 1, 1]]), ParameterError, "linear"),
    (lambda: RigidBodies(np.zeros((2, 2)), [1, 2, 3]), ShapeError, "z = 0"),
    (lambda: RigidBodies(ORIGIN, [1, 2]), ShapeError, "inertia"),
    (lambda: RigidBodies(ORIGIN, [1, 2, 3], sites=np.zeros((2, 2))), ShapeError, "sites"),
    (
        lambda: RigidBodies(ORIGIN, [1, 2, 3], angular_velocity=ORIGIN, angular_momentum=ORIGIN),
        ParameterError, "not both",
    ),
    (
        lambda: RigidBodies.from_sites([[[0.0, 0, 0], [2.99, 0, 0]]], 1.0, Box([6.0] * 3)),
        ParameterError, "half is 3",
    ),
    (lambda: RigidBodies.from_sites(np.zeros((1, 3, 3)), 1.0), ParameterError, "one point"),
    (lambda: RigidBodies.from_sites(np.zeros((3, 3)), 1.0), ShapeError, "body by body"),
    (lambda: RigidBodies.from_sites(lumps()[0], -1.0), ParameterError, "negative"),
    (lambda: RigidBodies.from_particles(Particles(np.eye(3)), [[0, 7]]), ParameterError, "0 … 7"),
    (
        lambda: RigidBodies.from_particles(Particles(np.eye(3), frozen=[True, False, True]), [[0, 1, 2]]),
        ParameterError, "body 0 has frozen particles",
    ),
    (lambda: RigidBodies.from_molecule(MOLECULE, [0, 0, 0], MASS), ShapeError, "centers are"),
    (lambda: SiteForce(Pairwise(Coulomb(), component="a")), DeclarationError, "names no component"),
    (lambda: SiteForce(Coulomb()), DeclarationError, "Coulomb"),
    (lambda: Pairwise(Coulomb()).force(CLOCK, water()), ComponentError, "SiteForce"),
    (lambda: ExternalWrench(lambda t, b: b.position).force(CLOCK, water()), DeclarationError, "pair"),
    (lambda: ExternalWrench(lambda t, b: b).force(CLOCK, Particles(ORIGIN)), ComponentError, "rigid"),
    (lambda: BROWNIAN.prepare(water(), 0.1), ComponentError, "moves point"),
    (lambda: BAROSTAT.init(None, CLOCK, water()), DeclarationError, "no barostat yet"),
    (lambda: pk.Boris([0, 0, 1.0]).init(None, CLOCK, water()), ComponentError, "moves point"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "text"), BAD)
def test_bad_bodies(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


@pytest.mark.parametrize("inertia", [[1e-40, 1e-37, 1e-37], [1e-46, 2e-46, 2e-46]])
def test_moments_beyond_the_precision(inertia):
    """A moment that became 0 would be that of a line."""
    with pytest.raises(ParameterError, match="becomes 0 in float32"):
        RigidBodies(ORIGIN.astype(np.float32), inertia)


def test_sites_of_atoms_in_si_units():
    sites = 1e-10 * np.eye(3, dtype=np.float32)[None]
    with pytest.raises(ParameterError, match=r"a moment of inertia of .* becomes 0 in float32"):
        RigidBodies.from_sites(sites, 1e-26)
    assert RigidBodies.from_sites(sites.astype(np.float64), 1e-26).inertia.min() > 0


def test_replaced_arrays_are_converted_as_at_the_start():
    bodies = water()
    moved = bodies.replace(velocity=np.ones(bodies.velocity.shape, int).tolist())
    assert moved.velocity.dtype == bodies.velocity.dtype
    with pytest.raises(ShapeError, match="velocity"):
        bodies.replace(velocity=np.ones(3))


def test_a_force_of_another_shape_is_an_error():
    class Wrong(pk.AbstractForce):
        component: None = None
        conserves_momentum = False

        def force(self, clock, state):
            return jnp.zeros((8, 3))

    simulation = pk.Simulation(pk.VelocityVerlet(Wrong()), 0.1)
    with pytest.raises(ShapeError, match=r"\[8, 6\]: force and torque"):
        pk.simulate(simulation, water(), 1)


def test_increments_are_added():
    bodies = water(1, Free())
    turned = bodies.shift(RigidBodyIncrement(orientation=jnp.ones((1, 4))))
    np.testing.assert_allclose(turned.orientation, bodies.orientation + 1)


def test_sites_share_the_mass_of_their_body():
    sites = [[0.3, 0, 0], [-0.3, 0, 0.1]]
    bodies = RigidBodies(np.zeros((3, 3)), [1.0, 2, 2.5], [2.0, 4.0, 6.0], sites=sites)
    np.testing.assert_allclose(bodies.site_mass, [[1, 1], [2, 2], [3, 3]])
    with pytest.raises(ParameterError, match="sites of body 0 have the mass 17, the body has 1:"):
        RigidBodies(np.zeros((1, 3)), [1.0, 2, 2.5], sites=sites, site_mass=[16.0, 1.0])


@pytest.mark.parametrize("bodies", [[[0, 1], [1, 2]], [[0, 1, 1]]])
def test_a_particle_is_in_one_body(bodies):
    corners = pk.Particles(jnp.array([[0.0, 0, 0], [1, 0, 0], [0, 1.0, 0], [2, 1.0, 0]]))
    with pytest.raises(ParameterError, match="particle 1 more than once"):
        RigidBodies.from_particles(corners, bodies)


def test_second_derivatives_of_principal_axes():
    sites = jnp.array([[0.0, 0, 0], [0.9, 0.1, 0], [-0.2, 0.8, 0.3], [0.1, 0.3, 0.7]])

    def numbers(mass):
        made = RigidBodies.from_sites(sites[None], [mass, 1.0, 1.0, 2.0], linear=False)
        return jnp.concatenate([made.inertia[0], made.site_offset[0].ravel(), made.orientation[0]])

    slope = jax.jit(jax.jacfwd(numbers))
    expected = (slope(3.0 + 1e-4) - slope(3.0 - 1e-4)) / 2e-4
    np.testing.assert_allclose(jax.jacfwd(jax.jacrev(numbers))(3.0), expected, atol=1e-8)
