"""Elliptic equations: Poisson, Helmholtz, variable coefficients, and the projection of flows."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._implicit_diffusion import (
        divergence_of_flux as divergence_of_flux,
        divide_waves as divide_waves,
        solve_diffusion as solve_diffusion,
    )
    from ._poisson import (
        Helmholtz as Helmholtz,
        Poisson as Poisson,
        solve_helmholtz as solve_helmholtz,
        solve_poisson as solve_poisson,
    )
    from ._projection import project as project
    from ._variable_coefficients import solve_elliptic as solve_elliptic
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
