"""Pairwise forces: energy, virial and derivatives agree; lists, exactness and faults do as promised."""

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
from physkit.geometry import Box, Free, Triclinic
from physkit.integrators import VelocityVerlet
from physkit.particles import Particles
from physkit.particles.forces import Coulomb, LennardJones, Pairwise, Yukawa
from physkit.particles.forces.pairs import _pairwise
from physkit.particles.neighbors import NeighborList
from physkit.simulate import Reversible, Simulation, init, reversibility_report, simulate

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_energy_is_the_sum_over_pairs[Lennard-Jones]",
    "test_energy_is_the_sum_over_pairs[every pair]",
    "test_force_is_minus_its_gradient[unlisted]",
    "test_virial_is_the_derivative_by_strain[free]",
    "test_excluded_pairs_do_not_interact",
    "test_numbering_does_not_matter[float64]",
    "test_missing_charges_or_species_are_refused[force2-extra2-has species 2]",
    "test_few_particles_go_without[5-options0-False]",
    "test_few_particles_go_without[5-options2-True]",
    "test_the_force_is_the_same",
)


@pytest.fixture(autouse=True)
def _small_systems_keep_lists(monkeypatch):
    """Systems small enough for a test would go without."""
    monkeypatch.setattr(_pairwise, "ALL_PAIRS_UP_TO", 0)


TABLE = LennardJones(jnp.array([[1.0, 0.7], [0.7, 0.4]]), jnp.array([[1.0, 0.9], [0.9, 0.8]]))


def _liquid(dtype=float, n=5, seed=1, spacing=1.12, space=None, **kwargs):
    generator = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3) * spacing
    position = grid + generator.normal(0, 0.05, grid.shape)
    velocity = generator.normal(0, 1, grid.shape)
    space = Box.cube(spacing * n) if space is None else space
    as_array = lambda x: jnp.asarray(x, dtype)
    return Particles(as_array(position), as_array(velocity), space=space, **kwargs)


def _clock(dt=0.0, dtype=float):
    return Clock.at(StepCount.of(0), jnp.zeros((), dtype), jnp.asarray(dt, dtype))


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


CHARGES = jnp.asarray(np.random.default_rng(5).normal(size=125))
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
        particles = _liquid(**extra)
        energy = force.energy(_clock(), particles)
        np.testing.assert_allclose(energy, _energy_of_all_pairs(force, particles), rtol=1e-12)

    def test_force_is_minus_its_gradient(self, name):
        force, extra = CASES[name]
        particles = _liquid(**extra)
        got, _ = force(_clock(), particles, force.init(particles))
        slope = jax.jit(
            jax.grad(lambda x: _energy_of_all_pairs(force, particles.replace(position=x)))
        )
        atol = 1e-9 if force.exact else 1e-11
        np.testing.assert_allclose(got, -slope(particles.position), rtol=1e-9, atol=atol)

    def test_virial_is_the_derivative_by_strain(self, name):
        force, extra = CASES[name]
        particles = _liquid(**extra)
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

        got = force.virial(_clock(), particles)
        np.testing.assert_allclose(got, -jax.jit(jax.grad(strained))(jnp.zeros((3, 3))), atol=1e-9)


def test_trace_of_the_virial_is_the_derivative_by_volume():
    force, particles = Pairwise(LennardJones(), 2.2), _liquid()

    def energy(scale):
        space = Box(scale * particles.space.lengths)
        return force.energy(
            _clock(), particles.replace(position=scale * particles.position, space=space), cache
        )

    cache = force.init(particles)
    trace = jnp.trace(force.virial(_clock(), particles, cache))
    np.testing.assert_allclose(trace, -jax.jit(jax.grad(energy))(1.0), rtol=1e-10)


def test_derivatives_reach_positions_charges_box_and_parameters():
    particles = _liquid(charge=CHARGES)
    force = Pairwise(Yukawa(), 2.4)
    cache = force.init(particles)
    weight = jnp.asarray(np.random.default_rng(2).normal(size=(125, 3)))

    def loss(force, position, charge, lengths):
        state = particles.replace(position=position, charge=charge, space=Box(lengths))
        return jnp.sum(weight * force(_clock(), state, cache)[0])

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
    particles = _liquid(**extra)
    cache = force.init(particles)

    def loss(force, position, charge):
        state = particles.replace(position=position, charge=charge)
        return jnp.sum(force(_clock(), state, cache)[0] ** 2)

    arguments = force, particles.position, particles.charge
    slope = jax.grad(loss, (0, 1, 2), allow_int=True)
    assert "stablehlo.scatter" not in jax.jit(slope).lower(*arguments).as_text()


