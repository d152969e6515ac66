"""The set bits of mask words, as the indices they stand for, each platform its own way."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

from physkit.core import index_of_set_bit

from ._pairs import block_shape, concatenate_blocks


def indices_of_set_bits(
    masks: UInt32[Array, "w n"], first: Int[Array, "w n"], capacity: int
) -> Int[Array, "n k"]:
    """The first `capacity` set bits of every column of words, as indices; n where none is left.

    `first`: the index that the lowest bit of each word stands for.
    """

    def one_by_one(masks: Array, first: Array) -> Array:
        return _one_by_one(masks, first, capacity)

    def by_rank(masks: Array, first: Array) -> Array:
        return _by_rank(masks, first, capacity)

    # Bit by bit is least work, but as many launches as there are bits.
    return jax.lax.platform_dependent(masks, first, cpu=one_by_one, default=by_rank)


def _by_rank(
    masks: UInt32[Array, "w n"], first: Int[Array, "w n"], capacity: int
) -> Int[Array, "n k"]:
    """Every entry by itself: by bisection the word in which the bit of its rank lies, and the bit."""
    words, n = masks.shape
    per_word = jax.lax.population_count(masks).astype(jnp.int32)
    through_word = jnp.cumsum(per_word, axis=0, dtype=jnp.int32)
    rank = jnp.arange(capacity, dtype=jnp.int32)[None]
    column = jnp.arange(n, dtype=jnp.int32)[:, None]

    def of_word(x: Array, word: Array) -> Array:
        place = jnp.minimum(word, words - 1) * n + column
        return x.reshape(-1).at[place].get(mode="promise_in_bounds")

    # The number of words whose bits, up to their end, do not reach the rank.
    word = jnp.zeros((n, capacity), jnp.int32)
    for step in reversed([2**k for k in range(words.bit_length())]):
        more = word + step
        is_before = (more <= words) & (of_word(through_word, more - 1) <= rank)
        word = jnp.where(is_before, more, word)
    bits, before, base = (of_word(x, word) for x in (masks, through_word - per_word, first))
    return jnp.where(word < words, base + index_of_set_bit(bits, rank - before), n)


def _one_by_one(
    masks: UInt32[Array, "w n"], first: Int[Array, "w n"], capacity: int
) -> Int[Array, "n k"]:
    """The lowest bit of every column is taken off, again and again."""
    # In blocks of columns, so that the tables of a block stay in cache while bits are taken off.
    n = masks.shape[1]
    count, size = block_shape(n, capacity)

    def block(b: Int[Array, ""]) -> Int[Array, "c k"]:
        start = jnp.minimum(b * size, n - size)
        columns = (jax.lax.dynamic_slice_in_dim(a, start, size, axis=1) for a in (masks, first))
        return _take_bits(*columns, n, capacity)

    return concatenate_blocks(jax.lax.map(block, jnp.arange(count)), n)


def _take_bits(
    masks: Array, first: Int[Array, "w c"], missing: int, capacity: int
) -> Int[Array, "c k"]:
    """The lowest `capacity` set bits of every column, one after the other; `missing` after the last."""
    words, c = masks.shape
    column = jnp.arange(c, dtype=jnp.int32)
    none = jnp.full(c, words, jnp.int32)

    def next_nonempty(later: Array, word_and_index: tuple[Array, Array]) -> tuple[Array, Array]:
        word, w = word_and_index
        nearest = jnp.where(word != 0, w, later)
        return nearest, nearest

    # For every word, the next one that is not empty; `none`, the number of words, after the last. A scan from
    # the end. The tables are flat, (words + 1) · c, so that a single index reads them.
    each = jnp.arange(words, dtype=jnp.int32)
    _, after = jax.lax.scan(next_nonempty, none, (masks, each), reverse=True)
    after = jnp.append(after, none[None], axis=0).reshape(-1)
    masks = jnp.append(masks, jnp.zeros((1, c), jnp.uint32), axis=0).reshape(-1)
    first = jnp.append(first, jnp.zeros((1, c), jnp.int32), axis=0).reshape(-1)

    def take(cursor: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        w, word = cursor
        # Two's complement isolates the lowest set bit; the bits below it count its position.
        low = word & (~word + jnp.uint32(1))
        bit = jax.lax.population_count(low - jnp.uint32(1)).astype(jnp.int32)
        found = jnp.where(word != 0, first[w * c + column] + bit, missing)
        word = word ^ low
        # Go on to the next word that is not empty, so that every turn of the loop finds a bit.
        next_word = after[jnp.minimum(w + 1, words) * c + column]
        w = jnp.where(word == 0, next_word, w)
        return (w, jnp.where(word == 0, masks[w * c + column], word)), found

    w = after[:c]  # the first word that is not empty
    _, index = jax.lax.scan(take, (w, masks[w * c + column]), None, length=capacity)
    # The transpose, as a gather: the compiler would only note a transpose and leave the entries of a row as
    # far apart as they are, for every sum over the list to read.
    rank = jnp.arange(capacity, dtype=jnp.int32)[None]
    return index.reshape(-1).at[rank * c + column[:, None]].get(mode="promise_in_bounds")
