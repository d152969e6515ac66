"""How closely numbers must agree, by precision and by kind of comparison: one table for all checks."""

import jax.numpy as jnp

# kind: (float32, float64), relative to the largest number that is compared
TOLERANCES: dict[str, tuple[float, float]] = {
    "same": (0.0, 0.0),  # bit for bit
    "round-off": (2e-6, 4e-15),  # the same few operations in another order
    "sum": (2e-5, 1e-12),  # long sums in another order
    "solve": (1e-4, 1e-10),  # linear solves, a few steps, transforms there and back
    "gradient": (1e-4, 1e-10),  # two ways to the same derivative, both exact
    "dot product": (1e-5, 1e-12),  # ⟨Jv, w⟩ against ⟨v, Jᵀw⟩
    "finite difference": (3e-2, 1e-6),  # a derivative against central differences
    "precision": (1e-3, 1e-3),  # a result in float32 against the same in float64
}


def tolerance(dtype, kind: str) -> float:
    """The relative tolerance for comparisons of `kind` in `dtype`."""
    single, double = TOLERANCES[kind]
    return single if jnp.finfo(dtype).bits == 32 else double
