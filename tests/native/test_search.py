"""Neighbor searches by native code list what searches by bit masks list, entry by entry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import cast_floats
from physkit.geometry import Free
from physkit.particles.neighbors import Cells, _search as search_module
from physkit.particles.neighbors._cells import plan_cells
from physkit.particles.neighbors._search import search
from tests.particles.test_neighbors import SPACES as OTHER_SPACES

N = 240
# A cell beyond the end of an axis of two is the other one, from which nothing may be listed twice.
SPACES = {**OTHER_SPACES, "free, two cells": (Free(), [5.0, 5.0, 5.0], 1.9, (2, 2, 2), 104)}


def _inputs(name, dtype, seed=0):
    space, extent, radius, shape, slots = SPACES[name]
    x = np.random.default_rng(seed).uniform(-0.5, 1.5, (N, len(extent))) * extent
    space, x = cast_floats(space, dtype), jnp.asarray(x, dtype)
    cells = plan_cells(x, space, radius) if shape is None else Cells.of(shape, slots)
    return x, space, radius, cells


def _forbid(*_, **__):
    raise AssertionError("the search is not native")


def _both(monkeypatch, build, *arguments):
    """What `build` finds by native code, and by bit masks."""
    with monkeypatch.context() as context:
        context.setattr(search_module, "search_by_masks", _forbid)
        context.setattr(jax.lax, "platform_dependent", lambda *args, cpu, default: cpu(*args))
        native = jax.jit(lambda *a: build(*a))(*arguments)
    with monkeypatch.context() as context:
        context.setenv("PHYSKIT_NATIVE", "0")
        masks = jax.jit(lambda *a: build(*a))(*arguments)
    return native, masks


def _assert_same(native, masks):
    for (path, a), b in zip(jax.tree.leaves_with_path(native), jax.tree.leaves(masks), strict=True):
        np.testing.assert_array_equal(a, b, str(path))


@pytest.mark.parametrize("name", SPACES)
def test_finds_what_masks_find(name, monkeypatch):
    """With rows that are too short for some particles, some that are no particles, and copies of others'."""
    x, space, radius, cells = _inputs(name, jnp.float32)
    mask = jnp.arange(N) % 7 != 3

    def build(x, space, mask):
        return search(x, space, radius, cells, 5, mask, N // 3)

    native, masks = _both(monkeypatch, build, x, space, mask)
    _assert_same(native, masks)
    assert int(native.max_neighbors) > 5


@pytest.mark.parametrize("name", ["strip", "slab", "two cells across", "tilted"])
def test_finds_all_that_masks_find(name, dtype, monkeypatch):
    x, space, radius, cells = _inputs(name, dtype)
    build = lambda x, space: search(x, space, radius, cells, N - 1)
    _assert_same(*_both(monkeypatch, build, x, space))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_positions_that_are_no_numbers_have_no_neighbors(bad, monkeypatch):
    x, space, radius, cells = _inputs("cube", jnp.float64)
    x = x.at[11].set(bad)
    native, masks = _both(
        monkeypatch, lambda x, space: search(x, space, radius, cells, 60), x, space
    )
    _assert_same(native, masks)
    assert np.all(np.asarray(native.index)[native.row_of_particle[11]] == N)


@pytest.mark.parametrize(("n", "capacity"), [(1, 0), (1, 3), (30, 0), (30, 40)])
def test_few_particles(n, capacity):
    _, space, radius, cells = _inputs("cube", jnp.float32)
    x = jnp.zeros((n, 3), jnp.float32)
    found = jax.jit(lambda x: search(x, space, radius, cells, capacity))(x)
    assert found.index.shape == (n, capacity)
    assert np.all(np.sum(found.index < n, axis=1) == min(n - 1, capacity))
    assert int(found.max_neighbors) == n - 1


def test_members_of_a_batch_are_searched_as_one_by_one():
    _, space, radius, cells = _inputs("cube", jnp.float32)
    more = [_inputs("cube", jnp.float32, seed)[0] for seed in (1, 2, 3)]
    radii = jnp.asarray([1.0, 1.5, radius], jnp.float32)

    def build(x, radius):
        return search(x, space, radius, cells, 60)

    batch = jax.jit(jax.vmap(build))(jnp.stack(more), radii)
    for m in range(3):
        alone = jax.jit(build)(more[m], radii[m])
        _assert_same(jax.tree.map(lambda a, m=m: a[m], batch), alone)
    assert batch.index.shape == (3, N, 60)
    empty = jax.jit(jax.vmap(build))(jnp.zeros((0, N, 3), jnp.float32), radii[:0])
    assert empty.index.shape == (0, N, 60)


def test_a_search_has_no_derivative():
    """But a program around it may have one."""
    x, space, radius, cells = _inputs("cube", jnp.float32)

    def first_distance(x, radius):
        found = search(x, space, radius, cells, 60)
        place = jnp.minimum(found.index[0, 0], N - 1)
        return jnp.sum((x[found.order[0]] - x[found.order[place]]) ** 2)

    slopes = jax.grad(first_distance, (0, 1))(x, jnp.asarray(radius, jnp.float32))
    assert np.count_nonzero(np.any(slopes[0] != 0, axis=1)) == 2
    assert slopes[1] == 0
