"""What a folder ships, and particles for the battery."""

import jax.numpy as jnp
import numpy as np

from physkit.core import is_abstract
from physkit.geometry import Box, Triclinic
from physkit.particles import Particles, RigidBodies


def cell():
    return Box([3.6, 3.5, 3.7])


def tilted():
    return Triclinic([[3.6, 0.0, 0.0], [0.5, 3.5, 0.0], [-0.4, 0.3, 3.7]])


def lattice(space=None, n=27):
    """27 particles at distances near 1.1, two species, with charges."""
    rng = np.random.default_rng(0)
    sites = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3)[:n] * 1.12
    x, v = sites + rng.uniform(-0.08, 0.08, sites.shape), rng.normal(size=sites.shape)
    return Particles(
        jnp.asarray(x), jnp.asarray(v), rng.uniform(1, 2, n), space,
        charge=rng.normal(size=n), species=np.arange(n) % 2,
    )  # fmt: skip


def three_bodies():
    rng = np.random.default_rng(2)
    sites = 0.4 * rng.normal(size=(3, 3, 3)) + 1.5 * np.arange(3)[:, None, None]
    velocity, mass = rng.normal(size=sites.shape), rng.uniform(1, 2, (3, 3))
    return RigidBodies.from_sites(sites, mass, velocity=velocity)


def shipped_classes(folder, base):
    """The final classes that a folder exports."""
    public = [getattr(folder, name) for name in dir(folder) if not name.startswith("_")]
    kinds = {x for x in public if isinstance(x, type) and issubclass(x, base)}
    return {kind for kind in kinds if not is_abstract(kind)}
