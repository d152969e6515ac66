"""Interpolation and deposition: conserved sums, accuracy, and that each is the other's transpose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from physkit.core import ParameterError, ShapeError
from physkit.coupling import CIC, PCS, TSC, Nearest, deposit, interpolate
from physkit.coupling._transfer import _padded
from physkit.fields import Field
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_deposit_is_the_transpose_of_interpolation",
    "test_linear_functions_are_interpolated_exactly[False-kernel0]",
    "test_ghosts_that_a_gpu_computes_once",
    "test_exact_sums_do_not_depend_on_order[float32-1000-kernel2]",
    "test_exact_sums_do_not_depend_on_order[float64-1003-kernel2]",
)

KERNELS = (Nearest(), CIC(), TSC(), PCS())
SHAPES = {1: (7,), 2: (5, 8), 3: (4, 5, 6)}
WALLS = {1: [(True,), (False,)], 2: [(True, True), (True, False)], 3: [(True,) * 3, (False,) * 3]}


def grid(d, axes, dtype=float):
    lengths = jnp.asarray([1.3, 0.9, 2.1][:d], dtype)
    return Grid(Box(lengths, axes), SHAPES[d])


def positions(g, n=13, seed=0, dtype=float):
    """Anywhere in the box; a few on corners, and one beyond the far end of every axis."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, g.dimension))
    x[0], x[1], x[2] = 0.0, 1.0, 1.0 + 1e-9
    return jnp.asarray(x, dtype) * g.space.lengths[None].astype(dtype)


def random_field(g, location, components=(), seed=1, boundary=None, dtype=float):
    rng = np.random.default_rng(seed)
    values = jnp.asarray(rng.normal(size=(*components, *g.local_shape_at(location))), dtype)
    walls = {k: boundary or Mirror() for k, wraps in enumerate(g.periodic) if not wraps}
    return Field(values, g, location, walls)


KINDS = ("cell", "node", "x", "y", "z", "edge x", "edge y")


