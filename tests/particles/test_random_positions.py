"""Random positions: distances kept, reproducible by key, uniform; impossible requests are refused."""

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError
from physkit.geometry import Box, Free, Triclinic
from physkit.particles import random_positions

from .distances import nearest_image_distances

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
def test_keep_their_distance(space, count, gap, key):
    x = random_positions(key, count, space, distance=gap)
    assert x.shape == (count, space.cell(x.shape[1]).shape[0])
    np.testing.assert_allclose(space.wrap(x), x, atol=1e-12)
    r = nearest_image_distances(x, space)
    open_axes = [k for k, p in enumerate(space.periodic_axes(x.shape[1])) if not p]
    if open_axes:  # the helper repeats every axis: compare pairs across open ones directly
        d = space.displacement(x[:, None], x[None])
        r = np.array(jnp.linalg.norm(d, axis=-1))
        np.fill_diagonal(r, np.inf)
    assert r.min() >= gap


def test_repeat_and_differ(key):
    box = Box([5.0, 5.0])
    first = random_positions(key, 20, box, distance=0.5)
    np.testing.assert_array_equal(first, random_positions(key, 20, box, distance=0.5))
    assert not np.array_equal(first, random_positions(7, 20, box, distance=0.5))
    np.testing.assert_array_equal(random_positions(7, 5, box), random_positions(7, 5, box))


def test_are_uniform():
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
def test_impossible_requests_are_refused(act, words):
    with pytest.raises(ParameterError, match=words):
        act()
