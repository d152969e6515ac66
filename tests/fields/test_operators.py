"""Derivatives: order of accuracy, symbols, walls, identities of staggered differences."""

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError, ShapeError
from physkit.fields import Field, stack
from physkit.fields.operators import (
    Central,
    Spectral,
    average,
    curl,
    derivative,
    difference,
    divergence,
    gradient,
    laplacian,
    staggered_curl,
    staggered_divergence,
    staggered_gradient,
)
from physkit.fields.operators._derivative_schemes import STENCILS
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann


@pytest.mark.parametrize(("power", "order"), STENCILS)
def test_stencils_reach_their_order(power, order):
    """Slope of the error of ∂ᵖ sin x over three grids."""
    counts, errors = (16, 24, 32), []
    for n in counts:
        grid = Grid([2 * np.pi], n)
        u = Field.from_function(grid, jnp.sin)
        exact = jnp.sin(grid.coordinates()[0] + power * np.pi / 2)
        found = derivative(u, "x", power, Central(order))
        errors.append(float(jnp.max(jnp.abs(found.data - exact))))
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(slope - order) < 0.25


@pytest.mark.parametrize(("power", "order"), STENCILS)
@pytest.mark.parametrize("n", [12, 13])
def test_the_symbol_is_what_the_stencil_does_to_waves(power, order, n):
    grid = Grid([1.7], n)
    u = Field(np.random.default_rng(0).normal(size=n), grid)
    by_symbol = u.spectrum().multiply(Central(order).symbol(grid, 0, power)).field()
    by_stencil = derivative(u, 0, power, Central(order))
    np.testing.assert_allclose(by_symbol.data, by_stencil.data, atol=1e-10 * n**power)


@pytest.mark.parametrize("power", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [12, 13])
def test_spectral_derivatives_are_exact_for_waves(power, n):
    grid = Grid([2 * np.pi], n)
    u = Field.from_function(grid, lambda x: jnp.sin(5 * x))
    exact = 5.0**power * jnp.sin(5 * grid.coordinates()[0] + power * np.pi / 2)
    np.testing.assert_allclose(derivative(u, 0, power, Spectral()).data, exact, atol=1e-9)


@pytest.mark.parametrize("n", [64, 16384])
def test_symbols_of_long_waves_survive_single_precision(n):
    grid = Grid(jnp.ones(1, jnp.float32), n)
    symbol = Central(4).symbol(grid, 0, 2)
    assert symbol.dtype == jnp.float32
    np.testing.assert_allclose(symbol[1], -((2 * np.pi) ** 2), rtol=1e-5)


def test_laplacian_at_walls_is_second_order():
    counts, errors = (8, 16, 32), []
    for n in counts:
        grid = Grid(Box([1.0, 1.0], False), (n, n))
        walls = {"x": Dirichlet(0.0), "y": Neumann(0.0)}
        u = Field.from_function(
            grid, lambda x, y: jnp.sin(np.pi * x) * jnp.cos(np.pi * y), boundary=walls
        )
        errors.append(float((laplacian(u) + 2 * np.pi**2 * u).norm()))
    assert abs(-np.polyfit(np.log(counts), np.log(errors), 1)[0] - 2) < 0.15


def test_vector_operators_in_two_and_three_dimensions():
    for d, shape in ((2, (12, 12)), (3, (8, 8, 8))):
        grid = Grid([2 * np.pi] * d, shape)
        u = Field(np.random.default_rng(1).normal(size=shape), grid).spectrum().dealiased().field()
        for scheme in (Spectral(), Central(4)):
            g = gradient(u, scheme)
            np.testing.assert_allclose(curl(g, scheme).data, 0, atol=1e-12)
        np.testing.assert_allclose(
            divergence(gradient(u, Spectral()), Spectral()).data,
            laplacian(u, Spectral()).data,
            atol=1e-11,
        )
        if d == 3:
            np.testing.assert_allclose(divergence(curl(g, scheme), scheme).data, 0, atol=1e-11)


