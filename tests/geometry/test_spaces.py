"""Spaces: minimum images against a search of all images, wrapping, cutoffs, derivatives, errors."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ParameterError, ShapeError, cast_floats
from physkit.geometry import Box, Free, Triclinic, determinant, heights, inverse_matrix


def tilted(d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Lattice vectors with large tilts, and short ones that span the same lattice."""
    rng = np.random.default_rng(100 * d + seed)
    short = np.diag(rng.uniform(1, 3, d)) + rng.uniform(-0.6, 0.6, (d, d))
    mix = np.eye(d, dtype=int)
    for _ in range(seed if d > 1 else 0):
        i, j = rng.choice(d, 2, replace=False)
        mix[i] += rng.integers(-3, 4) * mix[j]
    if seed % 3 == 0:
        mix[0] *= -1  # left-handed cells are valid
    return mix @ short, short


def images(lattice: np.ndarray, reach: int = 4) -> np.ndarray:
    d = len(lattice)
    return np.array(list(itertools.product(range(-reach, reach + 1), repeat=d))) @ lattice


def nearest_image(difference: np.ndarray, short: np.ndarray) -> np.ndarray:
    """The nearest of hundreds of images, by brute force."""
    first = difference - np.round(difference @ np.linalg.inv(short)) @ short
    candidates = first[:, None] + images(short)
    best = np.argmin(np.sum(candidates**2, axis=-1), axis=1)
    return candidates[np.arange(len(difference)), best]


def points(d: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(d)
    return 4 * rng.normal(size=(n, d)), 4 * rng.normal(size=(n, d))


@eqx.filter_jit
def nearest(space, a, b):
    """Displacements from b to a, the same by `minimum_image`, and the cutoff within which that holds."""
    d = a.shape[-1]
    fast = jnp.stack(space.minimum_image(tuple((a - b).T)), axis=1)
    return space.displacement(a, b), fast, space.max_cutoff(d)


CELLS = [(d, seed) for d in (1, 2, 3) for seed in range(7 if d > 1 else 2)]


@pytest.mark.parametrize(("d", "seed"), CELLS)
def test_triclinic_displacement_is_the_nearest_image(d, seed):
    vectors, short = tilted(d, seed)
    space = Triclinic(vectors)
    a, b = points(d)
    expected = nearest_image(a - b, short)
    found, fast, cutoff = nearest(space, jnp.asarray(a), jnp.asarray(b))
    distance = np.linalg.norm(expected, axis=1)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), distance, rtol=1e-9)
    # `minimum_image` is right for all pairs within `max_cutoff`, which is neither too large nor far too small.
    close = distance < float(cutoff)
    np.testing.assert_allclose(np.asarray(fast)[close], expected[close], atol=1e-9)
    lengths = np.linalg.norm(images(short), axis=1)
    assert cutoff <= np.min(lengths[lengths > 1e-9]) / 2 * (1 + 1e-12)
    assert cutoff > 0.3 * np.min(lengths[lengths > 1e-9]) / 2


@pytest.mark.parametrize("d", [2, 3])
def test_minimum_image_keeps_pairs_just_within_max_cutoff(d):
    """In every direction, slightly inside of `max_cutoff`."""

    @eqx.filter_jit
    def images_inside(space, direction):
        inside = direction * (space.max_cutoff(d) * (1 - 1e-9))
        return inside, jnp.stack(space.minimum_image(tuple(inside.T)), axis=1)

    for seed in range(6):
        space = Triclinic(tilted(d, seed)[0])
        direction = np.random.default_rng(seed).normal(size=(200, d))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        inside, fast = images_inside(space, jnp.asarray(direction))
        np.testing.assert_allclose(fast, inside, atol=1e-12)


@pytest.mark.parametrize("periodic", list(itertools.product([True, False], repeat=3)))
def test_box_displacement_is_the_nearest_image(periodic):
    lengths = np.array([2.0, 3.0, 5.0])
    space = Box(lengths, periodic)
    a, b = points(3)
    shifts = images(np.diag(np.where(periodic, lengths, 0.0)), reach=12)
    candidates = (a - b)[:, None] + shifts
    expected = np.min(np.linalg.norm(candidates, axis=-1), axis=1)
    found, _, cutoff = nearest(space, jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), expected, rtol=1e-12)
    smallest = min((x / 2 for x, p in zip(lengths, periodic, strict=True) if p), default=np.inf)
    assert float(cutoff) == smallest
    assert space.periodic_axes(3) == periodic


def test_free_space_wraps_nothing():
    a, b = points(2)
    np.testing.assert_array_equal(Free().displacement(jnp.asarray(a), jnp.asarray(b)), a - b)
    np.testing.assert_array_equal(Free().wrap(jnp.asarray(a)), a)
    assert float(Free().max_cutoff(2)) == np.inf
    assert float(Free().volume) == np.inf
    assert Free().cell(3) is None
    assert Free().periodic_axes(2) == (False, False)