def test_tail_corrections_are_added_once():
    particles = _liquid()
    plain = Pairwise(LennardJones(), 2.2, truncation="plain")
    whole = Pairwise(LennardJones(), 2.2, truncation="plain", tail=True)
    density = particles.num_particles / particles.space.volume
    # ∫ of 4(r⁻¹² − r⁻⁶) beyond the cutoff
    tail = 8 / 3 * np.pi * density * particles.num_particles * (2.2**-9 / 3 - 2.2**-3)
    got = whole.energy(_clock(), particles) - plain.energy(_clock(), particles)
    np.testing.assert_allclose(got, tail, rtol=1e-10)
    more = whole.virial(_clock(), particles) - plain.virial(_clock(), particles)
    trace = 16 * np.pi * density * particles.num_particles * (2 * 2.2**-9 / 3 - 2.2**-3)
    np.testing.assert_allclose(more, trace / 3 * np.eye(3), rtol=1e-9, atol=1e-9)


def test_excluded_pairs_do_not_interact():
    particles = Particles([[0.0, 0, 0], [1, 0, 0], [2.1, 0, 0]], space=Box.cube(9.0))
    force = Pairwise(LennardJones(), 2.5, truncation="plain", exclude=np.array([(0, 1)]))
    u = lambda r: 4 * (r**-12 - r**-6)
    np.testing.assert_allclose(force.energy(_clock(), particles), u(2.1) + u(1.1), rtol=1e-12)


def _trajectory(force, particles, steps=60, dt=0.005):
    """Position, velocity and carried values after some steps of velocity Verlet."""
    verlet = VelocityVerlet(force)
    clock = _clock(dt, particles.position.dtype)

    def run(state):
        aux = verlet.init(None, clock, state)
        step = lambda carry, _: (verlet.step(None, clock, *carry), None)
        return jax.lax.scan(step, (state, aux), None, length=steps)[0]

    return run(particles)


def _bitwise_equal(a, b):
    return np.array_equal(a.position, b.position) and np.array_equal(a.velocity, b.velocity)


class TestExact:
    """One trajectory to the bit, whatever the list, the batch and the numbering."""

    @pytest.fixture(scope="class")
    def reference(self):
        out = {}
        for dtype in (jnp.float32, jnp.float64):
            force = Pairwise(LennardJones(dtype(1), dtype(1)), 2.2, 0.3, exact=True)
            state, (_, caches) = jax.jit(lambda p, f=force: _trajectory(f, p))(_liquid(dtype))
            assert caches[0].neighbors.num_rebuilds > 0
            assert collect_faults(caches).bits == 0
            out[jnp.dtype(dtype)] = state
        return out

    @pytest.mark.parametrize("options", [{"skin": 0.1}, {"skin": 0.5}, {"capacity": 77}], ids=str)
    def test_skin_and_capacity_do_not_matter(self, reference, dtype, options):
        potential = LennardJones(dtype.type(1), dtype.type(1))
        force = Pairwise(potential, 2.2, **{"skin": 0.3, **options}, exact=True)
        state, _ = jax.jit(lambda p: _trajectory(force, p))(_liquid(dtype))
        assert _bitwise_equal(state, reference[dtype])

    def test_other_members_of_a_batch_do_not_matter(self, reference, dtype):
        force = Pairwise(LennardJones(dtype.type(1), dtype.type(1)), 2.2, 0.3, exact=True)
        members = [_liquid(dtype), _liquid(dtype, seed=7), _liquid(dtype, seed=8)]
        batch = jax.tree.map(lambda *x: jnp.stack(x), *members)
        state, _ = jax.jit(jax.vmap(lambda p: _trajectory(force, p)))(batch)
        assert _bitwise_equal(jax.tree.map(lambda x: x[0], state), reference[dtype])

    def test_numbering_does_not_matter(self, dtype):
        force = Pairwise(LennardJones(dtype.type(1), dtype.type(1)), 2.2, 0.3, exact=True)
        order = np.random.default_rng(0).permutation(125)
        particles = _liquid(dtype)
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
            ends.append(jax.jit(lambda p, f=force: _trajectory(f, p))(_liquid(dtype))[0])
        assert not _bitwise_equal(*ends)

    def test_total_force_is_zero_to_the_bit(self):
        particles = _liquid()
        # So coarse a quantum that the sums fit into the significand: then the force is the sum.
        force = Pairwise(LennardJones(), 2.2, exact=True, quantum=2.0**-36)
        cache = force.init(particles)
        forces, _ = force(_clock(), particles, cache)
        counts = np.asarray(forces / cache.quantum)
        assert np.array_equal(counts, np.round(counts))
        assert np.all(counts.astype(np.int64).sum(axis=0) == 0)

    def test_quantum_is_a_power_of_two_and_can_be_given(self):
        particles = _liquid()
        force = Pairwise(LennardJones(), 2.2, exact=True, quantum=1e-6)
        assert force.init(particles).quantum == 2.0**-19
        own = float(Pairwise(LennardJones(), 2.2, exact=True).init(particles).quantum)
        assert np.log2(own) == round(np.log2(own))

    def test_leaving_the_range_is_a_fault(self):
        particles = _liquid(jnp.float32)
        potential = LennardJones(jnp.float32(1), jnp.float32(1))
        force = Pairwise(potential, 2.2, exact=True, quantum=jnp.float32(2.0**-50))
        forces, cache = force(_clock(), particles, force.init(particles))
        assert int(cache.faults.bits) & Fault.EXACT_SUM_RANGE
        assert np.any(np.isnan(forces))


