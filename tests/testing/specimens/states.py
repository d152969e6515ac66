"""States for the battery, particles without any symmetry, and boxes; and a rule of `vmap` that is wrong."""

import jax
import jax.numpy as jnp
import numpy as np

from physkit.geometry import Box, Free, Triclinic
from physkit.particles import Particles


def irregular_particles(space=None, n=6, d=3, dtype=jnp.float64, seed=0) -> Particles:
    """A few particles without any symmetry in a box of about 3."""
    rng = np.random.default_rng(seed)
    sites = np.stack(np.meshgrid(*[np.arange(2)] * d), -1).reshape(-1, d)[:n] * 1.5 + 0.4
    x = sites + rng.uniform(-0.3, 0.3, sites.shape)
    v = rng.normal(size=x.shape)
    mass = rng.uniform(0.5, 2.0, len(x))
    space = Free() if space is None else space
    return Particles(
        jnp.asarray(x, dtype), jnp.asarray(v, dtype), mass, space, charge=rng.normal(size=len(x))
    )


def rectangular_box() -> Box:
    return Box([3.1, 3.3, 3.7])


def tilted_box() -> Triclinic:
    return Triclinic([[3.1, 0.0, 0.0], [0.9, 3.3, 0.0], [-0.4, 0.7, 3.7]])


def two_components() -> dict:
    return {"a": jnp.array([1.0, 2.0, 0.5]), "b": jnp.array([0.3, -0.2, 1.1])}


@jax.custom_batching.custom_vmap
def first_of_batch(x):
    """`x`; under `vmap`, by mistake, that of the first member for all."""
    return x


@first_of_batch.def_vmap
def _(size, batched, x):
    return jnp.broadcast_to(x[:1], x.shape), True
