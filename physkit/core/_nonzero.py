"""Where in a long array something holds, at the cost of one pass over it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32


def nonzero_indices(which: Bool[Array, " n"], size: int) -> Int[Array, " size"]:
    """The first `size` places where `which` holds, in order; n where there are no more.

    `jnp.nonzero` of a given size says the same, after a running sum over all n that costs many passes. Here
    n bits are put into words of 32, and only words are counted one after the other.
    """
    n, words = which.shape[0], -(-which.shape[0] // 32)
    bits = jnp.pad(which, (0, 32 * words - n)).reshape(words, 32).astype(jnp.uint32)
    bit = jnp.arange(32, dtype=jnp.uint32)[None]
    word = jnp.sum(bits << bit, axis=1, dtype=jnp.uint32)
    held = jax.lax.population_count(word).astype(jnp.int32)
    until = jnp.cumsum(held, dtype=jnp.int32)
    wanted = jnp.arange(size, dtype=jnp.int32)
    at = jnp.searchsorted(until, wanted, side="right").astype(jnp.int32)
    read = lambda x: x.at[at].get(mode="clip")
    inside = _place_of_bit(read(word), wanted - read(until - held))
    found = jnp.where(at < words, 32 * at + inside, n)
    # Computed once: fused into whatever reads at these places, it would be computed for each number read.
    return jax.lax.optimization_barrier(found)


def _place_of_bit(word: UInt32[Array, " m"], rank: Int[Array, " m"]) -> Int[Array, " m"]:
    """Where in a word the set bit is that has `rank` set ones below it: by halves."""
    place = jnp.zeros_like(rank)
    for half in (16, 8, 4, 2, 1):
        low = word & jnp.uint32(2**half - 1)
        below = jax.lax.population_count(low).astype(rank.dtype)
        higher = rank >= below
        rank = jnp.where(higher, rank - below, rank)
        word = jnp.where(higher, word >> half, low)
        place = place + jnp.where(higher, half, 0).astype(place.dtype)
    return place
