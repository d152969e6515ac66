"""Rigid water for tests."""

import jax.numpy as jnp
import numpy as np

from physkit.core import (
    Clock,
    StepCount,
)
from physkit.geometry import Box
from physkit.particles import (
    DistanceConstraints,
    Particles,
    RigidWater,
    constrain,
    maxwell_boltzmann,
)
from physkit.particles.forces import HarmonicTrap

OH, HH, SPACING = 0.9572, 1.5139, 3.1


FREE = HarmonicTrap(0.0)


CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


def water_positions(count=2, seed=0):
    """count³ molecules near a lattice, turned at random; the box has the length count · SPACING."""
    rng = np.random.default_rng(seed)
    height = np.sqrt(OH**2 - HH**2 / 4)
    triangle = np.array([[0.0, 0, 0], [HH / 2, height, 0], [-HH / 2, height, 0]])
    sites = np.stack(np.meshgrid(*[np.arange(count)] * 3, indexing="ij"), -1).reshape(-1, 3)
    turns = np.linalg.qr(rng.normal(size=(len(sites), 3, 3)))[0]
    x = SPACING * sites[:, None] + np.einsum("nij,aj->nai", turns, triangle)
    return x.reshape(-1, 3) % (count * SPACING)


def water_pairs(n):
    return (3 * np.arange(n)[:, None, None] + [[0, 1], [0, 2], [1, 2]]).reshape(-1, 2)


def water(kind="settle", dtype=float, count=2, temperature=1.0):
    n = count**3
    if kind == "settle":
        rigid = RigidWater(np.arange(3 * n).reshape(n, 3), OH, HH)
    else:
        rigid = DistanceConstraints(water_pairs(n), np.tile([OH, OH, HH], n))
    box = Box((count * SPACING,) * 3)
    x, mass = jnp.asarray(water_positions(count), dtype), np.tile([16.0, 1.0, 1.0], n)
    p = Particles(x, mass=mass, space=box, species=np.tile([0, 1, 1], n), constraints=rigid)
    return maxwell_boltzmann(0, constrain(p), temperature)


def errors(p, pairs, lengths):
    """The largest relative error of lengths, and of rates of lengths by the mean speed."""
    x = np.asarray(p.space.displacement(p.position[pairs[:, 0]], p.position[pairs[:, 1]]), float)
    v = np.asarray(p.velocity[pairs[:, 0]] - p.velocity[pairs[:, 1]], float)
    distance = np.linalg.norm(x, axis=1)
    rate = np.abs(np.sum(x * v, axis=1)) / distance / np.std(np.asarray(p.velocity))
    return np.abs(distance / lengths - 1).max(), rate.max()
