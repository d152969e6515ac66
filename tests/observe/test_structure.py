"""g(r) and S(k) against plain NumPy over all pairs of a recorded trajectory."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import CutoffError, ObserverError, ParameterError
from physkit.geometry import Box, Free, Triclinic
from physkit.observe import (
    RadialDistribution,
    StructureFactor,
    shell_average,
    wavevectors_within,
)
from physkit.particles import Particles

from .trajectories import Springs, observe_path, random_walk, snapshot

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_radial_distribution[6-line]",
    "test_radial_distribution[6-box]",
    "test_radial_distribution[7-line]",
    "test_radial_distribution[7-box]",
    "test_radial_distribution_of_species_and_in_float32",
    "test_radial_distribution_of_an_ideal_gas_is_one[line-True]",
    "test_radial_distribution_of_an_ideal_gas_is_one[square-True]",
    "test_radial_distribution_of_an_ideal_gas_is_one[box-True]",
    "test_radial_distribution_of_an_ideal_gas_is_one[tilted-True]",
    "test_smooth_g_is_differentiable",
    "test_g_beyond_the_image_limit_of_a_traced_box_is_nan",
    "test_structure_factor[float32-square]",
    "test_structure_factor[float32-tilted]",
    "test_structure_factor[float64-square]",
    "test_structure_factor[float64-tilted]",
    "test_wavevectors_are_complete_and_unique",
    "test_invalid_structure_factors_are_refused",
)

SPACES = {
    "line": Box([6.0]),
    "square": Box([6.0, 5.0]),
    "box": Box([5.0, 6.0, 7.0]),
    "tilted": Triclinic([[6.0, 0.0, 0.0], [4.0, 6.0, 0.0], [-2.0, 3.0, 6.0]]),
}


def dimension(space):
    return 1 if space is SPACES["line"] else 2 if space is SPACES["square"] else 3


def histogram(path, space, r_max, bins, chosen=None):
    """Pairs per bin and frame, each pair once, over the images of two cells all around."""
    frames, n, d = path.position.shape
    shifts = np.array(list(itertools.product(range(-2, 3), repeat=d))) @ np.asarray(space.cell(d))
    counts = np.zeros((frames, bins))
    i, j = np.tril_indices(n, -1)
    if chosen is not None:
        keep = [{(a, b), (b, a)} & chosen != set() for a, b in zip(i, j, strict=True)]
        i, j = i[keep], j[keep]
    for t, x in enumerate(np.asarray(path.position, float)):
        r = np.linalg.norm((x[i] - x[j])[:, None] + shifts, axis=-1).min(axis=1)
        counts[t] = np.histogram(r, bins, (0, r_max))[0]
    return counts


def shells(r_max, bins, d):
    edges = np.linspace(0, r_max, bins + 1)
    ball = {1: 2 * edges, 2: np.pi * edges**2, 3: 4 / 3 * np.pi * edges**3}[d]
    return np.diff(ball)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
@pytest.mark.parametrize("n", [6, 7])
def test_radial_distribution(space, n):
    d = dimension(space)
    path = random_walk(n, d, 5, space)
    r_max = 0.99 * float(space.max_cutoff(d))
    found = observe_path(RadialDistribution(1, r_max, 10), path)[0]["radial_distribution"]
    density = n * (n - 1) / 2 / float(space.volume)
    expected = histogram(path, space, r_max, 10).mean(0) / density / shells(r_max, 10, d)
    np.testing.assert_allclose(found["value"], expected, rtol=1e-10)
    np.testing.assert_allclose(found["r"], (np.arange(10) + 0.5) * r_max / 10, rtol=1e-12)


def test_radial_distribution_of_species_and_in_float32():
    space = SPACES["box"]
    species = np.array([0, 1, 0, 1, 1, 2, 0])
    path = random_walk(7, 3, 4, space, dtype=jnp.float32, species=species)
    for a, b in ((0, 1), (1, 1)):
        pairs = {
            (i, j)
            for i in range(7)
            for j in range(7)
            if i != j and (species[i], species[j]) == (a, b)
        }
        number = len(pairs) if a != b else len(pairs) / 2
        observer = RadialDistribution(1, 2.4, 6, species=(a, b), name="g")
        found = observe_path(observer, path)[0]["g"]
        counts = histogram(path, space, 2.4, 6, pairs).mean(0)
        expected = counts * float(space.volume) / number / shells(2.4, 6, 3)
        assert found["value"].dtype == jnp.float32
        np.testing.assert_allclose(found["value"], expected, rtol=1e-5)


def uniform(n, d, frames, space, key, **leaves):
    """Independent uniform positions: an ideal gas."""
    x = jax.random.uniform(key, (frames, n, d)) @ space.cell(d)
    return jax.vmap(lambda x: Particles(x, space=space, **leaves))(x)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
def test_radial_distribution_of_an_ideal_gas_is_one(space, smooth, key):
    """In every bin, the first included, within five of its own error bars."""
    d = dimension(space)
    path = uniform(40, d, 160, space, key)
    observer = RadialDistribution(1, 2.0, 5, smooth=smooth)
    found = observe_path(observer, path)[0]["radial_distribution"]
    value, error = np.asarray(found["value"]), np.asarray(found["error"])
    assert np.all(np.abs(value - 1) < 5 * error)
    assert np.all(error < [0.2] + 4 * [0.06])


def test_large_systems_are_counted_in_blocks(key, monkeypatch):
    path = uniform(65, 3, 2, SPACES["box"], key)
    whole = observe_path(RadialDistribution(1, 2.4, 12), path)[0]["radial_distribution"]
    monkeypatch.setattr("physkit.observe.statistics._radial_distribution._BLOCK_PAIRS", 200)
    parts = observe_path(RadialDistribution(1, 2.4, 12), path)[0]["radial_distribution"]
    np.testing.assert_array_equal(whole["value"], parts["value"])


def test_smooth_g_is_differentiable():
    """Against finite differences; plain bins have no derivative."""
    first = jax.tree.map(lambda x: x[0], random_walk(6, 3, 1, SPACES["box"]))

    @partial(jax.jit, static_argnums=1)
    def measure(scale, smooth):
        p = first.replace(position=first.position * scale)
        observer = RadialDistribution(1, 2.3, 6, smooth=smooth)
        now = snapshot(p, Springs())
        g = observer.summary(observer(now, observer.init(now))[1])["radial_distribution"]
        return jnp.sum(g["value"] * jnp.arange(6.0))

    h = 1e-6
    slope = (measure(1 + h, True) - measure(1 - h, True)) / (2 * h)
    assert jax.grad(measure)(1.0, True) == pytest.approx(float(slope), rel=1e-6)
    assert abs(slope) > 0.1
    assert jax.grad(measure)(1.0, False) == 0


def test_invalid_radial_distributions_are_refused():
    box, free = (random_walk(5, 3, 1, s) for s in (SPACES["box"], Free()))
    with pytest.raises(CutoffError, match=r"image limit 2\.5"):
        observe_path(RadialDistribution(1, 2.6), box)
    with pytest.raises(CutoffError, match="beyond"):
        observe_path(RadialDistribution(1, 2.5, 10, smooth=True), box)
    with pytest.raises(ObserverError, match="repeats along every axis"):
        observe_path(RadialDistribution(1, 2.0), free)
    with pytest.raises(ObserverError, match="no species"):
        observe_path(RadialDistribution(1, 2.0, species=(0, 1)), box)
    with pytest.raises(ObserverError, match="r_max > 0"):
        RadialDistribution(1, -1.0)
    with pytest.raises(ParameterError, match="plain number"):
        jax.jit(lambda r: RadialDistribution(1, r).bins)(2.0)


def test_g_beyond_the_image_limit_of_a_traced_box_is_nan():
    def measure(lengths):
        p = Particles(jnp.arange(12.0).reshape(4, 3), space=Box(lengths))
        observer = RadialDistribution(1, 3.0, 6)
        now = snapshot(p, Springs())
        return observer.summary(observer(now, observer.init(now))[1])["radial_distribution"]

    value = jax.jit(measure)(jnp.array([4.0, 5.0, 6.0]))["value"]
    np.testing.assert_array_equal(np.isnan(value), [False] * 4 + [True] * 2)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
def test_structure_factor(space, dtype):
    d = dimension(space)
    path = random_walk(7, d, 4, space, dtype=dtype)
    first = jax.tree.map(lambda x: x[0], path)
    vectors = wavevectors_within(first, 3.0)
    found = observe_path(StructureFactor(1, vectors), path)[0]["structure_factor"]
    k = 2 * np.pi * np.array(vectors) @ np.linalg.inv(np.asarray(space.cell(d))).T
    phase = np.asarray(path.position, float) @ k.T
    expected = np.mean(np.abs(np.exp(-1j * phase).sum(1)) ** 2, 0) / 7
    tolerance = 1e-5 if dtype == jnp.float32 else 1e-12
    np.testing.assert_allclose(found["vectors"], k, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found["k"], np.linalg.norm(k, axis=1), rtol=tolerance)
    np.testing.assert_allclose(found["value"], expected, atol=10 * tolerance)
    assert found["value"].dtype == dtype


def test_structure_factor_of_a_crystal_and_of_one_species():
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
    species = (np.arange(64) < 16).astype(int)
    one = Particles(grid, space=Box([4.0, 4.0, 4.0]), species=species)
    path = jax.tree.map(lambda x: x[None], one)
    observer = StructureFactor(1, [[4, 0, 0], [0, 4, 4], [1, 0, 0], [2, 3, 1]])
    found = observe_path(observer, path)[0]["structure_factor"]
    np.testing.assert_allclose(found["value"], [64, 64, 0, 0], atol=1e-10)
    observer = StructureFactor(1, [[1, 0, 0], [0, 4, 0]], species=1)  # one layer across the x axis
    found = observe_path(observer, path)[0]["structure_factor"]
    np.testing.assert_allclose(found["value"], [16, 16], rtol=1e-10)


def test_wavevectors_are_complete_and_unique():
    for space in SPACES.values():
        d = dimension(space)
        p = jax.tree.map(lambda x: x[0], random_walk(3, d, 1, space))
        k_max = 3.3
        found = set(wavevectors_within(p, k_max))
        reciprocal = 2 * np.pi * np.linalg.inv(np.asarray(space.cell(d))).T
        span = np.stack(np.meshgrid(*[np.arange(-9, 10)] * d, indexing="ij"), -1).reshape(-1, d)
        inside = {tuple(n) for n in span.tolist() if 0 < np.linalg.norm(n @ reciprocal) <= k_max}
        negative = {tuple(-x for x in n) for n in found}
        assert found | negative == inside
        assert not found & negative
        lengths = [np.linalg.norm(n @ reciprocal) for n in wavevectors_within(p, k_max)]
        assert np.all(np.diff(lengths) > -1e-8)


def test_shell_average():
    k, s = shell_average([0.1, 1.2, 1.4, 3.5], [1.0, 2.0, 4.0, 7.0], 1.0)
    np.testing.assert_allclose(k, [0.1, 1.3, 3.5])
    np.testing.assert_allclose(s, [1.0, 3.0, 7.0])


def test_invalid_structure_factors_are_refused():
    p = jax.tree.map(lambda x: x[0], random_walk(3, 3, 1, SPACES["box"]))
    free = random_walk(3, 3, 1, Free())
    with pytest.raises(ObserverError, match="rows of integers"):
        StructureFactor(1, [[0.5, 0.0, 0.0]])
    with pytest.raises(ObserverError, match="wavevector 0"):
        StructureFactor(1, [[0, 0, 0]])
    with pytest.raises(ObserverError, match="repeats"):
        observe_path(StructureFactor(1, [[1, 0, 0]]), free)
    with pytest.raises(ObserverError, match="2 axes"):
        observe_path(StructureFactor(1, [[1, 0]]), jax.tree.map(lambda x: x[None], p))
    with pytest.raises(ObserverError, match="no wavevector"):
        wavevectors_within(p, 0.1)