SPACES = {
    "free": (2, Free()),
    "line": (1, Box([2.5])),
    "plane": (2, Box([2.5, 3.0])),
    "channel": (3, Box([2.5, 3.0, 4.0], periodic=(True, False, True))),
    "box": (3, Box([2.5, 3.0, 4.0])),
    "tilted line": (1, Triclinic([[-2.5]])),
    "tilted plane": (2, Triclinic(tilted(2, 5)[0])),
    "tilted box": (3, Triclinic(tilted(3, 6)[0])),
}


@pytest.fixture(params=SPACES.values(), ids=SPACES.keys())
def case(request):
    return request.param


def test_displacement_properties(case, dtype):
    """It is antisymmetric, ignores whole cells, broadcasts shapes and keeps the precision."""
    d, space = case[0], cast_floats(case[1], dtype)
    a, b = (x.astype(dtype) for x in points(d, 12))
    scale = max([1.0, *(float(np.max(np.abs(x))) for x in jax.tree.leaves(space))])
    tolerance = scale * (2e-5 if dtype == jnp.float32 else 1e-12)
    cells = np.random.default_rng(0).integers(-2, 3, (12, d)).astype(np.int32)
    cells = np.where(np.array(space.periodic_axes(d))[None], cells, 0)

    @jax.jit
    def displacements(space, a, b, cells):
        shifted = space.displacement(space.unwrap(a, cells), b)
        return space.displacement(a, b), space.displacement(b, a), shifted

    forward, backward, shifted = displacements(space, a, b, cells)
    assert forward.dtype == dtype
    np.testing.assert_allclose(forward, -np.asarray(backward), atol=tolerance)
    np.testing.assert_allclose(
        np.linalg.norm(shifted, axis=1), np.linalg.norm(forward, axis=1), atol=10 * tolerance
    )
    shape = jax.eval_shape(space.displacement, a[:, None], b[None]).shape
    assert shape == (12, 12, d)


def test_unwrap_is_the_inverse_of_wrap(case, dtype):
    d, space = case[0], cast_floats(case[1], dtype)
    x = jnp.asarray(points(d)[0], dtype)

    @eqx.filter_jit
    def wrapped(space, x):
        inside, image = space.wrap_with_image(x)
        return inside, image, space.unwrap(inside, image), space.wrap(inside)

    inside, image, unwrapped, again = wrapped(space, x)
    assert inside.dtype == dtype
    assert image.dtype == jnp.int32
    tolerance = 1e-5 if dtype == jnp.float32 else 1e-13
    np.testing.assert_allclose(unwrapped, x, atol=10 * tolerance)
    # A point on a face may be wrapped to the opposite one, by rounding.
    np.testing.assert_allclose(space.displacement(again, inside), 0, atol=10 * tolerance)
    if space.cell(d) is not None:
        fraction = np.linalg.solve(
            np.asarray(space.cell(d), float).T, np.asarray(inside, float).T
        ).T
        periodic = fraction[:, list(space.periodic_axes(d))]
        # Vectors that are nearly parallel, and positions a hundred cells away.
        slack = 100 * tolerance
        assert np.all(periodic >= -slack)
        assert np.all(periodic <= 1 + slack)
        assert np.any(np.asarray(image) != 0)


def test_volume_is_the_determinant(case):
    d, space = case
    cell = space.cell(d)
    if cell is None:
        return
    np.testing.assert_allclose(space.volume, abs(np.linalg.det(np.asarray(cell))), rtol=1e-12)
    assert not bool(space.is_degenerate())


@pytest.mark.parametrize("name", [n for n in SPACES if n != "free"])
def test_derivatives_by_lengths_and_vectors(name):
    """Of displacements, unwrapped positions and volume, against finite differences."""
    d, space = SPACES[name]
    a, b = (jnp.asarray(x) for x in points(d, 8))
    weight = jnp.cos(jnp.arange(8.0 * d)).reshape(8, d)
    leaves, tree = jax.tree.flatten(space)
    (cell,) = leaves

    @jax.jit
    def outcome(cell):
        s = tree.unflatten([cell])
        inside, image = s.wrap_with_image(a)
        total = jnp.sum(weight * s.displacement(a, b)) + jnp.sum(weight**2 * s.unwrap(a, image))
        return total + s.volume + s.max_cutoff(d) + jnp.sum(inside * weight)

    direction = np.sin(1 + np.arange(cell.size, dtype=float)).reshape(cell.shape)
    value = jax.jit(outcome)
    expected = (value(cell + 1e-6 * direction) - value(cell - 1e-6 * direction)) / 2e-6
    derivatives = lambda x, v: (jax.grad(outcome)(x), jax.jvp(outcome, (x,), (v,))[1])
    found, forward = jax.jit(derivatives)(cell, direction)
    np.testing.assert_allclose(np.sum(found * direction), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(forward, expected, rtol=1e-6, atol=1e-7)


def test_derivative_by_position_is_one(case):
    d, space = case
    a, b = (x[0] for x in points(d))

    @jax.jit
    def derivatives(a, b):
        by_displacement = jax.jacfwd(lambda a: space.displacement(a, b))(a)
        return by_displacement, jax.jacrev(lambda a: space.wrap(a[None])[0])(a)

    found, wrapped = derivatives(a, b)
    np.testing.assert_allclose(found, np.eye(d), atol=1e-14)
    np.testing.assert_allclose(wrapped, np.eye(d), atol=1e-14)


def test_reduced_basis_of_strained_vectors():
    """The basis stays valid when vectors change, and under jit and vmap."""
    vectors, short = tilted(3, 5)
    space = Triclinic(vectors)
    strain = np.eye(3) + 0.05 * np.random.default_rng(0).normal(size=(3, 3))
    strained = eqx.tree_at(lambda s: s.vectors, space, jnp.asarray(vectors @ strain))
    a, b = points(3)
    expected = np.linalg.norm(nearest_image(a - b, short @ strain), axis=1)
    found = eqx.filter_jit(lambda s: s.displacement(jnp.asarray(a), jnp.asarray(b)))(strained)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), expected, rtol=1e-9)
    boxes = jax.vmap(Box.cube)(jnp.array([2.0, 3.0]))
    both = jax.vmap(lambda s: s.displacement(jnp.full(3, 1.9), jnp.zeros(3)))(boxes)
    np.testing.assert_allclose(both, [[-0.1] * 3, [-1.1] * 3], atol=1e-14)


