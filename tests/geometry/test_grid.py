"""Grids: ghost cells equal NumPy's padding; boundaries, transforms, coordinates, errors."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError, ShapeError
from physkit.geometry import (
    Box,
    Dirichlet,
    Grid,
    Mirror,
    Neumann,
    NoSlip,
    Outflow,
    Periodic,
    parse_boundaries,
)


def numpy_padding(kind: str, staggered: bool) -> dict:
    """The arguments of `np.pad` for these ghost cells."""
    mirror = "reflect" if staggered else "symmetric"
    return {
        "wrap": {"mode": "wrap"},
        "outflow": {"mode": "edge"},
        "reflect": {"mode": mirror},
        "neumann": {"mode": mirror},
        "noslip": {"mode": mirror},
    }[kind]


KINDS = {"outflow": Outflow, "reflect": Mirror, "neumann": Neumann, "noslip": NoSlip}
SHAPES = {1: (5,), 2: (5, 4), 3: (4, 3, 5)}


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_ghost_cells_equal_numpy_padding(dimension, width):
    dtype = jnp.float32 if width == 1 else jnp.float64
    rng = np.random.default_rng(dimension)
    kinds = ["wrap", *KINDS]
    combinations = list(itertools.product(kinds, repeat=dimension))
    paddings, arrays, expectations = {}, {}, {}
    for combination in combinations[:: 1 if dimension < 3 else 27]:
        periodic = tuple(kind == "wrap" for kind in combination)
        grid = Grid(Box(np.ones(dimension, dtype), periodic), SHAPES[dimension])
        given = {k: KINDS[kind]() for k, kind in enumerate(combination) if kind != "wrap"}
        sides = parse_boundaries(periodic, given)
        for location in (grid.cell, grid.node, grid.face(0)):
            x = rng.normal(size=(2, *grid.local_shape_at(location))).astype(dtype)
            expected = x
            for axis, kind in enumerate(combination):
                pads = [(0, 0)] * x.ndim
                pads[1 + axis] = (width, width)
                mode = numpy_padding(kind, location.staggered[axis])
                expected = np.pad(expected, pads, **mode)
            name = f"{combination} {location}"
            paddings[name] = functools.partial(
                grid.pad, width=width, boundary=sides, location=location
            )
            arrays[name], expectations[name] = x, expected
    # One program: each of the hundreds of paddings would be many.
    found = jax.jit(lambda given: {name: paddings[name](x) for name, x in given.items()})(arrays)
    for name, expected in expectations.items():
        np.testing.assert_array_equal(found[name], expected, err_msg=name)


def test_widths_may_differ_by_axis_and_side():
    grid = Grid(Box([1.0, 1.0], (False, True)), (4, 4))
    sides = parse_boundaries(grid.periodic, Outflow())
    x = jnp.arange(16.0).reshape(4, 4)
    assert grid.pad(x, ((2, 0), (0, 1)), sides).shape == (6, 5)
    np.testing.assert_array_equal(grid.pad(x, ((2, 0), (0, 1)), sides)[:2, 4], x[[0, 0], 0])


@pytest.mark.parametrize("staggered", [False, True])
def test_dirichlet_walls_have_their_value(staggered):
    """Ghosts lie on the straight line through the value on the wall."""
    grid = Grid(Box([2.0], False), 8)
    location = grid.node if staggered else grid.cell
    (x,) = grid.coordinates(location)
    line = 3.0 + 0.5 * x
    sides = parse_boundaries((False,), {"x": (Dirichlet(3.0), Dirichlet(4.0))})
    padded = grid.pad(line, 3, sides, location)
    expected = 3.0 + 0.5 * (np.arange(-3, len(x) + 3) + (0.0 if staggered else 0.5)) * 0.25
    np.testing.assert_allclose(padded, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("staggered", [False, True])
def test_neumann_walls_have_their_slope(staggered):
    """Ghosts continue a parabola about the middle, whose outward slope is given at both walls."""
    grid = Grid(Box([2.0], False), 8)
    location = grid.node if staggered else grid.cell
    (x,) = grid.coordinates(location)
    sides = parse_boundaries((False,), Neumann(2.0))
    padded = grid.pad((x - 1.0) ** 2, 2, sides, location)
    expected = (np.arange(-2, len(x) + 2) + (0.0 if staggered else 0.5)) * 0.25
    np.testing.assert_allclose(padded, (expected - 1.0) ** 2, rtol=0, atol=1e-14)


def test_mirrors_reverse_normal_components():
    grid = Grid(Box([1.0, 1.0], False), (3, 3))
    v = jnp.arange(18.0).reshape(2, 3, 3) + 1.0
    mirrored = grid.pad(v, 1, parse_boundaries(grid.periodic, Mirror()), vector=True)
    np.testing.assert_array_equal(mirrored[0, 0, 1:-1], -v[0, 0])
    np.testing.assert_array_equal(mirrored[1, 0, 1:-1], v[1, 0])
    np.testing.assert_array_equal(mirrored[1, 1:-1, -1], -v[1, :, -1])
    no_slip = grid.pad(
        v, 1, parse_boundaries(grid.periodic, {"x": NoSlip([0.0, 2.0]), "y": NoSlip()}), vector=True
    )
    np.testing.assert_array_equal(no_slip[0, 0, 1:-1], -v[0, 0])
    np.testing.assert_array_equal(no_slip[1, 0, 1:-1], 4.0 - v[1, 0])
    np.testing.assert_array_equal(no_slip[0, 1:-1, 0], -v[0, :, 0])


def test_wall_profiles_extend_into_corners():
    grid = Grid(Box([1.0, 1.0], (False, False)), (3, 4))
    along = jnp.array([1.0, 2.0, 3.0])
    sides = parse_boundaries(grid.periodic, {"x": Outflow(), "y": Dirichlet(along[:, None])})
    padded = grid.pad(jnp.zeros((3, 4)), 1, sides)
    np.testing.assert_array_equal(padded[:, 0], 2 * jnp.array([1.0, 1.0, 2.0, 3.0, 3.0]))


def test_wall_profiles_wrap_on_periodic_axes():
    grid = Grid(Box([1.0, 1.0], (True, False)), (4, 3))
    sides = parse_boundaries(grid.periodic, Dirichlet(jnp.arange(1.0, 5.0)))
    padded = grid.pad(jnp.zeros((4, 3)), ((1, 0), (1, 2)), sides)
    np.testing.assert_array_equal(padded[:, 0] / 2, [4.0, 1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(padded[:, -1] / 2, [4.0, 1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("periodic", [(False, True), (False, False), (True, False)])
def test_padding_all_axes_equals_padding_one_by_one(periodic):
    """With profiles along the walls, whose ghosts along other axes the corners need."""
    grid = Grid(Box([1.0, 1.0], periodic), (4, 6))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)))
    along = {0: jnp.linspace(1.0, 2.0, 6)[None], 1: jnp.linspace(3.0, 4.0, 4)[:, None]}
    given = {k: (Dirichlet(along[k]), Neumann(along[k])) for k in (0, 1) if not periodic[k]}
    both = grid.pad(x, 1, parse_boundaries(periodic, given))
    np.testing.assert_array_equal(
        both[:, 1:-1], grid.pad(x, ((1, 1), (0, 0)), parse_boundaries(periodic, given))
    )
    np.testing.assert_array_equal(
        both[1:-1], grid.pad(x, ((0, 0), (1, 1)), parse_boundaries(periodic, given))
    )


def test_padding_is_differentiable_by_data_boundary_values_and_lengths():
    @jax.jit
    def total(x, value, slope, length):
        grid = Grid(Box(length[None], False), 4)
        sides = parse_boundaries((False,), {"x": (Dirichlet(value), Neumann(slope))})
        return jnp.sum(grid.pad(jnp.asarray(x), 2, sides) ** 2)

    from jax.test_util import check_grads

    x = jnp.array([0.3, -0.2, 0.8, 0.1])
    check_grads(total, (x, jnp.array(0.4), jnp.array(-0.7), jnp.array(1.3)), order=2, rtol=1e-6)


@pytest.mark.parametrize("shape", [(8,), (7,), (6, 5), (4, 6, 5)])
def test_fft_is_inverted_by_ifft_and_modes_have_their_wavenumbers(shape):
    lengths = np.arange(1.0, len(shape) + 1)
    grid = Grid(lengths, shape)
    rng = np.random.default_rng(0)
    for real in (True, False):
        x = rng.normal(size=(2, *shape)) + (0 if real else 1j * rng.normal(size=(2, *shape)))
        back = jax.jit(lambda x, real=real: grid.ifft(grid.fft(x), real=real))(x)
        np.testing.assert_allclose(back, x, atol=1e-13)
    for axis in range(len(shape)):
        mode = np.cos(2 * np.pi * np.asarray(grid.coordinates()[axis]) / lengths[axis])
        found = np.abs(grid.fft(jnp.asarray(np.broadcast_to(mode, shape))))
        k = np.broadcast_to(grid.wavenumbers()[axis], found.shape)
        np.testing.assert_allclose(np.abs(k)[found > 1e-9], 2 * np.pi / lengths[axis])


def test_products_of_dealiased_modes_do_not_alias_onto_them():
    grid = Grid([1.0], 12)
    kept = np.flatnonzero(grid.dealias_mask())
    np.testing.assert_array_equal(kept, [0, 1, 2, 3])
    aliased = {(a + b) % 12 for a in kept for b in kept if a + b > 3}
    assert not {min(m, 12 - m) for m in aliased} & set(kept.tolist())


def test_shapes_and_coordinates_of_every_location():
    grid = Grid(Box([2.0, 3.0, 4.0], (True, False, False)), (2, 3, 4))
    assert grid.local_shape_at(grid.cell) == (2, 3, 4)
    assert grid.local_shape_at(grid.face("x")) == (2, 3, 4)
    assert grid.local_shape_at(grid.face("y")) == (2, 4, 4)
    assert grid.local_shape_at(grid.edge("x")) == (2, 4, 5)
    assert grid.local_shape_at(grid.node) == (2, 4, 5)
    x, y, z = grid.coordinates(grid.face("y"))
    assert (x.shape, y.shape, z.shape) == ((2, 1, 1), (1, 4, 1), (1, 1, 4))
    np.testing.assert_allclose(x.ravel(), [0.5, 1.5])
    np.testing.assert_allclose(y.ravel(), [0.0, 1.0, 2.0, 3.0])
    assert repr(grid.edge("z")) == "edge(z)"
    assert repr(grid.face(1)) == "face(y)"


def test_wavenumbers_and_coordinates_are_differentiable_by_lengths():
    def wave(length):
        grid = Grid(Box(jnp.stack([length])), 8)
        return jnp.sum(grid.wavenumbers()[0] ** 2) + jnp.sum(grid.coordinates()[0])

    expected = (wave(2.0 + 1e-6) - wave(2.0 - 1e-6)) / 2e-6
    np.testing.assert_allclose(jax.grad(wave)(2.0), expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Grid([1.0, 1.0], (4,)), ShapeError, "2 axes"),
        (lambda: Grid([1.0], (0,)), ShapeError, "at least one cell"),
        (lambda: parse_boundaries((False,), None), ParameterError, "no boundary at x_low, x_high"),
        (
            lambda: parse_boundaries((False,), {"x_low": Outflow()}),
            ParameterError,
            "no boundary at x_high",
        ),
        (
            lambda: parse_boundaries((False,), {"x": Outflow(), 0: Mirror()}),
            ParameterError,
            "given twice",
        ),
        (
            lambda: parse_boundaries((False,), {"x": Outflow(), "x_low": Mirror()}),
            ParameterError,
            "x_low is given twice",
        ),
        (
            lambda: parse_boundaries((True,), {"x": Outflow()}),
            ParameterError,
            "is periodic along x",
        ),
        (
            lambda: parse_boundaries((False,), {"x": Periodic()}),
            ParameterError,
            "is not periodic along x",
        ),
        (lambda: parse_boundaries((False,), {"w": Periodic()}), ParameterError, "no axis 'w'"),
        (
            lambda: parse_boundaries((False,), {"x_left": Periodic()}),
            ParameterError,
            "no side 'x_left'",
        ),
        (
            lambda: parse_boundaries((False,), {"x": 3.0}),
            ParameterError,
            "expected a boundary, got 3.0",
        ),
        (lambda: parse_boundaries((False,), {"x": (Outflow(),) * 3}), ParameterError, "a pair"),
        (
            lambda: Grid(Box([1.0, 1.0], False), (4, 4)).pad(
                jnp.zeros((4, 4)), 1, parse_boundaries((False, False), Dirichlet(jnp.arange(7.0)))
            ),
            ShapeError,
            "the value on a wall",
        ),
        (lambda: parse_boundaries((False,), 3.0), ParameterError, "one boundary, or a dict"),
        (
            lambda: Grid(Box([1.0], False), 4).fft(jnp.zeros(4)),
            ParameterError,
            "walls along x",
        ),
        (
            lambda: Grid([1.0], 2).pad(jnp.zeros(2), 3, parse_boundaries((True,), None)),
            ShapeError,
            "3 ghost cells along x, where there are only 2 points",
        ),
    ],
)
def test_bad_input_raises(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("shape", [(6, 8), (5, 7), (4, 6, 8), (3, 4, 5)])
def test_conjugate_modes_as_on_a_gpu(shape, monkeypatch):
    """Planes are chosen there, not written; both make values real and leave real ones as they are."""
    grid = Grid(Box([1.0] * len(shape)), shape)
    rng = np.random.default_rng(0)
    values = jnp.asarray(rng.normal(size=shape))
    spectrum = grid.fft(values)
    noise = jnp.asarray(rng.normal(size=spectrum.shape) + 1j * rng.normal(size=spectrum.shape))
    written = grid.hermitian_symmetrize(noise)
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *a, cpu, default: default(*a))
    chosen = grid.hermitian_symmetrize(noise)
    np.testing.assert_array_equal(chosen, written)
    assert np.abs(chosen - noise).max() > 0.1
    np.testing.assert_allclose(grid.fft(grid.ifft(chosen)), chosen, atol=1e-12)
    np.testing.assert_allclose(grid.hermitian_symmetrize(spectrum), spectrum, atol=1e-12)
