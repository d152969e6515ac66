# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.ensemble import (
    ParameterRange as ParameterRange,
    SweepAxis as SweepAxis,
    cartesian_product as cartesian_product,
    grid as grid,
    initial_states as initial_states,
    latin_hypercube as latin_hypercube,
    posterior_samples as posterior_samples,
    random as random,
    sobol as sobol,
    zip_axes as zip_axes,
)
