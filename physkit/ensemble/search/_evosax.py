"""The package evosax, and how it is called."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax

from physkit.core import MissingExtraError


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
            "CMAES, OpenES and DifferentialEvolution need evosax: pip install physkit[evolve]"
        ) from error
    # It does not keep to strict rules of promotion; and its covariances need all digits of their products,
    # which accelerators leave out unless told otherwise.
    with (
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
        jax.default_matmul_precision("highest"),
    ):
        yield algorithms
