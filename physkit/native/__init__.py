"""Loops over pairs of particles as native code: JAX functions as C, compiled by the system's compiler.

XLA makes several passes of such loops, some of which run on one core. Where there is a C compiler, sums over
pairs and neighbor searches on CPUs are one pass on all cores; without one, XLA's are used, which are also those
of other platforms.
"""

from ._compiler import c_compiler, native_code_is_used
from ._search_neighbors import FoundNeighbors, NearCells, search_neighbors
from ._sum_over_partners import TermsOfPairs, sum_over_partners
from ._translate import NotTranslatableError

__all__ = [
    "FoundNeighbors",
    "NearCells",
    "NotTranslatableError",
    "TermsOfPairs",
    "c_compiler",
    "native_code_is_used",
    "search_neighbors",
    "sum_over_partners",
]
