"""Time averages of curves with error bars, in constant memory."""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data, power_of_two_above, ratio, safe_divide, safe_sqrt

from ._compensated_sums import CompensatedSum

BLOCKS = 8  # the smallest number of blocks once they have been merged; twice as many at most


class CurveMean(Module):
    """The mean of a curve over time, and over each of 8 to 16 blocks of time of equal length.

    The scatter of the blocks gives error bars, also of parameters that are fitted to the curve. When all
    blocks are full, neighbors are merged and their length doubles: memory does not grow with the run.

    - `total`, `counts`: per block and point of the curve, the sum of samples and their number.
    - `num_samples`: since the start. `length`: of a block, in samples.
    """

    total: CompensatedSum
    counts: Int[Array, "blocks ..."] = data()
    num_samples: Int[Array, ""] = data()
    length: Int[Array, ""] = data()

    @staticmethod
    def zero(shape: tuple[int, ...], dtype: DTypeLike) -> "CurveMean":
        """The mean of no samples, of a curve of this shape."""
        table = (2 * BLOCKS, *shape)
        counts = jnp.zeros(table, jnp.int32)
        return CurveMean(CompensatedSum.zero(table, dtype), counts, jnp.int32(0), jnp.int32(1))

    def plus(self, curve: Float[Array, "..."], where: Bool[Array, "..."]) -> "CurveMean":
        """This mean with one more sample, at the points of `where`."""
        is_full = self.num_samples == 2 * BLOCKS * self.length
        # Compensated sums are merged word by word. That rounds, but only log₂(samples) times in a run.
        total, counts = jax.tree.map(
            lambda x: jnp.where(is_full, _merge(x), x), (self.total, self.counts)
        )
        length = jnp.where(is_full, 2 * self.length, self.length)
        # One sample goes to one block, at the points of `where`: (blocks, *curve).
        in_block = jnp.arange(2 * BLOCKS, dtype=jnp.int32) == self.num_samples // length
        in_block = in_block.reshape((-1,) + (1,) * curve.ndim) & where[None]
        return CurveMean(
            total.plus(jnp.where(in_block, curve[None], 0)),
            counts + in_block.astype(jnp.int32),
            self.num_samples + 1,
            length,
        )

    def summary(self) -> dict[str, Array]:
        """`value` and `error` of the mean, and the means of the `blocks` with their `weights` (samples).

        NaN where there are no samples; the error is NaN with fewer than two blocks.
        """
        weights = self.counts.astype(self.total.high.dtype)
        blocks = jnp.where(self.counts > 0, safe_divide(self.total.value, weights), jnp.nan)
        value, error = weighted_mean(blocks, weights)
        return {"value": value, "error": error, "blocks": blocks, "weights": weights}


def weighted_mean(
    values: Float[Array, "blocks ..."], weights: Float[Array, "blocks ..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Mean over blocks and its standard error from their scatter; blocks of weight 0 do not count."""
    used = weights > 0
    values = jnp.where(used, values, 0)  # blocks without samples are NaN, and 0 · NaN is NaN
    total = jnp.sum(weights, axis=0)
    mean = safe_divide(jnp.sum(weights * values, axis=0), total)
    scatter = jnp.where(used, values - mean[None], 0)
    # In units of the largest: the square of 10⁻²⁰ m² is beyond float32.
    unit = power_of_two_above(jnp.max(jnp.abs(jax.lax.stop_gradient(scatter)), axis=0))
    variance = safe_divide(jnp.sum(weights * ratio(scatter, unit[None]) ** 2, axis=0), total)
    num_used = jnp.sum(used, axis=0)
    # The inner `where` keeps the division finite, and so its derivative, where the last line drops it.
    degrees = jnp.where(num_used > 1, num_used - 1, 1).astype(values.dtype)
    error = safe_sqrt(variance / degrees) * unit
    return jnp.where(num_used > 0, mean, jnp.nan), jnp.where(num_used > 1, error, jnp.nan)


def _merge(x: Array) -> Array:
    """Sums of neighboring blocks in the first half; zeros in the second half."""
    pairs = x[0::2] + x[1::2]
    return jnp.concatenate([pairs, jnp.zeros_like(pairs)])