def test_a_box_equals_a_triclinic_cell_with_right_angles():
    lengths = np.array([2.5, 3.0, 4.0])
    box, cell = Box(lengths), Triclinic(np.diag(lengths))
    a, b = (jnp.asarray(x) for x in points(3))
    np.testing.assert_allclose(box.displacement(a, b), cell.displacement(a, b), atol=1e-13)
    np.testing.assert_allclose(box.volume, cell.volume)
    np.testing.assert_allclose(box.max_cutoff(3), cell.max_cutoff(3))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_determinant_inverse_and_heights_of_small_matrices(d):
    m = np.random.default_rng(d).normal(size=(d, d))
    np.testing.assert_allclose(determinant(jnp.asarray(m)), np.linalg.det(m), rtol=1e-12)
    np.testing.assert_allclose(inverse_matrix(jnp.asarray(m)), np.linalg.inv(m), rtol=1e-10)
    np.testing.assert_allclose(heights(jnp.diag(jnp.arange(1.0, d + 1))), np.arange(1.0, d + 1))


def test_degenerate_cells_are_detected():
    negative = eqx.tree_at(lambda s: s.lengths, Box([2.0, 2.0]), jnp.array([2.0, -1.0]))
    flat = eqx.tree_at(lambda s: s.vectors, Triclinic(np.eye(2)), jnp.ones((2, 2)))
    not_a_number = eqx.tree_at(lambda s: s.lengths, Box([2.0]), jnp.array([jnp.nan]))
    assert bool(negative.is_degenerate())
    assert bool(flat.is_degenerate())
    assert bool(not_a_number.is_degenerate())
    assert not bool(Free().is_degenerate())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Box([1.0, 0.0]), ParameterError, "positive"),
        (lambda: Box([1.0, -2.0]), ParameterError, "positive"),
        (lambda: Box([1.0, float("nan")]), ParameterError, "positive"),
        (lambda: Box(3.0), ShapeError, "one length per axis"),
        (lambda: Box([1.0, 1.0, 1.0, 1.0]), ShapeError, "one length per axis"),
        (lambda: Box([1.0, 1.0], periodic=(True,)), ShapeError, "1 axes"),
        (lambda: Triclinic([[1.0, 2.0], [2.0, 4.0]]), ParameterError, "no volume"),
        (lambda: Triclinic([[1.0, float("nan")], [2.0, 4.0]]), ParameterError, "no volume"),
        (lambda: Triclinic([1.0, 2.0]), ShapeError, "rows"),
        (lambda: Triclinic([[1.0, 2.0]]), ShapeError, "rows"),
        (lambda: Box([1.0, 2.0]).wrap(jnp.zeros((3, 3))), ShapeError, "3 axes"),
        (lambda: Triclinic(np.eye(2)).wrap(jnp.zeros((3, 3))), ShapeError, "3 axes"),
        (lambda: Box([1.0]).displacement(jnp.zeros(2), jnp.zeros(2)), ShapeError, "2 axes"),
        (lambda: Box([1.0]).max_cutoff(2), ShapeError, "2 axes"),
    ],
)
def test_bad_input_raises(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_lists_of_traced_lengths():
    assert jax.grad(lambda x: pk.Box([x, 3.0]).volume)(1.0) == 3
    assert jax.jit(lambda x: pk.Grid([x, 1.0], (4, 4)).spacing[0])(2.0) == 0.5
    assert jax.grad(lambda x: pk.Triclinic([[x, 0.0], [0.5, 2.0]]).volume)(1.0) == 2
