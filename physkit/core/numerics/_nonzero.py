"""Indices of the true elements of a long array, at the cost of one pass over it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32


def nonzero_indices(mask: Bool[Array, " n"], size: int) -> Int[Array, " size"]:
    """The first `size` indices where `mask` holds, in order; n where there are no more.

    `jnp.nonzero` with a `size` returns the same, but by a running sum over all n, which takes many passes.
    Here bits are packed into words of 32, and only the words are summed up.
    """
    n, num_words = mask.shape[0], -(-mask.shape[0] // 32)
    bits = jnp.pad(mask, (0, 32 * num_words - n)).reshape(num_words, 32).astype(jnp.uint32)
    position = jnp.arange(32, dtype=jnp.uint32)[None]
    words = jnp.sum(bits << position, axis=1, dtype=jnp.uint32)
    per_word = jax.lax.population_count(words).astype(jnp.int32)
    through_word = jnp.cumsum(per_word, dtype=jnp.int32)
    rank = jnp.arange(size, dtype=jnp.int32)
    # The word in which the element of each rank lies: the first with more elements up to its end.
    word = jnp.searchsorted(through_word, rank, side="right").astype(jnp.int32)

    def take_word(x: Array) -> Array:
        return x.at[word].get(mode="clip")

    bit = index_of_set_bit(take_word(words), rank - take_word(through_word - per_word))
    indices = jnp.where(word < num_words, 32 * word + bit, n)
    # Optimization barrier: fused into a gather at these indices, XLA would compute them anew for each number
    # that is gathered.
    return jax.lax.optimization_barrier(indices)


def index_of_set_bit(word: UInt32[Array, "*m"], rank: Int[Array, "*m"]) -> Int[Array, "*m"]:
    """The index of the set bit in a word that has `rank` set bits below it, by bisection."""
    index = jnp.zeros_like(rank)
    for half in (16, 8, 4, 2, 1):
        # Count the bits in the lower half of what is left; where `rank` is beyond them, go on in the upper.
        low = word & jnp.uint32(2**half - 1)
        below = jax.lax.population_count(low).astype(rank.dtype)
        is_higher = rank >= below
        rank = jnp.where(is_higher, rank - below, rank)
        word = jnp.where(is_higher, word >> half, low)
        index = index + jnp.where(is_higher, half, 0).astype(index.dtype)
    return index
