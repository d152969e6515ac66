"""Deposits and readings as GPUs make them, on a CPU: the same sums; deposits the same bits in any order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.coupling._integer_sums import _sums_of_digits
from physkit.coupling._kernels import CIC, PCS, TSC, QuarticSpline
from physkit.coupling._stencil import (
    Gather,
    Layout,
    Scatter,
    _read_in_parallel,
    _read_on_cpu,
    _scatter_in_order,
    _scatter_integers,
    grid_coordinates,
)


def problem(dtype, kernel, count=500):
    grid = pk.Grid(pk.Box(jnp.asarray([2.0, 3.0], dtype)), (6, 8))
    rng = np.random.default_rng(0)
    position = jnp.asarray(rng.uniform(size=(count, 2)) * (2.0, 3.0), dtype)
    # Six orders of magnitude, of both signs.
    values = jnp.asarray(
        rng.choice([-1, 1], (2, count)) * 10 ** rng.uniform(-6, 0, (2, count)), dtype
    )
    layout = Layout.of(grid, grid.cell, kernel, 0.0)
    return Scatter(layout), grid_coordinates(grid, grid.cell, kernel, position), values


in_order = jax.jit(_scatter_in_order, static_argnums=0)
as_integers = jax.jit(_scatter_integers, static_argnums=0)


def difference(transfer, x, values):
    """Of both sums, in roundings of the largest amount, which is below 1."""
    found, expected = as_integers(transfer, x, values), in_order(transfer, x, values)
    assert found.dtype == values.dtype
    error = np.abs(found - expected) - 4 * jnp.finfo(values.dtype).eps * np.abs(expected)
    return float(jnp.max(error) / jnp.finfo(values.dtype).eps)


def test_the_same_sums(dtype):
    assert difference(*problem(dtype, TSC())) < 32


def test_derivatives_of_the_kernel(dtype):
    transfer, x, values = problem(dtype, PCS())
    assert difference(Scatter(transfer.layout, (2, 0)), x, values) < 64


def test_the_same_bits_in_any_order(dtype):
    transfer, x, values = problem(dtype, TSC())
    expected = as_integers(transfer, x, values)
    order = np.random.default_rng(1).permutation(values.shape[1])
    found = as_integers(transfer, tuple(along[order] for along in x), values[:, order])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("points", [3, 5000])
def test_long_and_short_integers_have_the_same_sums(points):
    """On grids with copies and without."""
    rng = np.random.default_rng(2)
    index = jnp.asarray(rng.integers(0, points, (2, 400)), jnp.int32)
    amounts = jnp.asarray(rng.normal(size=(2, 400, 2)), jnp.float32)
    long, short = (_sums_of_digits(points, kind, index, amounts) for kind in (np.int64, np.int32))
    np.testing.assert_allclose(long, short, atol=1e-6)
    exact = np.zeros((points, 2))
    np.add.at(exact, np.asarray(index), np.asarray(amounts, float))
    np.testing.assert_allclose(long, exact, atol=1e-5)


@pytest.mark.parametrize("scale", [1e37, 1e-30])
def test_amounts_near_the_ends_of_the_range(scale):
    """Which are scaled by powers of two, made of their bits."""
    transfer, x, values = problem(jnp.dtype(jnp.float32), TSC())
    found = as_integers(transfer, x, values * jnp.float32(scale)) / jnp.float32(scale)
    np.testing.assert_allclose(found, as_integers(transfer, x, values), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("where", ["value", "position"])
def test_what_is_not_finite_stays_so(where):
    """Integers have no NaN: what is not a number must not become one."""
    transfer, x, values = problem(jnp.dtype(jnp.float32), TSC())
    if where == "value":
        values = values.at[0, 3].set(jnp.nan)
    else:
        x = (x[0].at[3].set(jnp.nan), x[1])
    assert np.isnan(as_integers(transfer, x, values)[0]).all()


@pytest.mark.parametrize("orders", [(), (0, 1, 0), (2, 0, 1)])
@pytest.mark.parametrize("kernel", [TSC(), QuarticSpline()], ids=["few points", "many points"])
def test_readings_in_parallel(kernel, orders, dtype):
    """Stencils of 27 points are read by each thread, those of 125 in one sum."""
    grid = pk.Grid(pk.Box(jnp.asarray([2.0, 3.0, 1.0], dtype)), (6, 8, 7))
    rng = np.random.default_rng(3)
    position = jnp.asarray(rng.uniform(size=(300, 3)) * (2.0, 3.0, 1.0), dtype)
    layout = Layout.of(grid, grid.cell, kernel, 0.0)
    x = grid_coordinates(grid, grid.cell, kernel, position)
    flat = jnp.asarray(rng.normal(size=(2, layout.size)), dtype)
    read = [
        jax.jit(function, static_argnums=0)(Gather(layout, orders), x, flat)
        for function in (_read_in_parallel, _read_on_cpu)
    ]
    np.testing.assert_allclose(*read, rtol=1e-4, atol=64 * jnp.finfo(dtype).eps)


def test_a_gpu_gets_them():
    """No floating numbers are added by a scatter of the program for a GPU; a CPU has them still."""
    transfer, x, values = problem(jnp.dtype(jnp.float32), CIC())
    traced = jax.jit(lambda x, values: transfer(x, values)).trace(x, values)
    for platform, kind in (("cuda", "i64"), ("tpu", "i32")):
        added = added_by_scatters(traced.lower(lowering_platforms=(platform,)).as_text())
        assert added == {kind}
    assert "complex<f32>" in added_by_scatters(traced.lower(lowering_platforms=("cpu",)).as_text())


def added_by_scatters(text):
    """Types of the numbers that scatters of a lowered program add."""
    parts = text.split('"stablehlo.scatter"')[1:]
    return {
        part.split("^bb0(%arg")[1].split("tensor<")[1].split(">)")[0].split(">,")[0]
        for part in parts
    }
