"""Particles over devices: results equal to one device, growth, and errors where a domain cannot be sharded."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    Clock,
    CutoffError,
    Fault,
    StepCount,
    shard,
    unshard,
)
from physkit.geometry import Box
from physkit.parallel import Spmd
from physkit.particles import Particles
from physkit.particles.forces import (
    BondedEnergy,
    Coulomb,
    DirectGravity,
    HarmonicAngles,
    HarmonicBonds,
    LennardJones,
    Pairwise,
    ShardedTuples,
    SpecialPairs,
)
from physkit.simulate.distributed._spmd_function import SpmdFunction
from physkit.testing import check_devices

from .particle_cases import SYSTEMS, distance, fluid, molecular, sheet

# Every system, on one device and on several.
pytestmark = [pytest.mark.compiled_quickly, pytest.mark.usefixtures("emulated")]

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_gradients_pass_through_shard_and_unshard",
    "test_traced_states_without_a_capacity_raise",
    "test_num_particles_is_that_of_the_whole_domain",
    "test_migration_keeps_all_particles_and_moves_each_to_its_owner",
    "test_cotangents_migrate_and_return_with_their_particles",
    "test_exact_pair_sums_are_the_same_bits_over_devices[devices0-None]",
    "test_bonds_and_angles_over_devices",
    "test_a_bond_beyond_the_next_slab_sets_a_fault",
)


def migrate(particles):
    return particles.migrate()


@pytest.mark.slow
def test_unshard_is_the_inverse_of_shard():
    atoms = fluid(species=np.arange(96) % 3, frozen=np.arange(96) < 5, id=7 * np.arange(96))
    for devices in ((1,), (2,), (4, 1), (1, 3)):
        back = unshard(shard(atoms, devices), devices)
        assert jax.tree.structure(back) == jax.tree.structure(atoms)
        assert all(map(np.array_equal, *map(jax.tree.leaves, (back, atoms))))


def test_gradients_pass_through_shard_and_unshard():
    atoms = fluid()

    def whole(x):
        back = unshard(shard(atoms.replace(position=x), (3,)), (3,))
        return jnp.sum(back.position**3)

    assert np.allclose(jax.grad(whole)(atoms.position), 3 * atoms.position**2, atol=0, rtol=1e-14)


def positions_after(sim, state):
    return pk.simulate(sim, state, 2, devices=(2,)).state.position


def test_traced_states_without_a_capacity_raise():
    sim, atoms = molecular()
    with pytest.raises(pk.errors.CapacityError, match="continue inside from the carry"):
        jax.eval_shape(lambda start: positions_after(sim, start), atoms)


@pytest.mark.slow
def test_traced_programs_continue_from_a_carry():
    sim, atoms = molecular()
    carry = pk.simulate(sim, atoms, 2, devices=(2,)).carry
    found = jax.jit(lambda start: positions_after(sim, start))(carry)
    one = jax.jit(lambda start: pk.simulate(sim, start, 4).state.position)(pk.init(sim, atoms))
    assert distance(found, one) < 1e-13


def slots_and_count(particles):
    return jnp.zeros(particles.num_slots), jnp.asarray(particles.num_particles)


def test_num_particles_is_that_of_the_whole_domain():
    """So that energy / num_particles is that of a particle, on any number of devices."""
    atoms = fluid()
    parts = shard(atoms, (4,))
    rows, count = Spmd(SpmdFunction(slots_and_count), (4,))(parts)
    assert count.tolist() == [96] * 4
    assert rows.shape == parts.position.shape[:2]


def test_migration_keeps_all_particles_and_moves_each_to_its_owner():
    atoms = fluid()
    moved = shard(atoms, (4,))
    assert moved.ownership is not None
    step = 0.5 * np.random.default_rng(1).standard_normal(moved.position.shape)
    shift = jax.vmap(lambda p, dx: p.shift(pk.components.ParticleIncrement(position=dx)))
    start, moved = moved, shift(moved, jnp.asarray(step))
    after = Spmd(SpmdFunction(migrate), (4,))(moved)
    ownership = after.ownership
    assert not np.asarray(ownership.faults.bits).any()
    assert int(ownership.mask.sum()) == atoms.num_particles
    assert not np.array_equal(ownership.mask, moved.ownership.mask)
    owner = np.floor(np.asarray(after.position[..., 0]) / (19.2 / 4))
    assert np.array_equal(owner[ownership.mask], np.argwhere(ownership.mask)[:, 0])
    # A particle that crosses more than the margin sets a fault, and all numbers of its device become NaN.
    far = Spmd(SpmdFunction(migrate), (4,))(shift(start, jnp.asarray(4 * step)))
    has_leapt = (np.asarray(far.ownership.faults.bits) & int(Fault.DISPLACEMENT)) != 0
    assert has_leapt.any()
    assert np.isnan(far.position[has_leapt]).all()


def to_fixed_point(particles):
    return particles.to_fixed_point(jnp.asarray(0.01), 2.0)


def migrate_with(particles, cotangents):
    return particles.migrate_with(cotangents)


def restore_rows(particles, begin, cotangents):
    return particles.restore_rows(begin, cotangents)


def test_cotangents_migrate_and_return_with_their_particles():
    """As the backward pass of `Reversible` needs it: integers, cotangents, rows of the initial state."""
    each = lambda function, *parts: Spmd(SpmdFunction(function), (4,))(*parts)
    begin = each(to_fixed_point, shard(fluid(), (4,)))
    one = to_fixed_point(fluid())
    assert all(map(np.array_equal, *map(jax.tree.leaves, (unshard(begin, (4,)), one))))
    step = 0.5 * np.random.default_rng(1).standard_normal(begin.position.shape)
    change = eqx.filter_jit(
        jax.vmap(lambda p, dx: p.shift(pk.components.ParticleIncrement(position=dx)))
    )
    displaced = change(begin, jnp.asarray(step))
    cotangents = displaced.replace(velocity=3 * displaced.position)
    after, cotangents_after = each(migrate_with, displaced, cotangents)
    mask = np.asarray(after.ownership.mask)
    assert not np.array_equal(mask, begin.ownership.mask)
    assert np.array_equal(after.position, jax.vmap(lambda p: p.fixed_point.positions)(after))
    assert np.array_equal(cotangents_after.velocity[mask], 3 * after.position[mask])
    assert not np.asarray(cotangents_after.velocity)[~mask].any()
    back, cotangents, found = each(restore_rows, after, displaced, cotangents_after)
    assert np.asarray(found).all()
    assert all(map(np.array_equal, *map(jax.tree.leaves, (back._rows, displaced._rows))))
    initial_mask = np.asarray(displaced.ownership.mask)
    assert np.array_equal(cotangents.velocity[initial_mask], 3 * displaced.position[initial_mask])
    # A row whose particle is nowhere is reported.
    indices = displaced.ownership.global_index
    ownership = eqx.tree_at(
        lambda s: s.global_index, displaced.ownership, indices.at[0].set(indices[2])
    )
    assert not np.asarray(
        each(restore_rows, after, displaced.replace(ownership=ownership), cotangents_after)[2]
    ).all()


def evaluate(term, particles):
    """Force, energy and virial of a force term."""
    clock = Clock.at(StepCount.of(0), 0.0, 0.01)
    cache = term.init(particles)
    force, cache = term(clock, particles, cache)
    return force, term.energy(clock, particles, cache), term.virial(clock, particles, cache)


@pytest.mark.parametrize(("devices", "exclude"), [((2,), None), ((3, 1), sheet()[0])])
def test_exact_pair_sums_are_the_same_bits_over_devices(devices, exclude):
    """Also with bonded neighbors excluded, across slabs and the ends of the box."""
    atoms, force = fluid(), Pairwise(LennardJones(), 2.0, 0.3, exact=True, exclude=exclude)
    expected, energy, virial = jax.jit(evaluate)(force, atoms)
    program = Spmd(SpmdFunction(evaluate), devices)
    sharded_atoms = shard(atoms, devices)
    found, total, stress = program(shard(force, devices), sharded_atoms)
    whole = unshard(sharded_atoms.replace(velocity=found), devices).velocity
    assert np.array_equal(whole, expected)
    assert distance(total[0], energy) < 1e-14
    assert distance(stress[0], virial) < 1e-13


def evaluate_each(terms, particles):
    return [evaluate(term, particles) for term in terms]


def three_body(x, p):
    return p["scale"] * jnp.sum(x[1] * x[2]) ** 2


def check_over_devices(forces, atoms):
    one, sharded_atoms = jax.jit(evaluate_each)(forces.terms, atoms), shard(atoms, (4,))
    four = Spmd(SpmdFunction(evaluate_each), (4,))(shard(forces.terms, (4,)), sharded_atoms)
    for (expected, energy, virial), (found, total, stress) in zip(one, four, strict=True):
        whole = unshard(sharded_atoms.replace(velocity=found), (4,)).velocity
        assert distance(whole, expected) < 1e-13
        assert distance(total[0], energy) < 1e-13
        assert distance(stress[0], virial) < 1e-13


def test_bonds_and_angles_over_devices():
    """Bonds reach across slabs and the ends of the box; parameters are arrays over tuples, or scalars."""
    pairs, triples = sheet()
    bonds = HarmonicBonds(pairs, jnp.linspace(1.0, 2.0, len(pairs)), 1.1)
    angles = HarmonicAngles(triples, 2.0, jnp.linspace(1.0, 2.0, len(triples)))
    check_over_devices(bonds + angles, fluid())


@pytest.mark.slow
def test_many_body_energies_over_devices():
    """Rows of copies know their pairs from the other end, and what is done to copies travels back."""
    (angular, *_), atoms = (
        SYSTEMS["many_body"]()[0].integrator.force.terms,
        fluid(species=np.arange(96) % 2),
    )
    check_over_devices(pk.forces.Forces.of(angular), atoms)


@pytest.mark.slow
def test_sites_of_bodies_over_devices():
    """Wrenches, energies and virials; sites stand out of the slab that their body is in."""
    sim, bodies = SYSTEMS["molecules"]()
    forces = sim.integrator.force
    one, parts = jax.jit(evaluate_each)(forces.terms, bodies), shard(bodies, (4,))
    assert float(jnp.max(jnp.abs(one[0][0]))) > 0.1
    four = Spmd(SpmdFunction(evaluate_each), (4,))(shard(forces.terms, (4,)), parts)
    for (expected, energy, virial), (found, total, stress) in zip(one, four, strict=True):
        put = parts.replace(velocity=found[..., :3], angular_momentum=found[..., 3:])
        whole = unshard(put, (4,))
        assert distance(whole.velocity, expected[:, :3]) < 1e-13
        assert distance(whole.angular_momentum, expected[:, 3:]) < 1e-13
        assert distance(total[0], energy) < 1e-13
        assert distance(stress[0], virial) < 1e-13


@pytest.mark.slow
def test_derivatives_of_sites_equal_those_of_one_device():
    check_devices(*SYSTEMS["molecules"](), 20, devices=[(4,)])


@pytest.mark.slow
def test_charges_of_pairs_and_own_energies_over_devices():
    """Properties of particles, and parameters of a function, are found wherever their tuple is."""
    pairs, triples = sheet()
    own = BondedEnergy(triples, three_body, {"scale": jnp.linspace(1.0, 2.0, len(triples))})
    special = SpecialPairs(pairs, Coulomb(), jnp.linspace(0.5, 1.0, len(pairs)))
    check_over_devices(own + special, fluid(charge=np.cos(np.arange(fluid().num_particles))))


@pytest.mark.slow
def test_direct_gravity_over_devices():
    gravity, (_, stars) = DirectGravity(0.5, softening=0.1), SYSTEMS["cluster"]()
    expected, energy, virial = jax.jit(evaluate)(gravity, stars)
    sharded_stars = shard(stars, (3,))
    found, total, stress = Spmd(SpmdFunction(evaluate), (3,))(shard(gravity, (3,)), sharded_stars)
    whole = unshard(sharded_stars.replace(velocity=found), (3,)).velocity
    assert distance(whole, expected) < 1e-13
    assert distance(total[0], energy) < 1e-13
    assert distance(stress[0], virial) < 1e-13


def first_call(force, particles):
    return force(Clock.at(StepCount.of(0), 0.0, 0.01), particles, force.init(particles))


def test_a_bond_beyond_the_next_slab_sets_a_fault():
    bonds = HarmonicBonds([[0, 6], [0, 48]])
    atoms = shard(fluid(), (4,))
    force, cache = Spmd(SpmdFunction(first_call), (4,))(shard(bonds, (4,)), atoms)
    assert isinstance(cache, ShardedTuples)
    assert [bool(bits & Fault.BOND) for bits in cache.faults.bits] == [True, False, True, False]
    assert np.isnan(force[0]).all()
    assert not np.isnan(force[1]).any()


@pytest.mark.slow
def test_torn_bonds_raise():
    sim = pk.Simulation(pk.VelocityVerlet(HarmonicBonds([[0, 48]])), dt=0.004)
    with pytest.raises(CutoffError, match="slabs that are not next to each other"):
        pk.run(sim, fluid(), 5, devices=(4,), progress=False)
    assert Fault.BOND in pk.simulate(sim, fluid(), 1, devices=(4,)).health.faults()


@pytest.mark.slow
def test_bonds_of_a_full_slab_grow_and_replay():
    """All particles of a coiled chain move into one slab."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(200, 2)) * [16.0, 8.0] + [2.0, 0.0]
    chain = np.argsort(x[:, 0])
    toward = np.sign(4.0 - x[:, :1]) * [[8.0, 0.0]]
    atoms = Particles(x, toward, space=Box([20.0, 8.0]))
    bonds = HarmonicBonds(np.stack([chain[:-1], chain[1:]], 1), 0.1, 0.1)
    sim = pk.Simulation(pk.VelocityVerlet(bonds), dt=0.01)
    one = pk.run(sim, atoms, 120, progress=False)
    many = pk.run(sim, atoms, 120, devices=(2,), progress=False)
    assert any("bonds or angles of a slab" in growth.what for growth in many.growths), many.growths
    assert distance(many.state.position, one.state.position) < 1e-12
