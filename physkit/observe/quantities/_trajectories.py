"""Positions and velocities of particles, as frames of a trajectory."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, StorageKind, static
from physkit.particles import Particles

from .._observer import AbstractQuantity
from .._selection import select_particles
from .._snapshot import Snapshot


class Positions(AbstractQuantity):
    """Positions, sorted by particle id.

    **Arguments:**

    - `component`: which component, where there are several.
    - `unwrapped`: as if never wrapped into the cell.

    **Returns:** `[n d]`, length.
    """

    component: str | None = static(default=None)
    unwrapped: bool = static(default=False)
    storage_kind: ClassVar[StorageKind] = StorageKind.POSITIONS

    def __call__(self, snapshot: Snapshot) -> Float[Array, "n d"]:
        particles = select_particles(snapshot, self.component)
        position = particles.unwrapped if self.unwrapped else particles.position
        return sort_by_id(particles, position)


class Velocities(AbstractQuantity):
    """Velocities, sorted by particle id.

    **Arguments:**

    - `component`: which component, where there are several.

    **Returns:** `[n d]`, length / time.
    """

    component: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.VELOCITIES

    def __call__(self, snapshot: Snapshot) -> Float[Array, "n d"]:
        particles = select_particles(snapshot, self.component)
        return sort_by_id(particles, particles.velocity)


class BoxVectors(AbstractQuantity):
    """The lattice vectors of the box that particles are in.

    Beside positions of the same interval it is the box of their trajectory, frame by frame. A run whose box
    changes needs it there: `Every(100, x=Positions(), cell=BoxVectors())`.

    **Arguments:**

    - `component`: which component, where there are several.

    **Returns:** `[d d]`, the vectors as rows, length.

    **Errors:** `ObserverError` in open space, which has no cell.
    """

    component: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.CELL

    def __call__(self, snapshot: Snapshot) -> Float[Array, "d d"]:
        particles = select_particles(snapshot, self.component)
        cell = particles.space.cell(particles.dimension)
        if cell is None:
            raise ObserverError(f"{type(particles.space).__name__} has no cell to record")
        return cell


def sort_by_id(particles: Particles, x: Float[Array, "n ..."]) -> Float[Array, "num_particles ..."]:
    """`x` of all particles of the domain, sorted by id."""
    # Over devices particles change their slots: a frame has the same order of rows at all times.
    return particles.all_rows(x)[jnp.argsort(particles.all_rows(particles.id))]
