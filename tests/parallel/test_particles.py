"""Particles over devices: equal to one device, and clear where that cannot be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    Clock,
    CutoffError,
    DeclarationError,
    Fault,
    StepCount,
    shard,
    unshard,
)
from physkit.geometry import Box
from physkit.parallel import Spmd
from physkit.particles import Particles
from physkit.particles.forces import (
    DirectGravity,
    HarmonicAngles,
    HarmonicBonds,
    LennardJones,
    Morse,
    Pairwise,
    ShardedTuples,
)
from physkit.simulate.distributed._spmd_function import SpmdFunction

from .particle_cases import SYSTEMS, differences, distance, fluid, molecular, sheet

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_cut_and_gathered_are_inverse",
    "test_gradients_pass_through_cutting",
    "test_programs_that_cannot_see_the_box_say_what_to_do",
    "test_particles_are_counted_over_the_whole_domain",
    "test_migration_loses_nobody_and_puts_all_where_they_belong",
    "test_what_belongs_to_particles_goes_with_them_and_back",
    "test_exact_pair_sums_are_the_same_bits_over_devices[devices0-None]",
    "test_bonds_and_angles_over_devices",
    "test_gravity_of_all_on_all_over_devices",
    "test_a_bond_beyond_the_next_slab_is_a_fault",
    "test_what_cannot_be_cut_says_so",
)


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    """Devices are emulated on one."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")


def settled(particles):
    return particles.migrate()


def test_cut_and_gathered_are_inverse():
    atoms = fluid(species=np.arange(96) % 3, frozen=np.arange(96) < 5, id=7 * np.arange(96))
    for devices in ((1,), (2,), (4, 1), (1, 3)):
        back = unshard(shard(atoms, devices), devices)
        assert jax.tree.structure(back) == jax.tree.structure(atoms)
        assert all(map(np.array_equal, *map(jax.tree.leaves, (back, atoms))))


def test_gradients_pass_through_cutting():
    atoms = fluid()

    def whole(x):
        back = unshard(shard(atoms.replace(position=x), (3,)), (3,))
        return jnp.sum(back.position**3)

    assert np.allclose(jax.grad(whole)(atoms.position), 3 * atoms.position**2, atol=0, rtol=1e-14)


def positions_after(sim, start):
    return pk.simulate(sim, start, 2, devices=(2,)).state.position


def test_programs_that_cannot_see_the_box_say_what_to_do():
    sim, atoms = molecular()
    with pytest.raises(pk.errors.CapacityError, match="go on inside from the carry"):
        jax.eval_shape(lambda start: positions_after(sim, start), atoms)


@pytest.mark.slow
def test_programs_go_on_from_a_carry():
    sim, atoms = molecular()
    carry = pk.simulate(sim, atoms, 2, devices=(2,)).carry
    found = jax.jit(lambda start: positions_after(sim, start))(carry)
    one = jax.jit(lambda start: pk.simulate(sim, start, 4).state.position)(pk.init(sim, atoms))
    assert distance(found, one) < 1e-13


def number(particles):
    return jnp.zeros(particles.num_slots), jnp.asarray(particles.num_particles)


def test_particles_are_counted_over_the_whole_domain():
    """So that an energy over `count` is that of a particle, on any number of devices."""
    atoms = fluid()
    parts = shard(atoms, (4,))
    rows, count = Spmd(SpmdFunction(number), (4,))(parts)
    assert count.tolist() == [96] * 4
    assert rows.shape == parts.position.shape[:2]


