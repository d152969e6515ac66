"""All pairs of a small system: what a list is, without a list."""

from jaxtyping import Array, Bool

from physkit.core import Fault, Faults, Module, static

from .._particles import Particles
from ._cells import is_concrete
from ._neighbor_list import exceeds_max_cutoff, require_max_cutoff
from ._pairs import AllPairs


class AllPairsWithin(Module):
    """What `NeighborList` is, of every pair: nothing to build, and nothing that overflows.

    - `faults`: a cutoff beyond the image limit, as a box that shrinks comes to.
    """

    faults: Faults
    cutoff: float = static()

    @property
    def pairs(self) -> AllPairs:
        return AllPairs()

    @property
    def is_complete(self) -> Bool[Array, ""]:
        return (self.faults.bits & int(Fault.CUTOFF)) == 0

    def update(self, particles: Particles) -> "AllPairsWithin":
        beyond = exceeds_max_cutoff(particles.space, particles.dimension, self.cutoff)
        return AllPairsWithin(self.faults.set_if(Fault.CUTOFF, beyond), self.cutoff)


def all_pairs_within(particles: Particles, cutoff: float) -> AllPairsWithin:
    """Every pair of `particles`, for sums that end at `cutoff`.

    **Errors:** `CutoffError` when the cutoff is beyond the space's `image_limit`.
    """
    if is_concrete(particles.space):
        require_max_cutoff(particles.space, particles.dimension, cutoff)
    return AllPairsWithin(Faults.none(), cutoff).update(particles)
