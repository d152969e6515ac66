"""Linear gravity waves on the C grid, through the battery."""

import jax.numpy as jnp

import physkit as pk
from physkit.testing import check_tendency


def test_battery():
    grid = pk.Grid(pk.Box([1.0, 2.0], periodic=False), (4, 5))
    bump = lambda x, y: jnp.exp(-9 * ((x - 0.3) ** 2 + (y - 1) ** 2))
    flow = lambda k: pk.Field(
        0.1 * jnp.ones(grid.local_shape_at(grid.face(k))),
        grid,
        grid.face(k),
        pk.boundaries.Dirichlet(0.0),
    )
    surface = pk.Field.from_function(grid, bump, boundary=pk.boundaries.Neumann(0.0))
    state = {"elevation": surface, "velocity_x": flow("x"), "velocity_y": flow("y")}
    check_tendency(pk.equations.GravityWaves(1.3, 0.7), state)
