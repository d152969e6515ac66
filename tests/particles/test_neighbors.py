"""Neighbor lists hold the pairs that a search over all pairs finds, and know when they do not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    CapacityError,
    CutoffError,
    Fault,
    cast_floats,
    find_growables,
    grow_caches,
    has_overflow,
)
from physkit.geometry import Box, Free, Triclinic
from physkit.particles import Particles
from physkit.particles.neighbors import Cells, neighbor_list
from physkit.particles.neighbors._cells import plan_cells
from physkit.particles.neighbors._search import search

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_finds_all_pairs_and_no_others[float32-line]",
    "test_finds_all_pairs_and_no_others[float32-cube]",
    "test_finds_all_pairs_and_no_others[float32-two cells across]",
    "test_finds_all_pairs_and_no_others[float32-tilted, few cells]",
    "test_finds_all_pairs_and_no_others[float64-square]",
    "test_finds_all_pairs_and_no_others[float64-cube]",
    "test_finds_all_pairs_and_no_others[float64-slab]",
    "test_finds_all_pairs_and_no_others[float64-free, one layer]",
    "test_other_platforms_find_the_same_without_loops[crowded cells]",
    "test_other_platforms_find_the_same_without_loops[two cells across]",
    "test_capacity_is_measured_where_numbers_are_visible",
    "test_rebuilds_after_half_the_skin[0.1-0-False]",
    "test_rebuilds_after_half_the_skin[1.3-1-True]",
    "test_rebuilds_when_the_box_changes_size[1.01-0]",
    "test_rebuilds_when_the_box_changes_size[0.92-1]",
    "test_full_rows_are_reported_and_grow",
    "test_full_cells_are_reported_and_grow",
    "test_rows_and_cells_are_both_found_as_growable",
    "test_a_long_skin_has_an_error_of_its_own",
    "test_a_long_cutoff_inside_a_trace_is_a_fault_and_poisons",
    "test_many_traced_particles_need_a_capacity",
    "test_excluded_pairs_are_left_out",
)

TILTED = [[9.0, 0.0, 0.0], [4.4, 8.0, 0.0], [-3.0, 3.9, 9.5]]

# space, extent that particles fill, radius, cells (None: as planned), slots
SPACES = {
    "line": (Box([40.0]), [40.0], 1.7, None, None),
    "open line": (Box([40.0], False), [40.0], 1.7, None, None),
    "square": (Box([12.0, 9.0]), [12.0, 9.0], 1.3, (9, 6), 24),
    "strip": (Box([12.0, 9.0], (True, False)), [12.0, 9.0], 1.3, (9, 6), 24),
    "cube": (Box([9.0, 8.0, 10.0]), [9.0, 8.0, 10.0], 2.0, (4, 4, 5), 40),
    "crowded cells": (Box([9.0, 9.0, 9.0]), [9.0, 9.0, 9.0], 2.5, (3, 3, 3), 72),
    "two cells across": (Box([9.0, 5.0, 9.0]), [9.0, 5.0, 9.0], 2.2, (4, 2, 1), 120),
    "one cell": (Box([5.0, 5.0, 5.0]), [5.0, 5.0, 5.0], 2.4, (1, 1, 1), 304),
    "slab": (Box([9.0, 9.0, 9.0], (True, True, False)), [9.0, 9.0, 12.0], 1.9, (4, 4, 2), 64),
    "free": (Free(), [9.0, 9.0, 9.0], 1.9, (4, 4, 4), 40),
    "free, one layer": (Free(), [9.0, 9.0, 0.0], 1.9, (4, 4, 1), 72),
    "tilted": (Triclinic(TILTED), [9.0, 9.0, 9.0], 1.9, (3, 3, 3), 48),
    "tilted, few cells": (Triclinic(TILTED), [9.0, 9.0, 9.0], 3.3, (2, 2, 2), 120),
    "sheared plane": (Triclinic([[9.0, 0.0], [5.0, 8.0]]), [9.0, 9.0], 1.4, (5, 5), 40),
}


def _random_positions(extent, n=300, seed=0):
    generator = np.random.default_rng(seed)
    return generator.uniform(-0.5, 1.5, (n, len(extent))) * np.array(extent)


def _close_pairs(position, space, radius):
    """Every pair within `radius`, by brute force."""
    distance = jax.vmap(lambda a: jax.vmap(lambda b: space.displacement(a, b))(position))(position)
    close = np.array(jnp.sum(distance**2, axis=-1) < radius**2)
    np.fill_diagonal(close, False)
    return close


def _as_matrix(index, order):
    n = len(order)
    close = np.zeros((n, n + 1), bool)
    close[np.asarray(order)[:, None], np.append(order, n)[np.asarray(index)]] = True
    return close[:, :n]


@pytest.mark.parametrize("name", SPACES)
def test_finds_all_pairs_and_no_others(name, dtype):
    space, extent, radius, shape, slots = SPACES[name]
    particles = Particles(jnp.asarray(_random_positions(extent), dtype), space=space)
    position, space = particles.position, particles.space
    cells = plan_cells(position, space, radius) if shape is None else Cells.of(shape, slots)
    assert shape is not None or cells.num_cells > 4
    found = jax.jit(lambda x: search(x, space, radius, cells, 299))(position)
    assert found.max_occupancy <= cells.slots
    assert not found.is_too_narrow
    listed = _as_matrix(found.index, found.order)
    assert np.all(listed >= _close_pairs(position, space, radius))
    assert np.all(listed <= _close_pairs(position, space, radius * (1 + 1e-4))), "up to rounding"
    assert int(found.max_neighbors) == listed.sum(axis=1).max()
    assert np.array_equal(
        np.asarray(found.order)[np.asarray(found.row_of_particle)], np.arange(300)
    )
    rows = np.asarray(found.index)
    assert np.all((np.diff(rows, axis=1) > 0) | (rows[:, 1:] == 300)), "rows are sorted"


@pytest.mark.parametrize("name", SPACES)
def test_other_platforms_find_the_same_without_loops(name, monkeypatch):
    space, extent, radius, shape, slots = SPACES[name]
    position = jnp.asarray(_random_positions(extent), jnp.float32)
    space = cast_floats(space, jnp.float32)
    cells = plan_cells(position, space, radius) if shape is None else Cells.of(shape, slots)

    def build(position, capacity=24):  # short: rows are cut where there are more
        return search(position, space, radius, cells, capacity)

    with_native_code = jax.jit(build)(position)
    monkeypatch.setenv("PHYSKIT_NATIVE", "0")

    def build_by_xla(position):
        return build(position)

    traced = jax.jit(build_by_xla).trace(position)
    # Loops would be launches: as many as neighboring cells, and as many again as entries of a row.
    assert "stablehlo.while" not in traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo.while" in traced.lower(lowering_platforms=("cpu",)).as_text()
    expected = jax.jit(build_by_xla)(position)
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *args, cpu, default: default(*args))
    elsewhere = jax.jit(lambda position: build(position))(position)
    for found in (with_native_code, elsewhere):
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            assert np.array_equal(a, b)


def _liquid(n=6, seed=1, **kwargs):
    """A disturbed simple cubic lattice of spacing 1.1."""
    grid = np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3) * 1.1
    noise = np.random.default_rng(seed).normal(0, 0.08, grid.shape)
    return Particles(jnp.asarray(grid + noise), space=Box.cube(1.1 * n), **kwargs)


def test_capacity_is_measured_where_numbers_are_visible():
    particles = _liquid()
    neighbors = neighbor_list(particles, 2.0, 0.3)
    need = _close_pairs(particles.position, particles.space, 2.3).sum(axis=1).max()
    assert int(neighbors.pairs.required) == need
    assert need < neighbors.pairs.capacity < 1.35 * need + 8
    assert neighbors.pairs.capacity % 8 == 0
    assert neighbors.is_complete


def test_a_single_particle_has_an_empty_list():
    assert neighbor_list(Particles([[0.0, 0.0]]), 1.0).pairs.required == 0


@pytest.mark.parametrize(
    ("shift", "rebuilt", "leapt"), [(0.1, 0, False), (0.2, 1, False), (1.3, 1, True)]
)
def test_rebuilds_after_half_the_skin(shift, rebuilt, leapt):
    particles = _liquid()
    neighbors = neighbor_list(particles, 2.0, 0.3)
    moved = particles.replace(position=particles.position.at[7, 1].add(shift))
    new = jax.jit(lambda m, p: m.update(p))(neighbors, moved)
    assert new.num_rebuilds == rebuilt
    assert ((int(new.faults.bits) & Fault.DISPLACEMENT) != 0) == leapt
    close = _close_pairs(moved.position, moved.space, 2.0)
    assert np.all(_as_matrix(new.pairs.index, new.pairs.order) >= close), "no pair is missing"


def test_crossing_the_boundary_does_not_rebuild():
    particles = _liquid()
    neighbors = neighbor_list(particles, 2.0, 0.3)
    folded = particles.replace(position=particles.space.wrap(particles.position + 1e-3))
    assert neighbors.update(folded).num_rebuilds == 0


@pytest.mark.parametrize(("scale", "rebuilt"), [(1.01, 0), (0.99, 0), (0.92, 1)])
def test_rebuilds_when_the_box_changes_size(scale, rebuilt):
    particles = _liquid()
    neighbors = neighbor_list(particles, 2.0, 0.3, capacity=96)
    box = Box(scale * particles.space.lengths)
    squeezed = particles.replace(position=scale * particles.position, space=box)
    new = neighbors.update(squeezed)
    assert new.num_rebuilds == rebuilt
    close = _close_pairs(squeezed.position, box, 2.0)
    assert np.all(_as_matrix(new.pairs.index, new.pairs.order) >= close)


def test_a_batch_has_one_branch_and_ignores_members_that_are_not_finite():
    particles = _liquid(3)
    neighbors = neighbor_list(particles, 1.2, 0.3)
    shifts = jnp.array([0.0, 0.05, jnp.nan])

    def one(s):
        return neighbors.update(particles.replace(position=particles.position + s)).num_rebuilds

    updated = jax.jit(jax.vmap(one))
    assert np.array_equal(updated(shifts), [0, 0, 0])
    assert np.array_equal(updated(shifts.at[1].set(0.2)), [1, 1, 1])
    # Nor is it a selection, for which both branches would be computed.
    assert "stablehlo.case" in updated.lower(shifts).as_text()


class TestOverflow:
    def test_full_rows_are_reported_and_grow(self):
        particles = _liquid()
        neighbors = neighbor_list(particles, 2.0, 0.3, capacity=16)
        need = _close_pairs(particles.position, particles.space, 2.3).sum(axis=1).max()
        assert not neighbors.is_complete
        assert has_overflow(neighbors)
        assert int(neighbors.pairs.required) == need
        grown, events = grow_caches(neighbors, neighbors)
        assert len(events) == 1
        assert grown.is_complete
        mended = grown.update(particles)
        assert mended.num_rebuilds == 1
        close = _close_pairs(particles.position, particles.space, 2.3)
        assert np.array_equal(_as_matrix(mended.pairs.index, mended.pairs.order), close)

    def test_growing_a_complete_list_does_not_rebuild_it(self):
        particles = _liquid()
        neighbors = neighbor_list(particles, 2.0, 0.3)
        wide = neighbors.pairs.grow_to(80)
        assert wide.capacity == 80
        assert not wide.stale
        assert np.all(wide.index[:, neighbors.pairs.capacity :] == particles.num_particles)

    def test_full_cells_are_reported_and_grow(self):
        particles = _liquid(8)
        neighbors = neighbor_list(particles, 1.5, 0.2)
        cramped = Cells.of((5, 5, 5), 3)
        found = jax.jit(lambda x: search(x, particles.space, 1.7, cramped, 64))(particles.position)
        assert found.max_occupancy > 3
        assert cramped.grow_to(int(found.max_occupancy)).slots >= found.max_occupancy
        assert neighbors.cells.required <= neighbors.cells.slots

    def test_cells_that_became_too_narrow_get_coarser(self):
        particles = _liquid(9)
        neighbors = neighbor_list(particles, 1.5, 0.4, capacity=96)
        neighbors = eqx.tree_at(
            lambda neighbors: neighbors.cells, neighbors, Cells.of((5, 5, 5), 32)
        )
        box = Box(0.8 * particles.space.lengths)
        squeezed = particles.replace(position=0.8 * particles.position, space=box)
        new = neighbors.update(squeezed)
        assert not new.is_complete
        grown, _ = grow_caches(neighbors, new)
        for _ in range(3):
            new = grown.update(squeezed)
            if new.is_complete:
                break
            grown, _ = grow_caches(grown, new)
        assert new.is_complete
        close = _close_pairs(squeezed.position, box, 1.9)
        assert np.array_equal(_as_matrix(new.pairs.index, new.pairs.order), close)

    def test_rows_and_cells_are_both_found_as_growable(self):
        assert len(find_growables(neighbor_list(_liquid(), 2.0))) == 2


class TestImageLimit:
    def test_a_long_cutoff_is_refused_by_name(self):
        with pytest.raises(CutoffError, match=r"image limit 3\.3 of this Box"):
            neighbor_list(_liquid(), 3.4)

    def test_a_long_skin_has_an_error_of_its_own(self):
        with pytest.raises(CutoffError, match=r"skin of at most 0\.3"):
            neighbor_list(_liquid(), 3.0, 0.4)

    def test_a_skin_left_out_fits_the_box(self):
        neighbors = neighbor_list(_liquid(), 3.2)
        assert 0.09 < neighbors.skin <= 0.1
        assert neighbors.faults.bits == 0

    def test_a_long_cutoff_inside_a_trace_is_a_fault_and_poisons(self):
        particles = _liquid()

        @jax.jit
        def faults_and_completeness(lengths):
            new = neighbor_list(particles.replace(space=Box(lengths)), 3.0, 0.2)
            return new.faults.bits, new.is_complete

        assert faults_and_completeness(jnp.full(3, 6.6)) == (0, True)
        # Of the skin there is as much as the box allows.
        assert faults_and_completeness(jnp.full(3, 6.3)) == (0, True)
        bits, is_complete = faults_and_completeness(jnp.full(3, 5.9))
        assert bits == Fault.CUTOFF
        assert not is_complete


def test_few_traced_particles_get_the_full_capacity():
    particles = _liquid(3)
    neighbors = jax.jit(lambda p: neighbor_list(p, 1.2, 0.3))(particles)
    assert neighbors.pairs.capacity == particles.num_particles - 1
    close = _close_pairs(particles.position, particles.space, 1.5)
    assert np.array_equal(_as_matrix(neighbors.pairs.index, neighbors.pairs.order), close)


def test_many_traced_particles_need_a_capacity():
    particles = _liquid(11)
    with pytest.raises(CapacityError, match=r"call pk\.init"):
        jax.jit(lambda p: neighbor_list(p, 1.2))(particles)
    neighbors = jax.jit(lambda p: neighbor_list(p, 1.2, 0.1, capacity=24))(particles)
    assert neighbors.is_complete


def test_closed_over_particles_are_concrete_inside_a_trace():
    particles = _liquid(11)

    @jax.jit
    def count():
        neighbors = neighbor_list(particles, 1.2)
        assert neighbors.pairs.capacity < 40
        return neighbors.pairs.required

    assert count() > 0


def test_excluded_pairs_are_left_out():
    particles = _liquid(3)
    n = particles.num_particles
    excluded = np.full((n, 2), n)
    excluded[0], excluded[1, 0], excluded[2, 1] = [1, 2], 0, 0
    neighbors = neighbor_list(particles, 1.5, 0.1, excluded=jnp.asarray(excluded, jnp.int32))
    close = _close_pairs(particles.position, particles.space, 1.6)
    assert close[0, 1]
    close[0, 1] = close[1, 0] = close[0, 2] = close[2, 0] = False
    assert np.array_equal(_as_matrix(neighbors.pairs.index, neighbors.pairs.order), close)