def location_by_name(g, kind):
    """A location by name; those of more axes than there are fall on the first."""
    if kind in ("cell", "node"):
        return getattr(g, kind)
    axis = min("xyz".index(kind[-1]), g.dimension - 1)
    return g.edge(axis) if kind.startswith("edge") else g.face(axis)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    st.sampled_from([(d, axes) for d in WALLS for axes in WALLS[d]]),
    st.sampled_from(KINDS),
    st.sampled_from(range(4)),
    st.sampled_from(((), (2,))),
    st.integers(0, 1000),
)
def test_deposit_is_the_transpose_of_interpolation(box, kind, order, components, seed):
    """∫ u ρ dV = Σ q u(x), and nothing of what is deposited is lost."""
    g, kernel = grid(*box), KERNELS[order]
    location = location_by_name(g, kind)
    x, u = positions(g, seed=seed), random_field(g, location, components)
    q = jnp.asarray(np.random.default_rng(seed).normal(size=(13, *components)))

    @jax.jit
    def both(x, u, q):
        rho = deposit(q, x, u, kernel)
        by_particles = jnp.sum(q * interpolate(u, x, kernel))
        return by_particles, jnp.sum((u * rho).integral()), rho.integral(), jnp.sum(q, axis=0)

    by_particles, by_points, deposited, given = both(x, u, q)
    np.testing.assert_allclose(by_particles, by_points, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(deposited, given, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_against_splines_by_their_formula(kernel, d):
    """Shares are B-splines of the distance: convolutions of a box with itself."""
    g = grid(d, (True,) * d)
    x = positions(g)[3:]
    u = random_field(g, g.cell)
    spline = {
        1: lambda r: (r < 0.5).astype(float), 2: lambda r: np.maximum(0, 1 - r),
        3: lambda r: np.where(r < 0.5, 0.75 - r**2, np.where(r < 1.5, (1.5 - r) ** 2 / 2, 0)),
        4: lambda r: np.where(r < 1, (4 - 6 * r**2 + 3 * r**3) / 6, np.where(r < 2, (2 - r) ** 3 / 6, 0)),
    }[kernel.order]  # fmt: skip
    total = np.ones((len(x),) + (1,) * d)
    for k, (n, length) in enumerate(zip(g.shape, np.asarray(g.space.lengths))):
        r = np.asarray(x)[:, k, None] / length * n - (np.arange(n) + 0.5)[None]
        near = sum(spline(np.abs(r + m * n)) for m in (-1, 0, 1))
        total = total * near.reshape([len(x)] + [n if j == k else 1 for j in range(d)])
    expected = np.sum(total * np.asarray(u.data)[None], axis=tuple(range(1, d + 1)))
    np.testing.assert_allclose(interpolate(u, x, kernel), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS[1:])
@pytest.mark.parametrize("wrap", [True, False])
def test_linear_functions_are_interpolated_exactly(kernel, wrap):
    """At walls with the ghosts of the field's own boundary: here the slope, there the value."""
    g = Grid(Box([2.0], (wrap,)), (9,))
    slope = lambda x: 0.7 * x + 0.2
    sides = None if wrap else {"x": (Dirichlet(0.2), Neumann(0.7))}
    u = Field.from_function(g, slope, None, sides)
    x = jnp.linspace(0.5, 1.5, 11)[:, None] if wrap else jnp.linspace(0, 2, 11)[:, None]
    np.testing.assert_allclose(interpolate(u, x, kernel), slope(x[:, 0]), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_derivatives_by_position(kernel):
    """First, second and third against differences as far as the kernel is smooth; both modes agree."""
    g = grid(2, (True, False))
    u = random_field(g, g.cell)
    x = positions(g)[3:9]
    at = jax.jit(lambda x: interpolate(u, x, kernel))
    v = jnp.cos(jnp.arange(12.0)).reshape(6, 2)
    jvp = jax.jvp(at, (x,), (v,))[1]
    difference = (at(x + 1e-6 * v) - at(x - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(jvp, difference, atol=1e-8)
    w = jnp.sin(jnp.arange(6.0))
    vjp = jax.grad(lambda x: jnp.sum(w * at(x)))(x)
    np.testing.assert_allclose(jnp.sum(vjp * v), jnp.sum(w * jvp), rtol=1e-11, atol=1e-12)
    if kernel.order == 1:
        assert not np.any(jvp)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(w * at(x) ** 2)))
    second = jax.jvp(slope, (x,), (v,))[1]
    steps = (slope(x + 1e-6 * v) - slope(x - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(second, steps, atol=2e-7 * max(1, float(jnp.max(jnp.abs(second)))))


@pytest.mark.parametrize("exact", [False, True])
def test_derivatives_of_deposits(exact):
    g = grid(2, (True, True))
    x, q = positions(g)[3:], jnp.arange(1.0, 11.0)
    weight = random_field(g, g.cell).data

    @jax.jit
    def answer(x, q):
        return jnp.sum(weight * deposit(q, x, g, TSC(), exact=exact).data ** 2)

    for k in (0, 1):
        slope = jax.grad(answer, k)(x, q)
        v = jnp.cos(jnp.arange(slope.size, dtype=float)).reshape(slope.shape)
        move = lambda s, k=k, v=v: answer(
            *[a + s * v if j == k else a for j, a in enumerate((x, q))]
        )
        difference = (move(1e-6) - move(-1e-6)) / 2e-6
        np.testing.assert_allclose(jnp.sum(slope * v), difference, rtol=1e-7)
        np.testing.assert_allclose(jax.jvp(move, (0.0,), (1.0,))[1], difference, rtol=1e-7)
        second = jax.jvp(jax.grad(answer, k), (x, q), (0 * x, v if k else 0 * q))[1]
        assert np.all(np.isfinite(second))


def test_batches():
    g = grid(2, (True, False))
    u = random_field(g, g.cell)
    x = jnp.stack([positions(g, seed=k) for k in range(3)])
    q = jnp.cos(jnp.arange(39.0)).reshape(3, 13)
    both = jax.jit(lambda x, q: (interpolate(u, x, TSC()), deposit(q, x, g, CIC()).data))
    each = [both(a, b) for a, b in zip(x, q)]
    for k, batch in enumerate(jax.vmap(both)(x, q)):
        np.testing.assert_allclose(batch, jnp.stack([e[k] for e in each]), rtol=1e-12, atol=1e-14)
    slope = jax.jit(jax.grad(lambda x, q: jnp.sum(deposit(q, x, g, CIC()).data ** 2)))
    each = jnp.stack([slope(a, b) for a, b in zip(x, q)])
    np.testing.assert_allclose(jax.vmap(slope)(x, q), each, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [13, 1000, 1003])
def test_exact_sums_do_not_depend_on_order(kernel, n, dtype):
    g = grid(2, (True, False), dtype)
    x = positions(g, n, dtype=dtype)
    q = jnp.asarray(np.random.default_rng(0).normal(size=(n,)), dtype)
    go = jax.jit(lambda x, q: deposit(q, x, g, kernel, exact=True).data)
    found = np.asarray(go(x, q))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(n)
        assert np.array_equal(found, np.asarray(go(x[order], q[order])))
    plain = jax.jit(lambda x, q: deposit(q, x, g, kernel).data)(x, q)
    scale = 1e-4 if dtype == jnp.float32 else 1e-12
    np.testing.assert_allclose(found, plain, atol=scale * float(jnp.max(jnp.abs(plain))))
    huge = go(x, q * jnp.asarray(2.0**30, dtype)) / 2.0**30
    assert np.array_equal(found, huge)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="a GPU adds integers")
def test_plain_sums_depend_on_order():
    """Else the test above could not fail."""
    g = grid(2, (True, False))
    x, q = positions(g, 1000), jnp.asarray(np.random.default_rng(0).normal(size=1000))
    order = np.random.default_rng(1).permutation(1000)
    assert np.any(deposit(q, x, g).data != deposit(q[order], x[order], g).data)


def test_precisions(dtype):
    g = grid(3, (True, False, True))
    x = positions(g, dtype=dtype)
    rho = deposit(1.0, x, g)
    assert rho.data.dtype == dtype
    assert interpolate(rho.with_boundary({"y": Mirror()}), x, PCS()).dtype == dtype


def test_ghosts_that_a_gpu_computes_once():
    """Before particles read them, and without writing a side at a time, which would be a launch each."""
    g = grid(3, (True,) * 3)
    u, widths = random_field(g, g.face(1), (2,)), ((1, 2), (0, 1), (2, 0))
    np.testing.assert_array_equal(_padded(u, widths), u.padded(widths))
    with pytest.raises(ShapeError, match="ghost"):  # more than there are points
        _padded(u, ((5, 0), (0, 0), (0, 0)))
    x = positions(g, dtype=np.float32)
    u = random_field(g, g.cell, dtype=np.float32)
    text = jax.jit(interpolate).trace(u, x).lower(lowering_platforms=("cuda",)).as_text()
    assert "dynamic_update_slice" not in text
    (barrier,) = [line for line in text.splitlines() if "optimization_barrier" in line]
    assert "6x7x8xf32" in barrier  # the points and those of either side


def test_complex_and_vector_fields():
    g = grid(2, (True, True))
    x = positions(g)
    wave = Field(
        jax.lax.complex(random_field(g, g.cell).data, random_field(g, g.cell, seed=5).data), g
    )
    read = interpolate(wave, x)
    np.testing.assert_allclose(read.real, interpolate(Field(wave.data.real, g), x), rtol=1e-12)
    np.testing.assert_allclose(read.imag, interpolate(Field(wave.data.imag, g), x), rtol=1e-12)
    v = deposit(jnp.ones((13, 2)), x, g)
    assert v.vector
    assert interpolate(v, x).shape == (13, 2)


def test_a_position_that_is_not_finite_affects_no_other_particle():
    """Positions that are not finite stay in bounds; what they carry is not finite, so the loop sees it."""
    g = grid(1, (True,))
    x = positions(g).at[4, 0].set(jnp.nan)
    assert np.sum(~np.isfinite(interpolate(random_field(g, g.cell), x))) == 1


@pytest.mark.parametrize("where", ["value", "position"])
def test_an_exact_deposit_of_what_is_not_a_number_is_none(where):
    """Integers have no NaN: a sum of digits must not hide one."""
    g = grid(2, (True, True))
    x, values = positions(g), jnp.ones(len(positions(g)))
    if where == "value":
        values = values.at[4].set(jnp.nan)
    else:
        x = x.at[4, 0].set(jnp.nan)
    assert np.isnan(deposit(values, x, g, exact=True).data).all()


def test_bad_input():
    g = grid(2, (True, False))
    u = random_field(g, g.cell)
    with pytest.raises(ShapeError, match=r"\[n, 2\]"):
        interpolate(u, jnp.ones((4, 3)))
    with pytest.raises(ParameterError, match="precision"):
        interpolate(u, jnp.ones((4, 2), jnp.float32))
    with pytest.raises(ParameterError, match="precision"):
        deposit(jnp.ones(4, jnp.float32), jnp.ones((4, 2)), g)
    with pytest.raises(ShapeError, match="3 values for 4"):
        deposit(jnp.ones(3), jnp.ones((4, 2)), g)
    with pytest.raises(ParameterError, match="boundary"):
        interpolate(u * 2.0, jnp.ones((4, 2)))
