"""Lattices: neighbors at the right distances, densities, derivatives; random placement."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError, ShapeError
from physkit.geometry import Box, Free, Triclinic
from physkit.particles import Particles, lattice, random_positions

KINDS = {  # name: (dimension, sites per cell, nearest neighbors, their distance / spacing)
    "chain": (1, 1, 2, 1.0),
    "square": (2, 1, 4, 1.0),
    "triangular": (2, 2, 6, 1.0),
    "simple_cubic": (3, 1, 6, 1.0),
    "body_centered_cubic": (3, 2, 8, np.sqrt(3) / 2),
    "face_centered_cubic": (3, 4, 12, np.sqrt(0.5)),
    "diamond": (3, 8, 4, np.sqrt(3) / 4),
    "hexagonal": (3, 4, 12, 1.0),
}


def distances(position, box):
    x = np.asarray(position)
    d = x[:, None] - x[None]
    cell = np.asarray(box.cell(x.shape[1]))
    f = d @ np.linalg.inv(cell)
    shifts = np.stack(np.meshgrid(*[[-1, 0, 1]] * x.shape[1], indexing="ij"), -1)
    shifts = shifts.reshape(-1, x.shape[1])
    r = np.linalg.norm((f[:, :, None] - np.round(f)[:, :, None] + shifts) @ cell, axis=-1)
    r = r.min(axis=-1)
    np.fill_diagonal(r, np.inf)
    return r


@pytest.mark.parametrize("name", KINDS)
def test_nearest_neighbors(name):
    d, sites, neighbors, distance = KINDS[name]
    position, box = getattr(lattice, name)(3, spacing=1.7)
    assert position.shape == (sites * 3**d, d)
    r = distances(position, box)
    np.testing.assert_allclose(r.min(axis=1), 1.7 * distance, rtol=1e-12)
    assert np.all(np.sum(r < 1.7 * distance * 1.001, axis=1) == neighbors)
    np.testing.assert_array_less(position, np.broadcast_to(box.lengths, position.shape))
    np.testing.assert_array_equal(position[0], 0)


@pytest.mark.parametrize("name", KINDS)
def test_density(name):
    d = KINDS[name][0]
    cells = (2, 3, 4)[:d]
    make = getattr(lattice, name)
    position, box = make(cells, density=0.8442)
    np.testing.assert_allclose(len(position) / box.volume, 0.8442, rtol=1e-12)
    same, _ = make(cells, spacing=box.lengths[0] / 2)
    np.testing.assert_allclose(position, same, rtol=1e-12)


def test_hexagonal_ratio():
    _, box = lattice.hexagonal(2, spacing=1.0, ratio=1.856)
    np.testing.assert_allclose(box.lengths, [2, 2 * np.sqrt(3), 2 * 1.856])


def test_volume_is_differentiable_by_density():
    volume = lambda rho: lattice.face_centered_cubic(2, density=rho)[1].volume
    np.testing.assert_allclose(jax.jit(jax.grad(volume))(0.8), -32 / 0.8**2, rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: lattice.simple_cubic((2, 2), 1.0), ShapeError, r"\(2, 2\)"),
        (lambda: lattice.simple_cubic((2, 2, 0), 1.0), ShapeError, "positive whole"),
        (lambda: lattice.simple_cubic(2), ParameterError, "either"),
        (lambda: lattice.simple_cubic(2, 1.0, density=1.0), ParameterError, "either"),
        (lambda: lattice.simple_cubic(2, -1.0), ParameterError, "spacing"),
        (lambda: lattice.chain(2, density=0.0), ParameterError, "density"),
        (lambda: lattice.hexagonal(2, 1.0, ratio=-1.0), ParameterError, "ratio"),
    ],
)
def test_bad_lattice(build, error, words):
    with pytest.raises(error, match=words):
        build()


TILTED = Triclinic([[6.0, 0, 0], [2.9, 5.0, 0], [-2.0, 1.5, 5.5]])


@pytest.mark.parametrize(
    ("space", "count", "gap"),
    [
        (Box([8.0, 9.0, 7.0]), 200, 1.0),
        (Box([8.0, 2.0, 7.0], periodic=(True, False, True)), 40, 1.1),
        (Box([12.0, 10.0]), 70, 1.0),
        (Box([30.0]), 15, 1.0),
        (TILTED, 90, 1.0),
        (Box([1.3, 20.0, 1.3]), 10, 1.2),
    ],
)
def test_random_positions_keep_their_distance(space, count, gap, key):
    x = random_positions(key, count, space, distance=gap)
    assert x.shape == (count, space.cell(x.shape[1]).shape[0])
    np.testing.assert_allclose(space.wrap(x), x, atol=1e-12)
    r = distances(x, space)
    open_axes = [k for k, p in enumerate(space.periodic_axes(x.shape[1])) if not p]
    if open_axes:  # the helper repeats every axis: compare pairs across open ones directly
        d = space.displacement(x[:, None], x[None])
        r = np.array(jnp.linalg.norm(d, axis=-1))
        np.fill_diagonal(r, np.inf)
    assert r.min() >= gap


def test_random_positions_repeat_and_differ(key):
    box = Box([5.0, 5.0])
    first = random_positions(key, 20, box, distance=0.5)
    np.testing.assert_array_equal(first, random_positions(key, 20, box, distance=0.5))
    assert not np.array_equal(first, random_positions(7, 20, box, distance=0.5))
    np.testing.assert_array_equal(random_positions(7, 5, box), random_positions(7, 5, box))


def test_random_positions_are_uniform():
    x = np.asarray(random_positions(0, 4000, Box([2.0, 4.0]), distance=0.005))
    counts = np.histogram(x[:, 1], bins=8, range=(0, 4))[0]
    assert np.sum((counts - 500) ** 2 / 500) < 24.3  # χ² with 7 degrees, p = 0.001


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: random_positions(0, 60, Box([4.0, 4.0, 4.0]), distance=1.2), "out of reach"),
        (lambda: random_positions(0, 1, Box([0.5, 4.0]), distance=1.0), "its image"),
        (lambda: random_positions(0, 5, Free()), "need a cell"),
        (lambda: random_positions(0, 5, Box([4.0]), distance=-1.0), "negative"),
    ],
)
def test_random_positions_out_of_reach(act, words):
    with pytest.raises(ParameterError, match=words):
        act()


def test_lattice_makes_particles(dtype):
    position, box = lattice.body_centered_cubic(2, spacing=jnp.asarray(1.1, dtype))
    particles = Particles(position, space=box)
    assert particles.position.dtype == dtype
    assert particles.space.lengths.dtype == dtype
