"""Pair sums whose bits do not depend on the order, their faults, and runs with and without a list."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    Clock,
    CutoffError,
    Fault,
    NotReversible,
    ParameterError,
    ShapeError,
    StepCount,
    collect_faults,
)
from physkit.geometry import Box
from physkit.integrators import VelocityVerlet
from physkit.particles import Particles
from physkit.particles.forces import Coulomb, LennardJones, Pairwise
from physkit.particles.forces.pairs import _pairwise
from physkit.particles.neighbors import NeighborList
from physkit.simulate import Reversible, Simulation, init, reversibility_report, simulate

from .pair_cases import CHARGES, TABLE, liquid, make_clock, trajectory

pytestmark = pytest.mark.usefixtures("small_systems_keep_lists")

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_numbering_does_not_matter[float64]",
    "test_missing_charges_or_species_are_refused[force2-extra2-has species 2]",
    "test_few_particles_go_without[5-options0-False]",
    "test_few_particles_go_without[5-options2-True]",
    "test_the_force_is_the_same",
)


def _bitwise_equal(a, b):
    return np.array_equal(a.position, b.position) and np.array_equal(a.velocity, b.velocity)


class TestExact:
    """One trajectory to the bit, whatever the list, the batch and the numbering."""

    @pytest.fixture(scope="class")
    def reference(self):
        out = {}
        for dtype in (jnp.float32, jnp.float64):
            force = Pairwise(LennardJones(dtype(1), dtype(1)), 2.2, 0.3, exact=True)
            state, (_, caches) = jax.jit(lambda p, f=force: trajectory(f, p))(liquid(dtype))
            assert caches[0].neighbors.num_rebuilds > 0
            assert collect_faults(caches).bits == 0
            out[jnp.dtype(dtype)] = state
        return out

    @pytest.mark.parametrize("options", [{"skin": 0.1}, {"skin": 0.5}, {"capacity": 77}], ids=str)
    def test_skin_and_capacity_do_not_matter(self, reference, dtype, options):
        potential = LennardJones(dtype.type(1), dtype.type(1))
        force = Pairwise(potential, 2.2, **{"skin": 0.3, **options}, exact=True)
        state, _ = jax.jit(lambda p: trajectory(force, p))(liquid(dtype))
        assert _bitwise_equal(state, reference[dtype])

    def test_other_members_of_a_batch_do_not_matter(self, reference, dtype):
        force = Pairwise(LennardJones(dtype.type(1), dtype.type(1)), 2.2, 0.3, exact=True)
        members = [liquid(dtype), liquid(dtype, seed=7), liquid(dtype, seed=8)]
        batch = jax.tree.map(lambda *x: jnp.stack(x), *members)
        state, _ = jax.jit(jax.vmap(lambda p: trajectory(force, p)))(batch)
        assert _bitwise_equal(jax.tree.map(lambda x: x[0], state), reference[dtype])

    def test_numbering_does_not_matter(self, dtype):
        force = Pairwise(LennardJones(dtype.type(1), dtype.type(1)), 2.2, 0.3, exact=True)
        order = np.random.default_rng(0).permutation(125)
        particles = liquid(dtype)
        leaves = {
            name: getattr(particles, name)[order]
            for name in ("position", "velocity", "mass", "image", "id")
        }
        # The force: how a kick is rounded may depend on a particle's place in a vector register.
        now = Clock.at(StepCount.of(0), jnp.zeros((), dtype), jnp.asarray(0.005, dtype))
        sums = [
            jax.jit(lambda p, c: force(now, p, c)[0])(p, force.init(p))
            for p in (particles, particles.replace(**leaves))
        ]
        assert np.array_equal(np.asarray(sums[0])[order], np.asarray(sums[1]))

    def test_a_plain_sum_depends_on_the_list(self, reference):
        dtype = jnp.dtype(jnp.float32)
        ends = []
        for skin in (0.1, 0.3):
            force = Pairwise(LennardJones(dtype.type(1), dtype.type(1)), 2.2, skin)
            ends.append(jax.jit(lambda p, f=force: trajectory(f, p))(liquid(dtype))[0])
        assert not _bitwise_equal(*ends)

    def test_total_force_is_zero_to_the_bit(self):
        particles = liquid()
        # So coarse a quantum that the sums fit into the significand: then the force is the sum.
        force = Pairwise(LennardJones(), 2.2, exact=True, quantum=2.0**-36)
        cache = force.init(particles)
        forces, _ = force(make_clock(), particles, cache)
        counts = np.asarray(forces / cache.quantum)
        assert np.array_equal(counts, np.round(counts))
        assert np.all(counts.astype(np.int64).sum(axis=0) == 0)

    def test_quantum_is_a_power_of_two_and_can_be_given(self):
        particles = liquid()
        force = Pairwise(LennardJones(), 2.2, exact=True, quantum=1e-6)
        assert force.init(particles).quantum == 2.0**-19
        own = float(Pairwise(LennardJones(), 2.2, exact=True).init(particles).quantum)
        assert np.log2(own) == round(np.log2(own))

    def test_leaving_the_range_is_a_fault(self):
        particles = liquid(jnp.float32)
        potential = LennardJones(jnp.float32(1), jnp.float32(1))
        force = Pairwise(potential, 2.2, exact=True, quantum=jnp.float32(2.0**-50))
        forces, cache = force(make_clock(), particles, force.init(particles))
        assert int(cache.faults.bits) & Fault.EXACT_SUM_RANGE
        assert np.any(np.isnan(forces))


class TestFaults:
    def test_initial_overlap_is_a_fault(self):
        particles = Particles([[1.0, 1, 1], [1, 1, 1], [3, 3, 3]], space=Box.cube(9.0))
        force = Pairwise(LennardJones(), 2.5)
        cache = force.init(particles)
        assert int(cache.faults.bits) & Fault.OVERLAP
        forces, _ = force(make_clock(), particles, cache)
        assert not np.all(np.isfinite(forces[:2]))

    def test_overflow_poisons(self):
        particles = liquid()
        force = Pairwise(LennardJones(), 2.2, capacity=8)
        cache = force.init(particles)
        forces, cache = force(make_clock(), particles, cache)
        assert np.all(np.isnan(forces))
        assert np.isnan(force.energy(make_clock(), particles, cache))
        assert int(collect_faults(cache).bits) & Fault.OVERFLOW

    def test_no_cutoff_in_a_periodic_box(self):
        with pytest.raises(CutoffError, match="infinitely many images"):
            Pairwise(Coulomb()).init(liquid(charge=CHARGES))

    @pytest.mark.parametrize(
        ("force", "extra", "match"),
        [
            (Pairwise(Coulomb(), 2.0), {}, "give Particles.*charge"),
            (Pairwise(TABLE, 2.0), {}, "give Particles.*species"),
            (Pairwise(TABLE, 2.0), {"species": np.arange(125) % 3}, "has species 2"),
        ],
    )
    def test_missing_charges_or_species_are_refused(self, force, extra, match):
        with pytest.raises(ParameterError, match=match):
            force.init(liquid(**extra))

    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            ({"cutoff": -1.0}, ParameterError, "cutoff must be a positive length"),
            ({"cutoff": 2.0, "skin": -0.1}, ParameterError, "skin must be"),
            ({"cutoff": 2.0, "truncation": "cut"}, ParameterError, "available"),
            ({"cutoff": 2.0, "tail": True}, ParameterError, "plain"),
            ({"cutoff": 2.0, "quantum": 1.0}, ParameterError, "exact=True"),
            ({"cutoff": 2.0, "exclude": [1, 2]}, ShapeError, r"\[m 2\]"),
            (
                {"cutoff": 2.0, "skin": 0.2, "use_neighbor_list": False},
                ParameterError,
                "keeps no list",
            ),
        ],
    )
    def test_bad_arguments_are_refused(self, options, error, match):
        with pytest.raises(error, match=match):
            Pairwise(LennardJones(), **options)


class TestChoiceOfAList:
    """With and without a list, chosen from the number of particles."""

    @pytest.fixture(autouse=True)
    def _as_users_have_it(self, small_systems_keep_lists, monkeypatch):
        monkeypatch.setattr(_pairwise, "ALL_PAIRS_UP_TO", 200)

    @pytest.mark.parametrize(
        ("n", "options", "keeps_list"),
        [
            (5, {}, False),
            (6, {}, True),
            (5, {"skin": 0.2}, True),
            (5, {"capacity": 120}, True),
            (5, {"exclude": [[0, 1]]}, True),
            (5, {"use_neighbor_list": True}, True),
            (6, {"use_neighbor_list": False}, False),
        ],
    )
    def test_few_particles_go_without(self, n, options, keeps_list):
        force = Pairwise(LennardJones(), 2.2, **options)
        sim = Simulation(VelocityVerlet(force), 0.001)
        cache = init(sim, liquid(n=n)).aux[1][0]
        assert isinstance(cache.neighbors, NeighborList) == keeps_list

    def test_the_force_is_the_same(self):
        atoms = liquid(n=5)
        found, want = (
            Pairwise(LennardJones(), 2.2, use_neighbor_list=use).force(make_clock(), atoms)
            for use in (None, True)
        )
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-11)


def test_without_a_list_a_box_that_shrinks_is_noticed():
    force = Pairwise(LennardJones(), 1.3, use_neighbor_list=False)
    atoms = liquid(n=3)
    cache = force.init(atoms)
    small = atoms.replace(space=Box.cube(2.5))
    forces, cache = force(make_clock(), small, cache)
    assert np.all(np.isnan(forces))
    assert Fault.CUTOFF in collect_faults(cache).faults()
    with pytest.raises(CutoffError, match="image limit"):
        force.init(small)


def test_without_a_list_a_run_is_the_same():
    atoms = liquid(n=4)
    run = lambda **options: simulate(
        Simulation(VelocityVerlet(Pairwise(LennardJones(), 1.9, **options)), 0.004), atoms, 40
    )
    found, want = run(use_neighbor_list=False), run(skin=0.2)
    found.health.check()
    np.testing.assert_allclose(found.state.position, want.state.position, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_without_a_list_reversible_needs_no_exact_sums():
    force = Pairwise(LennardJones(), 1.9, use_neighbor_list=False)
    sim = Simulation(VelocityVerlet(force), 0.004, adjoint=Reversible())
    assert reversibility_report(sim, liquid(n=4), 40).bitwise
    with pytest.raises(NotReversible, match="exact=True"):
        reversibility_report(
            Simulation(VelocityVerlet(Pairwise(LennardJones(), 1.9)), 0.004), liquid(n=4), 40
        )
