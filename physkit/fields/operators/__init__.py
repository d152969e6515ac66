"""Derivatives of fields: finite differences, Fourier modes, staggered locations."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._derivative_schemes import (
        AbstractScheme as AbstractScheme,
        Central as Central,
        Spectral as Spectral,
    )
    from ._differential import (
        curl as curl,
        derivative as derivative,
        divergence as divergence,
        gradient as gradient,
        laplacian as laplacian,
    )
    from ._staggered import (
        average as average,
        difference as difference,
        half_cell_neighbors as half_cell_neighbors,
        staggered_curl as staggered_curl,
        staggered_divergence as staggered_divergence,
        staggered_gradient as staggered_gradient,
    )
    from ._weighted_laplacian import weighted_laplacian as weighted_laplacian
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
