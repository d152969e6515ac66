"""Neighbours: which pairs are close enough to matter."""

from ._cells import Cells as Cells
from ._list import NeighborList as NeighborList, neighbor_list as neighbor_list
from ._pairs import (
    AbstractPairs as AbstractPairs,
    EveryPair as EveryPair,
    ListedPairs as ListedPairs,
)
from ._slab_list import SlabList as SlabList, slab_list as slab_list
