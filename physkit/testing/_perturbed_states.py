"""Changing states for examinations: small moves, large moves, strains, other orders."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import State
from physkit.geometry import AbstractSpace, Box, Free, Triclinic
from physkit.particles import Particles

from ._compare import largest_magnitude
from ._trees import as_array_like, perturb, random_like

_SPACING = 0.02  # how far particles move, in units of their typical distance


def perturb_positions(state: State, seed: int, size: float = 1.0) -> Any:
    """`state` a little later: particles displaced and kicked, other floating leaves changed by 1 %."""

    def move(node):
        if not isinstance(node, Particles):
            return perturb(node, seed, 0.01 * size)
        step = size * _SPACING * min_spacing(node) * random_like(node.position, seed)
        kick = 0.1 * size * largest_magnitude(node.velocity) * random_like(node.velocity, (seed, 1))
        return _moved_by(node, step).replace(
            velocity=as_array_like(node.velocity, np.asarray(node.velocity) + kick)
        )

    return _on_particles(state, move)


def translate(state: State, seed: int) -> Any:
    """All particles moved by one and the same vector, about a third of their extent."""

    def move(node):
        if not isinstance(node, Particles):
            return node
        x = np.asarray(node.position)
        by = random_like(node.position[:1], seed)
        extent = float(np.max(x) - np.min(x)) + min_spacing(node)
        return _moved_by(node, extent * by / (3 * np.max(np.abs(by))) + 0 * x)

    return _on_particles(state, move)


def squeeze(state: State, factor: float) -> Any:
    """All particles pulled towards their mean position; their space stays as it is."""

    def squeeze(node):
        if not isinstance(node, Particles):
            return node
        x = np.asarray(node.position)
        return _moved_by(node, (factor - 1) * (x - np.mean(x, axis=0, keepdims=True)))

    return _on_particles(state, squeeze)


def strain_state(state: State, strain: ArrayLike) -> Any:
    """x → (1 + ε)·x for all particles and the cells that they live in."""

    def stretch(node):
        if not isinstance(node, Particles):
            return node
        map_rows = lambda rows: rows + rows @ strain.T
        space = node.space
        if isinstance(space, Triclinic):
            space = _with_leaf(space, map_rows(space.vectors))
        elif isinstance(space, Box):
            space = _with_leaf(space, space.lengths * (1 + jnp.diagonal(strain)))
        return node.replace(position=map_rows(node.position), space=space)

    return _on_particles(state, stretch)


def allows_any_strain(space: AbstractSpace) -> bool:
    """Whether a sheared copy of this space is of the same kind."""
    return isinstance(space, Free | Triclinic)


def reorder(particles: Particles, order: ArrayLike) -> Particles:
    """The same particles in another order."""
    rows = ("position", "velocity", "mass", "image", "id", "charge", "species", "frozen")
    there = {name: getattr(particles, name) for name in rows}
    return particles.replace(
        **{
            name: as_array_like(x, np.asarray(x)[order])
            for name, x in there.items()
            if x is not None
        }
    )


def min_spacing(particles: Particles) -> float:
    """Median distance from a particle to its nearest neighbor (for examinations: O(n²))."""
    if particles.num_particles < 2:
        return largest_magnitude(particles.position)
    return float(_spacing(particles.position, particles.space))


@jax.jit
def _spacing(x: ArrayLike, space: AbstractSpace) -> Any:
    a, b = jnp.broadcast_arrays(x[:, None, :], x[None, :, :])
    d2 = jnp.sum(space.displacement(a, b) ** 2, axis=-1)
    d2 = jnp.where(jnp.eye(len(x), dtype=bool), jnp.inf, d2)
    return jnp.sqrt(jnp.median(jnp.min(d2, axis=1)))


def _moved_by(particles: Particles, step: ArrayLike) -> Particles:
    x = as_array_like(particles.position, np.asarray(particles.position) + step)
    position, crossed = _fold(x, particles.space)
    image = np.asarray(particles.image) + np.asarray(crossed)
    return particles.replace(position=position, image=as_array_like(particles.image, image))


@jax.jit
def _fold(x: ArrayLike, space: AbstractSpace) -> Any:
    return space.wrap_with_image(x)


def _with_leaf(space: AbstractSpace, value: ArrayLike) -> AbstractSpace:
    leaves, structure = jax.tree.flatten(space)
    assert len(leaves) == 1
    return jax.tree.unflatten(structure, [value])


def _on_particles(state: State, function: Any) -> Any:
    """`function` of every component, or of the whole state where it has no components."""
    if isinstance(state, dict):
        return {name: function(component) for name, component in state.items()}
    return function(state)
