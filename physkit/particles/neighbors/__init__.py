"""Neighbors: which pairs are close enough to matter."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._all_pairs_within import (
        AllPairsWithin as AllPairsWithin,
        all_pairs_within as all_pairs_within,
    )
    from ._cells import Cells as Cells
    from ._cutoff import (
        DEFAULT_SKIN as DEFAULT_SKIN,
        require_max_cutoff as require_max_cutoff,
        space_numbers as space_numbers,
    )
    from ._find_neighbors import find_neighbors as find_neighbors
    from ._neighbor_list import (
        SMALL_SYSTEM as SMALL_SYSTEM,
        ListPlan as ListPlan,
        NeighborList as NeighborList,
        neighbor_list as neighbor_list,
        plan_list as plan_list,
    )
    from ._neighbors import AbstractNeighbors as AbstractNeighbors
    from ._pairs import (
        PAIRS_PER_BLOCK as PAIRS_PER_BLOCK,
        PAIRS_PER_LARGE_BLOCK as PAIRS_PER_LARGE_BLOCK,
        PAIRS_PER_SMALL_BLOCK as PAIRS_PER_SMALL_BLOCK,
        AbstractPairs as AbstractPairs,
        AllPairs as AllPairs,
        ListedPairs as ListedPairs,
        block_shape as block_shape,
        concatenate_blocks as concatenate_blocks,
    )
    from ._sharded_list import (
        ShardedNeighborList as ShardedNeighborList,
        sharded_neighbor_list as sharded_neighbor_list,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
