"""Find the neighbors of particles: by a list, over devices, or all pairs."""

from jaxtyping import Array, Int

from physkit.core import ComponentError

from .._particles import Particles
from ._all_pairs_within import all_pairs_within
from ._neighbor_list import neighbor_list
from ._neighbors import AbstractNeighbors
from ._sharded_list import sharded_neighbor_list


def find_neighbors(
    particles: Particles,
    cutoff: float,
    skin: float | None = None,
    capacity: int | None = None,
    excluded: Int[Array, "n e"] | None = None,
    use_neighbor_list: bool = True,
    with_reverse: bool = False,
) -> AbstractNeighbors:
    """The neighbors of `particles` within `cutoff`, on one device or over many.

    - `use_neighbor_list`: False for all pairs instead of a list; over devices lists are kept in any case.

    Other arguments and errors as of `neighbor_list`.
    """
    if particles.position.shape[0] == 0:
        raise ComponentError(
            "there are no particles between which a force could act: the state has 0 of them"
        )
    if particles.is_distributed:
        # Halos are chosen when a list is built, so that devices always keep one.
        return sharded_neighbor_list(particles, cutoff, skin, capacity, excluded, with_reverse)
    if not use_neighbor_list:
        return all_pairs_within(particles, cutoff)
    return neighbor_list(particles, cutoff, skin, capacity, excluded, with_reverse=with_reverse)
