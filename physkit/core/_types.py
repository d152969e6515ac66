"""Names of the values that the contracts pass around.

Each is a pytree whose structure is its maker's own business. So nothing is checked at run time but the key;
the names tell readers which of them an argument is.
"""

from typing import Any, TypeAlias

from jaxtyping import Array

PyTree: TypeAlias = Any  # nested containers, Modules and arrays
State: TypeAlias = Any  # one component, a dict of components by name, or any pytree of arrays
Rate: TypeAlias = (
    Any  # d state / dt of the parts that change, as `shift` adds it; None where none does
)
Plan: TypeAlias = Any  # what an integrator's `prepare` returns: the constants of a run
Aux: TypeAlias = Any  # what an integrator carries from step to step: cached forces, lists, history
Cache: TypeAlias = Any  # what one term carries from step to step; None if nothing
Frame: TypeAlias = dict[str, Any]  # what observers record of one instant, or over time, by name
Key: TypeAlias = Array  # a JAX random key, `jax.random.key(0)`, or an array of them
