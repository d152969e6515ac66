"""Neighbors: which pairs are close enough to matter."""

from ..decomposition._halo import Halo as Halo
from ..decomposition._sharded_capacity import (
    capacity_for as capacity_for,
    max_over_devices as max_over_devices,
    shortfall as shortfall,
)
from ._all_pairs import AllPairsWithin as AllPairsWithin, all_pairs_within as all_pairs_within
from ._cells import Cells as Cells
from ._neighbor_list import (
    DEFAULT_SKIN as DEFAULT_SKIN,
    SMALL_SYSTEM as SMALL_SYSTEM,
    NeighborList as NeighborList,
    neighbor_list as neighbor_list,
)
from ._pairs import (
    PAIRS_PER_BLOCK as PAIRS_PER_BLOCK,
    AbstractPairs as AbstractPairs,
    AllPairs as AllPairs,
    ListedPairs as ListedPairs,
)
from ._sharded_list import (
    ShardedNeighborList as ShardedNeighborList,
    sharded_neighbor_list as sharded_neighbor_list,
)
