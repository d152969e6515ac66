"""Light for tests."""

import jax.numpy as jnp
import numpy as np

from physkit.fields import ElectromagneticField
from physkit.geometry import Box, Grid
from physkit.integrators import Yee
from physkit.simulate import Simulation, simulate

BOX = Grid(Box([1.0, 1.2, 0.8], (False, True, False)), (6, 5, 4))


def random_field(grid, boundary=None, mode=None, seed=0, dtype=None):
    field = ElectromagneticField.of(grid, None, boundary, mode=mode, dtype=dtype)
    rng = np.random.default_rng(seed)
    parts = {
        n: p.replace(data=jnp.asarray(rng.normal(size=p.data.shape), p.data.dtype)).at_time(0.0)
        for n, p in field.parts().items()
    }
    return field.replace(parts)


def advance(maxwell, field, steps, courant=0.9, **options):
    dt = courant * maxwell.longest_step(field.grid)
    simulation = Simulation(Yee(maxwell), dt=dt, **options)
    return simulate(simulation, maxwell.add_memory(field), steps)