def test_migration_loses_nobody_and_puts_all_where_they_belong():
    atoms = fluid()
    moved = shard(atoms, (4,))
    assert moved.ownership is not None
    step = 0.5 * np.random.default_rng(1).standard_normal(moved.position.shape)
    shift = jax.vmap(lambda p, dx: p.shift(pk.components.ParticleIncrement(position=dx)))
    start, moved = moved, shift(moved, jnp.asarray(step))
    after = Spmd(SpmdFunction(settled), (4,))(moved)
    share = after.ownership
    assert not np.asarray(share.faults.bits).any()
    assert int(share.mask.sum()) == atoms.num_particles
    assert not np.array_equal(share.mask, moved.ownership.mask)
    owner = np.floor(np.asarray(after.position[..., 0]) / (19.2 / 4))
    assert np.array_equal(owner[share.mask], np.argwhere(share.mask)[:, 0])
    # Whoever leaps across the margin is told of, and the numbers are poisoned.
    far = Spmd(SpmdFunction(settled), (4,))(shift(start, jnp.asarray(4 * step)))
    leapt = (np.asarray(far.ownership.faults.bits) & int(Fault.DISPLACEMENT)) != 0
    assert leapt.any()
    assert np.isnan(far.position[leapt]).all()


def to_fixed_point(particles):
    return particles.to_fixed_point(jnp.asarray(0.01), 2.0)


def migrate_with(particles, cotangents):
    return particles.migrate_with(cotangents)


def restore_rows(particles, begin, cotangents):
    return particles.restore_rows(begin, cotangents)


def test_what_belongs_to_particles_goes_with_them_and_back():
    """As the way back of `Reversible` needs it: integers, cotangents, and at last the rows of the start."""
    each = lambda function, *parts: Spmd(SpmdFunction(function), (4,))(*parts)
    begin = each(to_fixed_point, shard(fluid(), (4,)))
    one = to_fixed_point(fluid())
    assert all(map(np.array_equal, *map(jax.tree.leaves, (unshard(begin, (4,)), one))))
    step = 0.5 * np.random.default_rng(1).standard_normal(begin.position.shape)
    change = eqx.filter_jit(
        jax.vmap(lambda p, dx: p.shift(pk.components.ParticleIncrement(position=dx)))
    )
    strayed = change(begin, jnp.asarray(step))
    cotangents = strayed.replace(velocity=3 * strayed.position)
    after, cotangents_after = each(migrate_with, strayed, cotangents)
    alive = np.asarray(after.ownership.mask)
    assert not np.array_equal(alive, begin.ownership.mask)
    assert np.array_equal(after.position, jax.vmap(lambda p: p.fixed_point.positions)(after))
    assert np.array_equal(cotangents_after.velocity[alive], 3 * after.position[alive])
    assert not np.asarray(cotangents_after.velocity)[~alive].any()
    back, cotangents, found = each(restore_rows, after, strayed, cotangents_after)
    assert np.asarray(found).all()
    assert all(map(np.array_equal, *map(jax.tree.leaves, (back._rows, strayed._rows))))
    home = np.asarray(strayed.ownership.mask)
    assert np.array_equal(cotangents.velocity[home], 3 * strayed.position[home])
    # Whoever is missing is missed.
    places = strayed.ownership.global_index
    share = eqx.tree_at(lambda s: s.global_index, strayed.ownership, places.at[0].set(places[2]))
    assert not np.asarray(
        each(restore_rows, after, strayed.replace(ownership=share), cotangents_after)[2]
    ).all()


def forces(force, particles):
    clock = Clock.at(StepCount.of(0), 0.0, 0.01)
    cache = force.init(particles)
    pull, cache = force(clock, particles, cache)
    return pull, force.energy(clock, particles, cache), force.virial(clock, particles, cache)


@pytest.mark.parametrize(("devices", "exclude"), [((2,), None), ((3, 1), sheet()[0])])
def test_exact_pair_sums_are_the_same_bits_over_devices(devices, exclude):
    """Where bonded neighbors are left out, too, across slabs and around the box."""
    atoms, force = fluid(), Pairwise(LennardJones(), 2.0, 0.3, exact=True, exclude=exclude)
    pull, energy, virial = jax.jit(forces)(force, atoms)
    program = Spmd(SpmdFunction(forces), devices)
    cut_atoms = shard(atoms, devices)
    found, total, stress = program(shard(force, devices), cut_atoms)
    whole = unshard(cut_atoms.replace(velocity=found), devices).velocity
    assert np.array_equal(whole, pull)
    assert distance(total[0], energy) < 1e-14
    assert distance(stress[0], virial) < 1e-13


