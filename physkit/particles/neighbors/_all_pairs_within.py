"""All pairs of a small system: neighbors without a list."""

import jax
from jaxtyping import Array, Bool, Float

from physkit.core import Fault, Faults, data, is_concrete, static
from physkit.geometry import AbstractSpace

from .._particles import Particles
from ._cutoff import exceeds_max_cutoff, require_max_cutoff
from ._displacement import displacement_since
from ._neighbors import AbstractNeighbors
from ._pairs import AllPairs


class AllPairsWithin(AbstractNeighbors):
    """All pairs, in the place of a `NeighborList`: there is nothing to build, and nothing overflows.

    - `position`, `space`: as they were at the last call.
    - `faults`: a cutoff beyond the image limit, which a box that shrinks may come to; a particle that moved
      too far between two calls.
    """

    position: Float[Array, "*b n d"] = data()
    space: AbstractSpace
    faults: Faults
    cutoff: float = static()

    @property
    def pairs(self) -> AllPairs:
        return AllPairs()

    @property
    def is_complete(self) -> Bool[Array, "*b"]:
        return (self.faults.bits & int(Fault.CUTOFF)) == 0

    def update(self, particles: Particles) -> "AllPairsWithin":
        # No pair is ever missing, but a leap is as wrong as it is with a list.
        position = jax.lax.stop_gradient(particles.position)
        space = particles.space.detached()
        moved = displacement_since(self.position, self.space, position, space, self.cutoff, 0.0)
        too_far = exceeds_max_cutoff(space, particles.dimension, self.cutoff)
        faults = self.faults.set_if(Fault.DISPLACEMENT, moved.is_leap)
        faults = faults.set_if(Fault.CUTOFF, too_far)
        return AllPairsWithin(position, space, faults, self.cutoff)


def all_pairs_within(particles: Particles, cutoff: float) -> AllPairsWithin:
    """All pairs of `particles`, for sums that end at `cutoff`.

    **Errors:** `CutoffError` when the cutoff is beyond the space's `max_cutoff`.
    """
    if is_concrete(particles.space):
        require_max_cutoff(particles.space, particles.dimension, cutoff)
    position, space = jax.lax.stop_gradient(particles.position), particles.space.detached()
    too_far = exceeds_max_cutoff(space, particles.dimension, cutoff)
    faults = Faults.none().set_if(Fault.CUTOFF, too_far)
    return AllPairsWithin(position, space, faults, cutoff)
