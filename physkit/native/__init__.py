"""Loops over pairs of particles and faces of cells as native code: JAX functions as C, or kernels of GPUs.

XLA makes several passes of such loops, some of which run on one core. Where there is a C compiler, sums over
pairs, neighbor searches and functions of the cells around each face are one pass on all cores of a CPU; on
NVIDIA's GPUs sums over pairs and functions at faces are one kernel, by Triton. Everywhere else, and for what is
not translated, XLA's are used.
"""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._compiler import (
        c_compiler as c_compiler,
        kernels_are_used as kernels_are_used,
        native_code_is_used as native_code_is_used,
        native_or_xla as native_or_xla,
    )
    from ._formulas import NotTranslatableError as NotTranslatableError
    from ._map_stencil import map_stencil as map_stencil
    from ._search_neighbors import (
        FoundNeighbors as FoundNeighbors,
        NearCells as NearCells,
        search_neighbors as search_neighbors,
    )
    from ._stencils import MapStencil as MapStencil
    from ._sum_over_partners import sum_over_partners as sum_over_partners
    from ._terms import TermsOfPairs as TermsOfPairs
    from .kernels._map_on_gpus import map_on_gpus as map_on_gpus
    from .kernels._sum_on_gpus import Tiling as Tiling, sum_on_gpus as sum_on_gpus
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
