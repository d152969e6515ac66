"""What functions and methods of users return."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._errors import DeclarationError, PhyskitError
from .._types import PyTree, State
from ._explain import describe


def require_returned(value: Any, what: str) -> None:
    """**Errors:** `DeclarationError` for None, which a function without a return gives."""
    if value is None:
        raise DeclarationError(f"{what} returned None: is there a return missing?")


def as_state_like(state: State, new: PyTree, what: str) -> State:
    """`new` in the form of `state`, with arrays for lists and for plain numbers.

    - `what`: returned `new`, for the message.

    **Errors:** `DeclarationError` for another structure, shape or precision.
    """

    require_returned(new, what)

    def as_leaf(old: Array, value: PyTree) -> Array:
        if isinstance(value, jax.Array) and (value.shape, value.dtype) == (old.shape, old.dtype):
            return value
        try:
            array = jnp.asarray(value)
            # A whole number, or a number of Python, has no precision of its own.
            is_same = array.shape == old.shape and jnp.result_type(array, old) == old.dtype
        except (TypeError, ValueError):
            raise _complaint(old, value, what) from None
        if not is_same:
            raise _complaint(old, array, what)
        return array.astype(old.dtype)

    try:
        return jax.tree.map(as_leaf, state, new)
    except PhyskitError:
        raise
    except (TypeError, ValueError):
        raise _complaint(state, new, what) from None


def _complaint(old: PyTree, new: PyTree, what: str) -> DeclarationError:
    shown = [
        f"{jnp.result_type(x)}{list(jnp.shape(x))}" if isinstance(x, jax.Array) else describe(x)
        for x in (new, old)
    ]
    return DeclarationError(
        f"{what} returns a state of the form that it was given: {shown[0]} in the place of {shown[1]}"
    )