class TestFaults:
    def test_initial_overlap_is_a_fault(self):
        particles = Particles([[1.0, 1, 1], [1, 1, 1], [3, 3, 3]], space=Box.cube(9.0))
        force = Pairwise(LennardJones(), 2.5)
        cache = force.init(particles)
        assert int(cache.faults.bits) & Fault.OVERLAP
        forces, _ = force(_clock(), particles, cache)
        assert not np.all(np.isfinite(forces[:2]))

    def test_overflow_poisons(self):
        particles = _liquid()
        force = Pairwise(LennardJones(), 2.2, capacity=8)
        cache = force.init(particles)
        forces, cache = force(_clock(), particles, cache)
        assert np.all(np.isnan(forces))
        assert np.isnan(force.energy(_clock(), particles, cache))
        assert int(collect_faults(cache).bits) & Fault.OVERFLOW

    def test_no_cutoff_in_a_periodic_box(self):
        with pytest.raises(CutoffError, match="infinitely many images"):
            Pairwise(Coulomb()).init(_liquid(charge=CHARGES))

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
            force.init(_liquid(**extra))

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
    def _as_users_have_it(self, monkeypatch):
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
        cache = init(sim, _liquid(n=n)).aux[1][0]
        assert isinstance(cache.neighbors, NeighborList) == keeps_list

    def test_the_force_is_the_same(self):
        atoms = _liquid(n=5)
        found, want = (
            Pairwise(LennardJones(), 2.2, use_neighbor_list=use).force(_clock(), atoms)
            for use in (None, True)
        )
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-11)


def test_without_a_list_a_box_that_shrinks_is_noticed():
    force = Pairwise(LennardJones(), 1.3, use_neighbor_list=False)
    atoms = _liquid(n=3)
    cache = force.init(atoms)
    small = atoms.replace(space=Box.cube(2.5))
    forces, cache = force(_clock(), small, cache)
    assert np.all(np.isnan(forces))
    assert Fault.CUTOFF in collect_faults(cache).faults()
    with pytest.raises(CutoffError, match="image limit"):
        force.init(small)


def test_without_a_list_a_run_is_the_same():
    atoms = _liquid(n=4)
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
    assert reversibility_report(sim, _liquid(n=4), 40).bitwise
    with pytest.raises(NotReversible, match="exact=True"):
        reversibility_report(
            Simulation(VelocityVerlet(Pairwise(LennardJones(), 1.9)), 0.004), _liquid(n=4), 40
        )


def test_changing_a_parameter_does_not_recompile():
    particles = _liquid()
    traced = []

    @jax.jit
    def compute_forces(force, cache):
        traced.append(1)
        return force(_clock(), particles, cache)[0]

    cache = Pairwise(LennardJones(), 2.2).init(particles)
    for epsilon in (1.0, 2.0):
        compute_forces(Pairwise(LennardJones(epsilon), 2.2), cache)
    assert len(traced) == 1


def test_a_whole_simulation_is_differentiable():
    particles = _liquid(n=3, spacing=1.3)

    def final(epsilon):
        force = Pairwise(LennardJones(epsilon), 1.7, 0.2)
        state, _ = _trajectory(force, particles, steps=12)
        return jnp.sum(jnp.sin(state.velocity))

    final = jax.jit(final)
    numeric = (final(1.0 + 1e-5) - final(1.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.jit(jax.grad(final))(1.0), numeric, rtol=1e-6)
