"""Forces on particles."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import static

from .._observer import AbstractQuantity
from .._selection import select_forces, select_particles
from .._snapshot import Snapshot
from ._trajectories import sort_by_id


class ParticleForces(AbstractQuantity):
    """The force on each particle, sorted by particle id.

    **Arguments:**

    - `component`: which component, where there are several.

    **Returns:** `[n d]`, energy / length.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, "n d"]:
        particles = select_particles(snapshot, self.component)
        total = jnp.zeros_like(particles.position)
        for term, cache in select_forces(snapshot, self.component):
            force, _ = term(snapshot.clock, snapshot.state, cache)
            if not isinstance(force, dict):
                total = total + force
            elif self.component in force:
                total = total + force[self.component]
        return sort_by_id(particles, total)
