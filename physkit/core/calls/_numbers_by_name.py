"""The numbers of a tree as NumPy arrays by name."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._errors import DeclarationError
from .._types import PyTree
from ._concrete import is_concrete
from ._conversions import is_random_key


def numbers_by_name(tree: PyTree) -> Any:
    """`tree` with NumPy arrays in place of all numbers and dicts of fields in place of Modules.

    What holds no number is left out; random keys are their words.

    **Errors:** `DeclarationError` for traced values, inside of `jit`, `grad` or `vmap`.
    """
    if not is_concrete(tree):
        raise DeclarationError("to_numpy needs numbers: not inside of jit, grad or vmap")
    return _by_name(tree)


def _by_name(tree: PyTree) -> Any:
    if isinstance(tree, eqx.Module):
        names = [
            field.name for field in dataclasses.fields(tree) if not field.metadata.get("static")
        ]
        parts = {name: _by_name(getattr(tree, name)) for name in names}
        return {name: part for name, part in parts.items() if jax.tree.leaves(part)}
    if isinstance(tree, dict):
        return {name: _by_name(part) for name, part in tree.items()}
    if isinstance(tree, tuple | list):
        parts = [_by_name(part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if is_random_key(tree):
        return np.asarray(jax.random.key_data(tree))
    # Functions and text are no numbers.
    is_number = isinstance(tree, jax.Array | np.ndarray | np.generic | bool | int | float | complex)
    return np.asarray(tree) if is_number else None
