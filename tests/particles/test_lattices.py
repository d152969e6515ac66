"""Lattices: neighbors at the right distances, densities, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError, ShapeError
from physkit.particles import Particles, lattice

from .distances import nearest_image_distances

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


@pytest.mark.parametrize("name", KINDS)
def test_nearest_neighbors(name):
    d, sites, neighbors, distance = KINDS[name]
    position, box = getattr(lattice, name)(3, spacing=1.7)
    assert position.shape == (sites * 3**d, d)
    r = nearest_image_distances(position, box)
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


def test_lattice_makes_particles(dtype):
    position, box = lattice.body_centered_cubic(2, spacing=jnp.asarray(1.1, dtype))
    particles = Particles(position, space=box)
    assert particles.position.dtype == dtype
    assert particles.space.lengths.dtype == dtype
