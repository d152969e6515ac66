"""Linear gravity waves on the C grid, through the battery."""

import jax.numpy as jnp
import pytest

import physkit as pk
from physkit.testing import check_tendency


@pytest.mark.parametrize("dimension", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_battery(dimension):
    grid = pk.Grid(pk.Box([1.0, 2.0][:dimension], periodic=False), (4, 5)[:dimension])
    bump = lambda x, y=1.0: jnp.exp(-9 * ((x - 0.3) ** 2 + (y - 1) ** 2))
    flow = lambda k: pk.Field(
        0.1 * jnp.ones(grid.local_shape_at(grid.face(k))),
        grid,
        grid.face(k),
        pk.boundaries.Dirichlet(0.0),
    )
    surface = pk.Field.from_function(grid, bump, boundary=pk.boundaries.Neumann(0.0))
    velocity = {f"velocity_{k}": flow(k) for k in "xy"[:dimension]}
    waves = pk.equations.GravityWaves(1.3, 0.7, velocity=tuple(velocity))
    check_tendency(waves, {"elevation": surface} | velocity)
