"""The package pymbar, and how it is called."""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import jax

from physkit.core import import_extra


@contextlib.contextmanager
def open_pymbar() -> Iterator[Any]:
    """The package pymbar, for calls within.

    **Errors:** `MissingExtraError` without the extra `physkit[md]`.
    """
    # It computes by JAX in double precision, which it would turn on for the whole process.
    # Nor does it keep to strict rules of promotion, where those are on.
    is_lax = jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard")
    with jax.enable_x64(True), is_lax[0], is_lax[1]:
        logger = logging.getLogger("pymbar")
        level = logger.level
        # Remarks about JAX, and about correlated data, of which `free_energies` takes care.
        logger.setLevel(logging.ERROR)
        try:
            pymbar = import_extra("pymbar", "md", "free_energies, by MBAR and WHAM,")
            with warnings.catch_warnings():
                # Imported here, because it takes part of a second.
                from scipy.optimize import OptimizeWarning

                # It gives one solver the options of another.
                warnings.simplefilter("ignore", OptimizeWarning)
                yield pymbar
        finally:
            logger.setLevel(level)
