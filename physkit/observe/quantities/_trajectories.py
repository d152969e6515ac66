"""Positions and velocities of particles, as frames of a trajectory."""

from dataclasses import KW_ONLY
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, StorageKind, static
from physkit.particles import AbstractBodies, RigidBodies

from .._observer import AbstractQuantity
from .._selection import select_particles
from .._snapshot import Snapshot


class Positions(AbstractQuantity):
    """Positions, sorted by particle id.

    **Arguments:**

    - `component`: which component, where there are several.
    - `unwrapped`: as if never wrapped into the cell.
    - `sites`: of the sites of rigid bodies, body after body; otherwise of their centers.

    **Returns:** `[n d]`, length.
    """

    component: str | None = static(default=None)
    unwrapped: bool = static(default=False)
    _: KW_ONLY
    sites: bool = static(default=False)
    storage_kind: ClassVar[StorageKind] = StorageKind.POSITIONS

    def __call__(self, snapshot: Snapshot) -> Float[Array, "n d"]:
        particles = _particles(snapshot, self.component, self.sites)
        position = particles.unwrapped if self.unwrapped else particles.position
        return sort_by_id(particles, position)


class Velocities(AbstractQuantity):
    """Velocities, sorted by particle id.

    **Arguments:**

    - `component`: which component, where there are several.
    - `sites`: of the sites of rigid bodies, body after body; otherwise of their centers.

    **Returns:** `[n d]`, length / time.
    """

    component: str | None = static(default=None)
    _: KW_ONLY
    sites: bool = static(default=False)
    storage_kind: ClassVar[StorageKind] = StorageKind.VELOCITIES

    def __call__(self, snapshot: Snapshot) -> Float[Array, "n d"]:
        particles = _particles(snapshot, self.component, self.sites)
        return sort_by_id(particles, particles.velocity)


class Orientations(AbstractQuantity):
    """Orientations of rigid bodies as unit quaternions, sorted by id.

    **Arguments:**

    - `component`: which component, where there are several.

    **Returns:** `[n 4]`, (w, x, y, z): they turn body axes into space.

    **Errors:** `ObserverError` for particles.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, "n 4"]:
        bodies = _bodies(snapshot, self.component, "orientations")
        return sort_by_id(bodies, bodies.orientation)


class AngularVelocities(AbstractQuantity):
    """Angular velocities of rigid bodies, sorted by id.

    **Arguments:**

    - `component`: which component, where there are several.
    - `body_axes`: along the principal axes; otherwise in space.

    **Returns:** `[n 3]`, 1 / time.

    **Errors:** `ObserverError` for particles.
    """

    component: str | None = static(default=None)
    body_axes: bool = static(default=False)

    def __call__(self, snapshot: Snapshot) -> Float[Array, "n 3"]:
        bodies = _bodies(snapshot, self.component, "angular velocities")
        omega = bodies.body_angular_velocity if self.body_axes else bodies.angular_velocity
        return sort_by_id(bodies, omega)


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


def _bodies(snapshot: Snapshot, component: str | None, what: str) -> RigidBodies:
    bodies = select_particles(snapshot, component)
    if not isinstance(bodies, RigidBodies):
        raise ObserverError(f"{what} are those of rigid bodies; got {type(bodies).__name__}")
    return bodies


def _particles(snapshot: Snapshot, component: str | None, sites: bool) -> AbstractBodies:
    particles = select_particles(snapshot, component)
    return particles.site_particles() if sites else particles


def sort_by_id(
    particles: AbstractBodies, x: Float[Array, "n ..."]
) -> Float[Array, "num_particles ..."]:
    """`x` of all particles of the domain, sorted by id."""
    # Over devices particles change their slots: a frame has the same order of rows at all times.
    return particles.all_rows(x)[jnp.argsort(particles.all_rows(particles.id))]
