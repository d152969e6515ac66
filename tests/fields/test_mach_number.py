"""The Mach number of a lattice is that of the fastest cell."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.fields.lattice_boltzmann import LatticeBoltzmann, Populations


def test_mach_numbers_are_those_of_the_speed():
    grid = pk.Grid(pk.Box([1.0, 1.0]), (16, 16))
    k, speed = 2 * np.pi, 0.25 / 16 / (1 / 16 / np.sqrt(3)) / np.sqrt(3)
    swirl = [
        lambda x, y: speed * jnp.cos(k * x) * jnp.sin(k * y),
        lambda x, y: -speed * jnp.sin(k * x) * jnp.cos(k * y),
    ]
    Populations.of(grid, 1 / 16 / np.sqrt(3), swirl)  # Mach 0.25 at most, and not √2 times that
    box = pk.Grid(pk.Box([1.0, 1.0], (False, False)), (16, 16))
    fast, out = pk.boundaries.Dirichlet([0.29, 0.29]), pk.boundaries.Outflow()
    flow = Populations.of(box, 1 / 16 / np.sqrt(3), boundary={"x": (fast, out), "y": out})
    stream = pk.integrators.StreamAndCollide(LatticeBoltzmann(0.01))
    with pytest.raises(pk.errors.ParameterError, match=r"at a side is at Mach 0.41"):
        pk.init(pk.Simulation(stream, dt=1 / 16 / np.sqrt(3)), flow)
