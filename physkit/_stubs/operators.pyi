# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.operators import (
    average as average,
    curl as curl,
    derivative as derivative,
    difference as difference,
    divergence as divergence,
    gradient as gradient,
    laplacian as laplacian,
    staggered_curl as staggered_curl,
    staggered_divergence as staggered_divergence,
    staggered_gradient as staggered_gradient,
    weighted_laplacian as weighted_laplacian,
)
from physkit.fields.equations import (
    project_solenoidal as project_solenoidal,
    velocity_from_vorticity as velocity_from_vorticity,
    vorticity as vorticity,
)
