"""All pairs of a small system: what a list is, without a list."""

from jaxtyping import Array, Bool

from physkit.core import Fault, Faults, Module, static

from .._particles import Particles
from ._cells import visible
from ._list import beyond_limit, image_limit
from ._pairs import EveryPair


class EveryWithin(Module):
    """What `NeighborList` is, of every pair: nothing to build, and nothing that overflows.

    - `faults`: a cutoff beyond the image limit, as a box that shrinks comes to.
    """

    faults: Faults
    cutoff: float = static()

    @property
    def pairs(self) -> EveryPair:
        return EveryPair()

    @property
    def usable(self) -> Bool[Array, ""]:
        return (self.faults.bits & int(Fault.CUTOFF)) == 0

    def updated(self, particles: Particles) -> "EveryWithin":
        beyond = beyond_limit(particles.space, particles.dimension, self.cutoff)
        return EveryWithin(self.faults.flag(Fault.CUTOFF, beyond), self.cutoff)


def every_within(particles: Particles, cutoff: float) -> EveryWithin:
    """Every pair of `particles`, for sums that end at `cutoff`.

    **Errors:** `CutoffError` when the cutoff is beyond the space's `image_limit`.
    """
    if visible(particles.space):
        image_limit(particles.space, particles.dimension, cutoff)
    return EveryWithin(Faults.none(), cutoff).updated(particles)