def forces_of_each(terms, particles):
    return [forces(term, particles) for term in terms]


def test_bonds_and_angles_over_devices():
    """Springs reach across slabs and around the box; some are given, some are for all."""
    atoms, (pairs, triples) = fluid(), sheet()
    force = HarmonicBonds(pairs, jnp.linspace(1.0, 2.0, len(pairs)), 1.1)
    force = force + HarmonicAngles(triples, 2.0, jnp.linspace(1.0, 2.0, len(triples)))
    one, cut_atoms = jax.jit(forces_of_each)(force.terms, atoms), shard(atoms, (4,))
    four = Spmd(SpmdFunction(forces_of_each), (4,))(shard(force.terms, (4,)), cut_atoms)
    for (pull, energy, virial), (found, total, stress) in zip(one, four, strict=True):
        whole = unshard(cut_atoms.replace(velocity=found), (4,)).velocity
        assert distance(whole, pull) < 1e-13
        assert distance(total[0], energy) < 1e-13
        assert distance(stress[0], virial) < 1e-13


def test_gravity_of_all_on_all_over_devices():
    gravity, (_, stars) = DirectGravity(0.5, softening=0.1), SYSTEMS["cluster"]()
    pull, energy, virial = jax.jit(forces)(gravity, stars)
    cut_stars = shard(stars, (3,))
    found, total, stress = Spmd(SpmdFunction(forces), (3,))(shard(gravity, (3,)), cut_stars)
    whole = unshard(cut_stars.replace(velocity=found), (3,)).velocity
    assert distance(whole, pull) < 1e-13
    assert distance(total[0], energy) < 1e-13
    assert distance(stress[0], virial) < 1e-13


def first_call(force, particles):
    return force(Clock.at(StepCount.of(0), 0.0, 0.01), particles, force.init(particles))


def test_a_bond_beyond_the_next_slab_is_a_fault():
    torn = HarmonicBonds([[0, 6], [0, 48]])
    atoms = shard(fluid(), (4,))
    pull, here = Spmd(SpmdFunction(first_call), (4,))(shard(torn, (4,)), atoms)
    assert isinstance(here, ShardedTuples)
    assert [bool(bits & Fault.BOND) for bits in here.faults.bits] == [True, False, True, False]
    assert np.isnan(pull[0]).all()
    assert not np.isnan(pull[1]).any()


@pytest.mark.slow
def test_torn_bonds_end_a_run():
    sim = pk.Simulation(pk.VelocityVerlet(HarmonicBonds([[0, 48]])), dt=0.004)
    with pytest.raises(CutoffError, match="slabs that are not next to each other"):
        pk.run(sim, fluid(), 5, devices=(4,), progress=False)
    assert Fault.BOND in pk.simulate(sim, fluid(), 1, devices=(4,)).health.faults()


@pytest.mark.slow
def test_bonds_that_come_together_in_a_slab_grow_and_replay():
    """A coiled chain that falls into one slab."""
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


def test_what_cannot_be_cut_says_so():
    sim, atoms = molecular()
    with pytest.raises(CutoffError, match="at most 6 devices"):
        pk.simulate(sim, atoms, 1, devices=(8,))
    with pytest.raises(DeclarationError, match="slabs, along one axis"):
        pk.simulate(sim, atoms, 1, devices=(2, 2))
    stars = pk.Simulation(pk.VelocityVerlet(DirectGravity()), dt=0.1)
    with pytest.raises(DeclarationError, match="Free cannot be cut"):
        pk.simulate(stars, Particles(np.eye(3)), 1, devices=(2,))
    mesh, plasma = SYSTEMS["plasma"]()
    backwards = pk.Simulation(mesh.integrator, dt=0.01, adjoint=pk.Reversible())
    with pytest.raises(pk.errors.NotReversible, match="what each device deposits"):
        pk.simulate(backwards, plasma, 1, devices=(2,))


