"""Elliptic equations: Poisson, Helmholtz, variable coefficients, and the projection of flows."""

from ._implicit_diffusion import (
    divergence_of_flux as divergence_of_flux,
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
