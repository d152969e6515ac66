"""The numbers of a state as NumPy arrays."""

import dataclasses
from typing import Any

import jax
import numpy as np

from physkit.core import DeclarationError, Module, State, explain_call, is_concrete


@explain_call
def to_numpy(state: State) -> Any:
    """The numbers of a state, a field, particles, or any part of a simulation, as NumPy arrays by name.

        numbers = pk.interop.to_numpy(atoms)
        numbers["velocity"], numbers["space"]["lengths"]

    Parts become dicts of their fields, and so do parts of parts; dicts, tuples and lists stay what they are.
    What holds no number is left out. Random keys are their words.

    One array needs nothing of this: `numpy.asarray(atoms.position)`. Back, constructors take NumPy arrays:
    `pk.Particles(position, velocity)`, `pk.Field(data, grid)`.

    **Errors:** `DeclarationError` for traced values, inside of `jit`, `grad` or `vmap`.
    """
    if not is_concrete(state):
        raise DeclarationError("to_numpy needs numbers: not inside of jit, grad or vmap")
    return _to_numpy(state)


def _to_numpy(tree: Any) -> Any:
    if isinstance(tree, Module):
        names = [
            field.name for field in dataclasses.fields(tree) if not field.metadata.get("static")
        ]
        parts = {name: _to_numpy(getattr(tree, name)) for name in names}
        return {name: part for name, part in parts.items() if jax.tree.leaves(part)}
    if isinstance(tree, dict):
        return {name: _to_numpy(part) for name, part in tree.items()}
    if isinstance(tree, tuple | list):
        parts = [_to_numpy(part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, jax.Array) and jax.dtypes.issubdtype(tree.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(tree))
    # Functions and text are no numbers.
    is_number = isinstance(tree, jax.Array | np.ndarray | np.generic | bool | int | float | complex)
    return np.asarray(tree) if is_number else None
