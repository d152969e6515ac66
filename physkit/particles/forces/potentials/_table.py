"""Read per-species tables, with a derivative that sums instead of scattering."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import PyTree, linear_call

_SELECT_UP_TO = 4  # species


def read_table(
    table: Float[Array, "s s"], i: Int[Array, "..."], j: Int[Array, "..."]
) -> Float[Array, "..."]:
    """table[i, j] for i and j that broadcast against each other."""
    return linear_call(_read, _Collect(table.shape[0]), (i, j), table)


def _read(residuals: PyTree, table: Array) -> Array:
    i, j = residuals
    species = table.shape[0]
    if species > _SELECT_UP_TO or i.size > j.size:
        return table[residuals]
    # Rows are read once for each i, and of a row few numbers are chosen from: faster than a gather by pair. So
    # they are in native code, whose loops are traced with one i and one j.
    rows, out = table[i], None
    for kind in range(species):
        value = rows[..., kind]
        out = value if out is None else jnp.where(j == kind, value, out)
    assert out is not None  # there is a species
    return jnp.broadcast_to(out, jnp.broadcast_shapes(i.shape, j.shape))


@dataclass(frozen=True)
class _Collect:
    """The transpose of reading: for every pair of species the sum over its readers.

    One masked sum for each entry: for the few species that tables have, many times faster than a scatter
    of millions of pairs into a handful of entries.
    """

    species: int

    def __call__(self, residuals: PyTree, cotangents: Array) -> Array:
        i, j = (jnp.broadcast_to(index, cotangents.shape) for index in residuals)
        kinds = jnp.arange(self.species, dtype=i.dtype)
        # Of one pair, as native code has it, which has no loops, and keeps a sum for each entry and particle.
        if cotangents.size == 1 and self.species <= _SELECT_UP_TO:
            is_entry = (i.reshape(()) == kinds[:, None]) & (j.reshape(()) == kinds[None])
            return jnp.where(is_entry, cotangents.reshape(()), 0)

        def entry(a: Array, b: Array) -> Array:
            return jnp.sum(jnp.where((i == a) & (j == b), cotangents, 0))

        def row(a: Array) -> Array:
            return jax.lax.map(lambda b: entry(a, b), kinds)

        # A loop over entries: all at once would hold an array of all pairs for each of them.
        return jax.lax.map(row, kinds)
