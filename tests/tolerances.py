"""How closely numbers must agree, by precision and by kind of comparison: one table for all tests."""

import jax.numpy as jnp

_TABLE = {
    # kind: (float32, float64), relative
    "round-off": (2e-6, 4e-15),  # the same few operations in another order
    "sum": (2e-5, 1e-12),  # long sums in another order
    "solve": (1e-4, 1e-10),  # linear solves, transforms there and back
    "gradient": (1e-4, 1e-10),  # two ways to the same derivative, both exact
    "finite difference": (3e-2, 1e-6),  # a derivative against a central difference
}


def tolerance(dtype, kind: str) -> float:
    """The relative tolerance for comparisons of `kind` in `dtype`."""
    single, double = _TABLE[kind]
    return single if jnp.finfo(dtype).bits == 32 else double
