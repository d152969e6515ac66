"""Perturbed states for checks: small moves, translations, strains, other orders of particles."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import State
from physkit.geometry import AbstractSpace, Box, Free, StrainedSpace, Triclinic
from physkit.particles import AbstractBodies, Particles, RigidBodies

from ._compare import typical_magnitude
from ._trees import as_array_like, perturb, random_like

_STEP = 0.02  # how far particles move, in units of their typical distance: far within any skin


def perturb_positions(state: State, seed: int, size: float = 1.0) -> Any:
    """`state` a little later: particles displaced and kicked, other floating leaves changed by 1 %."""

    def move(node):
        if not isinstance(node, AbstractBodies):
            return perturb(node, seed, 0.01 * size)
        step = size * _STEP * typical_spacing(node) * random_like(node.position, seed)
        # Velocities, too: some forces depend on them.
        u = node.generalized_velocity
        kick = 0.1 * size * typical_magnitude(u) * random_like(u, (seed, 1))
        moved = _displace(node, step)
        if isinstance(moved, RigidBodies):
            moved = _turn(moved, size * _STEP * random_like(moved.position, (seed, 2)))
        kicked = moved.replace_velocity(as_array_like(u, np.asarray(u) + kick))
        return _constrain_velocities(kicked) if has_constraints(kicked) else kicked

    return _map_components(state, move)


def translate(state: State, seed: int) -> Any:
    """All particles of all components moved by one and the same vector, about a third of their extent."""
    bodies = [x for x in _components(state) if isinstance(x, AbstractBodies)]
    places = np.concatenate([np.asarray(x.position) for x in bodies])
    extent = float(np.max(places) - np.min(places)) + max(map(typical_spacing, bodies))
    direction = random_like(bodies[0].position[:1], seed)  # (1, dim)
    vector = extent * direction / (3 * np.max(np.abs(direction)))

    def move(node):
        if not isinstance(node, AbstractBodies):
            return node
        # Zeros of the positions' shape, so that the one vector becomes a row per particle.
        return _displace(node, vector + 0 * np.asarray(node.position))

    return _map_components(state, move)


def squeeze(state: State, factor: float) -> Any:
    """All particles pulled towards their mean position; their space stays as it is."""

    def contract(node):
        if not isinstance(node, AbstractBodies):
            return node
        x = np.asarray(node.position)
        return _displace(node, (factor - 1) * (x - np.mean(x, axis=0, keepdims=True)))

    return _map_components(state, contract)


def meet_constraints(state: State) -> Any:
    """Particles moved to where their constraints hold, with velocities that keep them."""

    def meet(node):
        if not has_constraints(node):
            return node
        return node.displace(jnp.zeros_like(node.position)).constrain_velocities()

    return _map_components(state, meet)


def has_constraints(state: State) -> bool:
    """Whether some particles are held by constraints."""
    return any(isinstance(x, Particles) and x.constraints is not None for x in _components(state))


def strain_state(state: State, strain: ArrayLike, *, keeps_angles: bool = True) -> Any:
    """x → (1 + ε)·x for all particles and the cells that they live in.

    - `keeps_angles`: a box of right angles takes the diagonal of ε only, its lengths. Otherwise all of it, by a
      `StrainedSpace`, which has no lengths.
    """

    def stretch(node):
        if not isinstance(node, AbstractBodies):
            return node

        def apply(rows):
            return rows + rows @ strain.T

        space = node.space
        if isinstance(space, Triclinic):
            space = _replace_only_leaf(space, apply(space.vectors))
        elif isinstance(space, Box):
            space = (
                _replace_only_leaf(space, space.lengths * (1 + jnp.diagonal(strain)))
                if keeps_angles
                else StrainedSpace(space, strain)
            )
        return node.replace(position=apply(node.position), space=space)

    return _map_components(state, stretch)


def grow_cells(state: State, fraction: float) -> Any:
    """Cells, and the particles in them, that are larger by this fraction along all axes."""

    def grow(node):
        if not has_cell(node):
            return node
        return strain_state(node, fraction * np.eye(node.dimension))

    return _map_components(state, grow)


def has_cell(state: State) -> bool:
    """Whether some particles live in a cell that could change."""
    return any(
        isinstance(x, AbstractBodies) and isinstance(x.space, Box | Triclinic)
        for x in _components(state)
    )


def allows_any_strain(space: AbstractSpace) -> bool:
    """Whether a sheared copy of this space is of the same kind."""
    return isinstance(space, Free | Triclinic)


def reorder(particles: AbstractBodies, order: ArrayLike) -> AbstractBodies:
    """The same particles in another order."""
    arrays = {name: getattr(particles, name) for name in particles.row_names}
    return particles.replace(
        **{
            name: as_array_like(x, np.asarray(x)[order])
            for name, x in arrays.items()
            if x is not None
        }
    )


def typical_spacing(particles: AbstractBodies) -> float:
    """Median distance from a particle to its nearest neighbor. All pairs: for small states only."""
    if particles.num_particles < 2:
        return typical_magnitude(particles.position)
    return float(_median_spacing(particles.position, particles.space))


@jax.jit
def _median_spacing(x: ArrayLike, space: AbstractSpace) -> Any:
    a, b = jnp.broadcast_arrays(x[:, None, :], x[None, :, :])  # (n, n, dim)
    d2 = jnp.sum(space.displacement(a, b) ** 2, axis=-1)
    d2 = jnp.where(jnp.eye(len(x), dtype=bool), jnp.inf, d2)  # no particle is its own neighbor
    return jnp.sqrt(jnp.median(jnp.min(d2, axis=1)))


def _displace(particles: AbstractBodies, step: ArrayLike) -> Any:
    if has_constraints(particles):
        return _displace_constrained(particles, as_array_like(particles.position, step))
    x = as_array_like(particles.position, np.asarray(particles.position) + step)
    # Wrap as a drift does: positions stay in the box, and images count how often they crossed it.
    position, crossings = _wrap_with_image(x, particles.space)
    image = np.asarray(particles.image) + np.asarray(crossings)
    return particles.replace(position=position, image=as_array_like(particles.image, image))


@jax.jit
def _displace_constrained(particles: Particles, step: ArrayLike) -> Any:
    return particles.displace(step)


@jax.jit
def _constrain_velocities(particles: Particles) -> Any:
    return particles.constrain_velocities()


@jax.jit
def _turn(bodies: RigidBodies, turn: ArrayLike) -> Any:
    turn = jnp.asarray(turn, bodies.position.dtype)
    return bodies.displace(jnp.concatenate([jnp.zeros_like(turn), turn], axis=1))


@jax.jit
def _wrap_with_image(x: ArrayLike, space: AbstractSpace) -> Any:
    return space.wrap_with_image(x)


def _replace_only_leaf(space: AbstractSpace, value: ArrayLike) -> AbstractSpace:
    leaves, structure = jax.tree.flatten(space)
    assert len(leaves) == 1
    return jax.tree.unflatten(structure, [value])


def _components(state: State) -> list[Any]:
    """The components of a state, which may be one itself."""
    return list(state.values()) if isinstance(state, dict) else [state]


def _map_components(state: State, function: Any) -> Any:
    """`function` of every component, or of the whole state where it has no components."""
    if isinstance(state, dict):
        return {name: function(component) for name, component in state.items()}
    return function(state)