def test_divergence_uses_the_walls_of_a_vector():
    """A flow along x towards a mirror: ghosts are turned around, so the last cell is squeezed."""
    grid = Grid(Box([1.0, 1.0], (False, True)), (4, 3))
    v = stack([Field(1.0, grid, boundary=Neumann()), Field(0.0, grid, boundary=Neumann())])
    div = divergence(v.with_boundary(Mirror()))
    np.testing.assert_allclose(div.data[:, 0], [4.0, 0.0, 0.0, -4.0])


PERIODIC = [(True,) * 3, (False,) * 3, (True, False, False)]


@pytest.mark.parametrize("periodic", PERIODIC)
def test_divergence_of_curl_and_curl_of_gradient_vanish(periodic):
    grid = Grid(Box([1.0, 2.0, 3.0], periodic), (4, 3, 5))
    rng = np.random.default_rng(0)
    walls = None if all(periodic) else Neumann()
    make = lambda location: Field(
        rng.normal(size=grid.local_shape_at(location)), grid, location, walls
    )
    edges = [make(grid.edge(a)) for a in "xyz"]
    np.testing.assert_allclose(staggered_divergence(staggered_curl(edges)).data, 0, atol=1e-13)
    slopes = staggered_gradient(make(grid.node))
    assert [s.location for s in slopes] == [grid.edge(a) for a in "xyz"]
    for part in staggered_curl(slopes):
        np.testing.assert_allclose(part.data, 0, atol=1e-12)


@pytest.mark.parametrize("wraps", [True, False])
def test_minus_divergence_is_the_transpose_of_the_gradient(wraps):
    """Σ p ∇·v = −Σ v·∇p where v is 0 on the walls."""
    grid = Grid(Box([1.0, 2.0], (wraps, True)), (5, 4))
    rng = np.random.default_rng(0)
    p = Field(rng.normal(size=(5, 4)), grid, boundary=None if wraps else Neumann())
    walls = None if wraps else Dirichlet(0.0)
    faces = [grid.face(0), grid.face(1)]
    v = [Field(rng.normal(size=grid.local_shape_at(f)), grid, f, walls).at_time(0.0) for f in faces]
    left = jnp.sum(p.data * staggered_divergence(v).data)
    right = -sum(jnp.sum(a.data * b.data) for a, b in zip(v, staggered_gradient(p), strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-12)


def test_differences_and_averages_are_second_order():
    counts, errors = (8, 16, 32), []
    for n in counts:
        grid = Grid([2 * np.pi], n)
        u = Field.from_function(grid, jnp.sin)
        (x,) = grid.coordinates(grid.node)
        slope, mean = difference(u, "x"), average(u, "x")
        assert slope.location == mean.location == grid.node
        errors.append(
            float(
                jnp.max(jnp.abs(slope.data - jnp.cos(x))) + jnp.max(jnp.abs(mean.data - jnp.sin(x)))
            )
        )
        there = average(average(u, 0), 0)
        assert there.location == u.location
    assert abs(-np.polyfit(np.log(counts), np.log(errors), 1)[0] - 2) < 0.1


def test_bad_input_is_an_error():
    grid = Grid([1.0, 1.0], (4, 4))
    u = Field(1.0, grid)
    with pytest.raises(ShapeError, match="that of a vector field"):
        divergence(u)
    with pytest.raises(ShapeError, match="one field per axis"):
        staggered_divergence([u])
    with pytest.raises(ShapeError, match="one field sits at"):
        staggered_divergence([u, u])
    with pytest.raises(ParameterError, match="no axis 'z'"):
        derivative(u, "z")
    with pytest.raises(ParameterError, match="no stencil of order 8"):
        derivative(u, "x", 1, Central(8))
    with pytest.raises(ShapeError, match="has no curl"):
        curl(Field(1.0, Grid([1.0], 4), vector=True))
    with pytest.raises(ShapeError, match="that of a scalar field"):
        gradient(Field(1.0, grid, vector=True))
    bounded = Field(1.0, Grid(Box([1.0], False), 4), boundary=Neumann())
    with pytest.raises(ParameterError, match="walls along x"):
        derivative(bounded, "x", 1, Spectral())
