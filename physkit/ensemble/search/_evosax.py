"""The package evosax, and how it is called."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax

from physkit.core import MissingExtraError, PyTree


@contextlib.contextmanager
def open_evosax() -> Iterator[Any]:
    """The algorithms of evosax, for calls within.

    Its first import takes two seconds: it brings flax.

    **Errors:** `MissingExtraError` without the extra `physkit[evolve]`.
    """
    try:
        from evosax import algorithms  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError(
            "CMAES and OpenES need evosax: pip install physkit[evolve]"
        ) from error
    # It does not keep to strict rules of promotion; and its covariances need all digits of their products,
    # which accelerators leave out unless told otherwise.
    with (
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
        jax.default_matmul_precision("highest"),
    ):
        yield algorithms


def with_own_types(state: PyTree) -> PyTree:
    """A first state whose numbers are of the types that they have in the next generation.

    evosax begins with numbers that have no type of their own yet: the second generation would compile anew.
    """

    def own(x: jax.Array) -> jax.Array:
        return x if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else x.astype(x.dtype)

    return jax.tree.map(own, state)
