"""Crystals for tests."""

import jax.numpy as jnp
import numpy as np

from physkit.core import Clock, StepCount
from physkit.geometry import Box
from physkit.particles import Particles
from physkit.particles.forces import (
    EmbeddedAtom,
)

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


FCC = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])


def crystal(a, basis, cells, noise=0.0, dtype=float, species=None):
    corners = np.stack(np.meshgrid(*[np.arange(cells)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    x = ((corners + basis[None]).reshape(-1, 3)) * a
    x += noise * np.random.default_rng(0).normal(size=x.shape)
    if species is not None:
        species = np.arange(len(x)) % species
    return Particles(jnp.asarray(x, dtype), space=Box([cells * a] * 3), species=species)


def alloy():
    """Two species with made-up smooth tables."""
    r, rho = np.linspace(0, 2.0, 60), np.linspace(0, 4.0, 50)
    density = [np.exp(-r) * np.maximum(1.6 - r, 0) ** 3, 0.7 * np.maximum(1.6 - r, 0) ** 3]
    pair = np.array([[1.0, 0.6], [0.6, 1.3]])[:, :, None] * np.maximum(1.6 - r, 0) ** 3
    return EmbeddedAtom(
        [-np.sqrt(rho + 0.1), -rho], density, pair, density_spacing=rho[1],
        distance_spacing=r[1], cutoff=1.6,
    )  # fmt: skip