@pytest.mark.slow
@pytest.mark.parametrize("devices", [(2,), (4,)])
@pytest.mark.parametrize("name", SYSTEMS)
def test_runs_are_those_of_one_device(name, devices):
    found = differences(name, devices)
    assert max(found.values()) < 1e-10, found


@pytest.mark.slow
def test_exact_runs_are_the_same_bits():
    sim, atoms = molecular(exact=True)
    one = jax.jit(lambda atoms: pk.simulate(sim, atoms, 100).state)(atoms)
    two = pk.simulate(sim, atoms, 100, devices=(2,)).state
    assert np.array_equal(one.position, two.position)
    assert np.array_equal(one.velocity, two.velocity)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["microcanonical", "bonded", "cluster", "plasma"])
def test_gradients_are_those_of_one_device(name):
    sim, state = SYSTEMS[name]()

    def loss(sim, velocity, devices):
        done = pk.simulate(sim, state.replace(velocity=velocity), 40, devices=devices)
        seen = done.frames["energy"][-1] + jnp.sum(done.frames["x"][-1] ** 2)
        return seen + jnp.sum(done.state.velocity**2)

    slope = lambda devices: eqx.filter_grad(lambda both: loss(*both, devices))(
        (sim, state.velocity)
    )
    (one, v), (two, w) = slope(None), slope((2,))
    assert distance(w, v) < 1e-10
    pairs = zip(*(jax.tree.leaves(x.integrator) for x in (one, two)), strict=True)
    assert all(distance(b, a) < 1e-10 for a, b in pairs)


@pytest.mark.slow
def test_slabs_that_fill_up_grow_and_replay(tmp_path):
    """All fall into one slab; a run resumed there has the room that slabs have grown to."""
    atoms = fluid()
    force = Pairwise(Morse(1e-3, 2.0, 1.0), 2.0, 0.3)  # finite where particles meet
    sim = pk.Simulation(pk.VelocityVerlet(force), dt=0.01, observers=pk.Every(10, x=pk.Positions()))
    toward = 4.8 - ((atoms.position[:, :1] + 4.8) % 19.2 - 4.8)
    inwards = toward / 1.6 * jnp.asarray([[1.0, 0.0]])
    atoms = atoms.replace(velocity=0.1 * atoms.velocity + inwards)
    one = pk.run(sim, atoms, 100, progress=False)
    many = pk.run(sim, atoms, 90, devices=(2,), progress=False, to=tmp_path)
    assert any("particles in a slab" in growth.what for growth in many.growths), many.growths
    again = pk.run(sim, atoms, 100, devices=(2,), progress=False, to=tmp_path, resume=True)
    assert again.resumed_from == 90
    assert again.carry.carry.state.num_slots > shard(atoms, (2,)).num_slots
    assert distance(again.state.position, one.state.position) < 1e-10
    assert distance(again["x"], one.frames["x"]) < 1e-7  # single precision in the file


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pmap", "shard_map"])
def test_real_devices(backend):
    """Devices must be there before JAX starts: one process for all systems."""
    script = Path(__file__).parent / "particle_cases.py"
    settings = {
        **os.environ,
        "PHYSKIT_SPMD": backend,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "PYTHONPATH": str(script.parent.parent.parent),
    }
    done = subprocess.run(
        [sys.executable, str(script), "2", "microcanonical", "plasma"],
        env=settings,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [list(x) for x in found] == [["microcanonical"], ["plasma"]]
    for one in found:
        for values in one.values():
            assert max(values.values()) < 1e-10, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "steps", "hot"), [("pmap", 100, 5.0), ("shard_map", 100, 5.0), ("pmap", 2000, 1.0)]
)
def test_reversible_over_devices(backend, steps, hot):
    """Particles change devices on the way there and, at other steps, on the way back."""
    settings = {
        **os.environ,
        "PHYSKIT_SPMD": backend,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.parallel.reversible", str(steps), str(hot)],
        cwd=Path(__file__).parents[2],
        env=settings,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["same bits"], found
    assert found["same bits of a run"], found
    assert found["faults"] == 0
    assert found["moved"] > 0
    assert max(found["slopes"] + found["parameters"]) < 1e-10, found
