# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.elliptic import (
    Helmholtz as Helmholtz,
    Poisson as Poisson,
    project as project,
    solve_diffusion as solve_diffusion,
    solve_elliptic as solve_elliptic,
    solve_helmholtz as solve_helmholtz,
    solve_poisson as solve_poisson,
)
