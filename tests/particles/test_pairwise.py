"""Pairwise forces: energy, virial and derivatives agree; lists, exactness and faults do as promised."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.geometry import Box, Free, Triclinic
from physkit.particles import Particles
from physkit.particles.forces import Coulomb, LennardJones, Pairwise, Yukawa

from .pair_cases import CHARGES, TABLE, liquid, make_clock, trajectory

pytestmark = pytest.mark.usefixtures("small_systems_keep_lists")

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_energy_is_the_sum_over_pairs[Lennard-Jones]",
    "test_energy_is_the_sum_over_pairs[every pair]",
    "test_force_is_minus_its_gradient[unlisted]",
    "test_virial_is_the_derivative_by_strain[free]",
    "test_excluded_pairs_do_not_interact",
    "test_second_derivatives_through_a_run",
)


def _energy_of_all_pairs(force, particles):
    """Σ over pairs, written out."""
    x, n = particles.position, particles.num_particles
    i, j = np.triu_indices(n, 1)
    r2 = jnp.sum(particles.space.displacement(x[i], x[j]) ** 2, axis=-1)
    law = force.truncated_potential(x.dtype)
    if particles.species is not None:
        law = law.between(particles.species[i], particles.species[j])
    u = law.energy(r2)
    if force.potential.charged:
        u = u * particles.charge[i] * particles.charge[j]
    return jnp.sum(jnp.where(r2 < (force.cutoff or np.inf) ** 2, u, 0))


SPECIES = np.arange(125) % 2


CASES = {
    "Lennard-Jones": (Pairwise(LennardJones(), 2.2), {}),
    "plain": (Pairwise(LennardJones(), 2.2, truncation="plain"), {}),
    "switch": (Pairwise(LennardJones(), 2.2, truncation="switch"), {}),
    "exact": (Pairwise(LennardJones(), 2.2, exact=True), {}),
    "species": (Pairwise(TABLE, 2.2), {"species": SPECIES}),
    "charges": (Pairwise(Coulomb(), 2.5, truncation="shifted-force"), {"charge": CHARGES}),
    "tilted": (
        Pairwise(LennardJones(), 1.9),
        {"space": Triclinic([[5.6, 0, 0], [2.8, 5.6, 0], [-2.0, 2.6, 5.6]])},
    ),
    "slab": (Pairwise(LennardJones(), 2.2), {"space": Box([5.6] * 3, (True, False, True))}),
    "free": (Pairwise(LennardJones(), 2.2), {"space": Free()}),
    "unlisted": (Pairwise(LennardJones(), 2.2, use_neighbor_list=False), {"species": SPECIES}),
    "every pair": (Pairwise(Coulomb()), {"space": Free(), "charge": CHARGES}),
}


@pytest.mark.parametrize("name", CASES)
class TestPhysics:
    def test_energy_is_the_sum_over_pairs(self, name):
        force, extra = CASES[name]
        particles = liquid(**extra)
        energy = force.energy(make_clock(), particles)
        np.testing.assert_allclose(energy, _energy_of_all_pairs(force, particles), rtol=1e-12)

    def test_force_is_minus_its_gradient(self, name):
        force, extra = CASES[name]
        particles = liquid(**extra)
        got, _ = force(make_clock(), particles, force.init(particles))
        slope = jax.jit(
            jax.grad(lambda x: _energy_of_all_pairs(force, particles.replace(position=x)))
        )
        atol = 1e-9 if force.exact else 1e-11
        np.testing.assert_allclose(got, -slope(particles.position), rtol=1e-9, atol=atol)

    def test_virial_is_the_derivative_by_strain(self, name):
        force, extra = CASES[name]
        particles = liquid(**extra)
        if isinstance(particles.space, Box):
            pytest.skip("a strained box is not a Box; its trace is tested below")

        def strained(strain):
            stretch = jnp.eye(3) + strain
            space = particles.space
            if isinstance(space, Triclinic):
                space = jax.tree.map(lambda v: v @ stretch, space)
            return _energy_of_all_pairs(
                force, particles.replace(position=particles.position @ stretch, space=space)
            )

        got = force.virial(make_clock(), particles)
        np.testing.assert_allclose(got, -jax.jit(jax.grad(strained))(jnp.zeros((3, 3))), atol=1e-9)


def test_trace_of_the_virial_is_the_derivative_by_volume():
    force, particles = Pairwise(LennardJones(), 2.2), liquid()

    def energy(scale):
        space = Box(scale * particles.space.lengths)
        return force.energy(
            make_clock(), particles.replace(position=scale * particles.position, space=space), cache
        )

    cache = force.init(particles)
    trace = jnp.trace(force.virial(make_clock(), particles, cache))
    np.testing.assert_allclose(trace, -jax.jit(jax.grad(energy))(1.0), rtol=1e-10)


def test_derivatives_reach_positions_charges_box_and_parameters():
    particles = liquid(charge=CHARGES)
    force = Pairwise(Yukawa(), 2.4)
    cache = force.init(particles)
    weight = jnp.asarray(np.random.default_rng(2).normal(size=(125, 3)))

    def loss(force, position, charge, lengths):
        state = particles.replace(position=position, charge=charge, space=Box(lengths))
        return jnp.sum(weight * force(make_clock(), state, cache)[0])

    at = (force, particles.position, particles.charge, particles.space.lengths)
    slopes = jax.tree.leaves(jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))(*at))
    leaves, tree = jax.tree.flatten(at)
    assert len(slopes) == len(leaves) >= 4
    for k, slope in enumerate(slopes):
        direction = np.random.default_rng(k).normal(size=leaves[k].shape)

        def along(h, k=k, direction=direction):
            moved = [x + h * direction if m == k else x for m, x in enumerate(leaves)]
            return loss(*tree.unflatten(moved))

        numeric = (along(1e-5) - along(-1e-5)) / 2e-5
        np.testing.assert_allclose(jnp.sum(slope * direction), numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["Lennard-Jones", "species", "charges", "exact"])
def test_neither_the_force_nor_its_gradient_scatters(name):
    force, extra = CASES[name]
    particles = liquid(**extra)
    cache = force.init(particles)

    def loss(force, position, charge):
        state = particles.replace(position=position, charge=charge)
        return jnp.sum(force(make_clock(), state, cache)[0] ** 2)

    arguments = force, particles.position, particles.charge
    slope = jax.grad(loss, (0, 1, 2), allow_int=True)
    assert "stablehlo.scatter" not in jax.jit(slope).lower(*arguments).as_text()


def test_tail_corrections_are_added_once():
    particles = liquid()
    plain = Pairwise(LennardJones(), 2.2, truncation="plain")
    whole = Pairwise(LennardJones(), 2.2, truncation="plain", tail=True)
    density = particles.num_particles / particles.space.volume
    # ∫ of 4(r⁻¹² − r⁻⁶) beyond the cutoff
    tail = 8 / 3 * np.pi * density * particles.num_particles * (2.2**-9 / 3 - 2.2**-3)
    got = whole.energy(make_clock(), particles) - plain.energy(make_clock(), particles)
    np.testing.assert_allclose(got, tail, rtol=1e-10)
    more = whole.virial(make_clock(), particles) - plain.virial(make_clock(), particles)
    trace = 16 * np.pi * density * particles.num_particles * (2 * 2.2**-9 / 3 - 2.2**-3)
    np.testing.assert_allclose(more, trace / 3 * np.eye(3), rtol=1e-9, atol=1e-9)


def test_excluded_pairs_do_not_interact():
    particles = Particles([[0.0, 0, 0], [1, 0, 0], [2.1, 0, 0]], space=Box.cube(9.0))
    force = Pairwise(LennardJones(), 2.5, truncation="plain", exclude=np.array([(0, 1)]))
    u = lambda r: 4 * (r**-12 - r**-6)
    np.testing.assert_allclose(force.energy(make_clock(), particles), u(2.1) + u(1.1), rtol=1e-12)


def test_changing_a_parameter_does_not_recompile():
    particles = liquid()
    traced = []

    @jax.jit
    def compute_forces(force, cache):
        traced.append(1)
        return force(make_clock(), particles, cache)[0]

    cache = Pairwise(LennardJones(), 2.2).init(particles)
    for epsilon in (1.0, 2.0):
        compute_forces(Pairwise(LennardJones(epsilon), 2.2), cache)
    assert len(traced) == 1


def test_a_whole_simulation_is_differentiable():
    particles = liquid(n=3, spacing=1.3)

    def final(epsilon):
        force = Pairwise(LennardJones(epsilon), 1.7, 0.2)
        state, _ = trajectory(force, particles, steps=12)
        return jnp.sum(jnp.sin(state.velocity))

    final = jax.jit(final)
    numeric = (final(1.0 + 1e-5) - final(1.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.jit(jax.grad(final))(1.0), numeric, rtol=1e-6)


def test_second_derivatives_through_a_run():
    """Of more pairs than a sum by XLA is for."""
    particles = liquid(n=4, spacing=1.3)
    assert particles.num_slots**2 > 2**10

    def final(epsilon):
        simulation = pk.Simulation(
            pk.VelocityVerlet(Pairwise(LennardJones(epsilon), 1.7, 0.2)), dt=0.02
        )
        return jnp.sum(jnp.sin(pk.simulate(simulation, particles, 3).state.velocity))

    slope, second = jax.jit(jax.grad(final)), jax.jit(jax.hessian(final))
    numeric = (slope(1.0 + 1e-5) - slope(1.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(second(1.0), numeric, rtol=1e-6)
