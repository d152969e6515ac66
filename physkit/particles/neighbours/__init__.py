"""Neighbours: which pairs are close enough to matter."""

from ._cells import Cells as Cells
from ._every import EveryWithin as EveryWithin, every_within as every_within
from ._halo import Halo as Halo
from ._list import SMALL as SMALL, NeighborList as NeighborList, neighbor_list as neighbor_list
from ._pairs import (
    BLOCK as BLOCK,
    AbstractPairs as AbstractPairs,
    EveryPair as EveryPair,
    ListedPairs as ListedPairs,
)
from ._rooms import fit as fit, lacking as lacking, most_needed as most_needed
from ._slab_list import SlabList as SlabList, slab_list as slab_list
