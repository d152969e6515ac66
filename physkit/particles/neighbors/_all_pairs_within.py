"""All pairs of a small system: neighbors without a list."""

from jaxtyping import Array, Bool

from physkit.core import Fault, Faults, is_concrete, static

from .._particles import Particles
from ._cutoff import exceeds_max_cutoff, require_max_cutoff
from ._neighbors import AbstractNeighbors
from ._pairs import AllPairs


class AllPairsWithin(AbstractNeighbors):
    """All pairs, in the place of a `NeighborList`: there is nothing to build, and nothing overflows.

    - `faults`: a cutoff beyond the image limit, which a box that shrinks may come to.
    """

    faults: Faults
    cutoff: float = static()

    @property
    def pairs(self) -> AllPairs:
        return AllPairs()

    @property
    def is_complete(self) -> Bool[Array, "*b"]:
        return (self.faults.bits & int(Fault.CUTOFF)) == 0

    def update(self, particles: Particles) -> "AllPairsWithin":
        too_far = exceeds_max_cutoff(particles.space, particles.dimension, self.cutoff)
        return AllPairsWithin(self.faults.set_if(Fault.CUTOFF, too_far), self.cutoff)


def all_pairs_within(particles: Particles, cutoff: float) -> AllPairsWithin:
    """All pairs of `particles`, for sums that end at `cutoff`.

    **Errors:** `CutoffError` when the cutoff is beyond the space's `max_cutoff`.
    """
    if is_concrete(particles.space):
        require_max_cutoff(particles.space, particles.dimension, cutoff)
    return AllPairsWithin(Faults.none(), cutoff).update(particles)
