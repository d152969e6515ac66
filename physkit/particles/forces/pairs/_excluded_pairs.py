"""Pairs of particles that a pair force leaves out: bonded neighbors."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from physkit.core import ParameterError, ShapeError, as_device_array

from ..._arguments import Numbers


def as_pairs(exclude: Numbers) -> Int[np.ndarray, "m 2"]:
    """`exclude` as an array of pairs of indices of particles.

    **Errors:** `ShapeError` for another shape or for numbers that are not integers, `ParameterError` for
    negative ones.
    """
    pairs = np.asarray(exclude)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ShapeError(f"exclude is a list of pairs of integers, [m 2]; got shape {pairs.shape}")
    if pairs.min(initial=0) < 0:
        raise ParameterError(f"exclude names particles by index, from 0; got {pairs.min()}")
    return pairs


def unique_pairs(exclude: Numbers) -> Int[np.ndarray, "m 2"]:
    """`exclude` with every pair once, whichever of its ends is named first; errors as of `as_pairs`."""
    return np.unique(np.sort(as_pairs(exclude), axis=1), axis=0)


def partners_by_particle(pairs: Int[np.ndarray, "m 2"]) -> Int[Array, "p e"]:
    """The partners of each particle in `pairs`; −1 where there are no more.

    There are rows up to the last particle that is named: how many particles there are is not known yet.
    """
    rows: list[list[int]] = [[] for _ in range(int(pairs.max(initial=-1)) + 1)]
    for i, j in pairs.tolist():
        rows[i].append(j)
        rows[j].append(i)
    # Rows of one length, as long as the particle with the most partners needs.
    width = max(map(len, rows), default=0)
    table = np.full((len(rows), width), -1, np.int32)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return as_device_array(table)


def excluded_by_particle(partners: Int[Array, "p e"], n: int) -> Int[Array, "n e"]:
    """`partners` for all of `n` particles; n where there are no more.

    **Errors:** `ParameterError` where a particle beyond the last is named.
    """
    missing = n - partners.shape[0]
    if missing < 0:
        raise ParameterError(f"exclude names particle {n - missing - 1}; there are 0 … {n - 1}")
    table = jnp.pad(partners, ((0, missing), (0, 0)), constant_values=-1)
    return jnp.where(table < 0, n, table)
