"""Time averages of curves with error bars, in constant memory."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data, safe_divide, safe_sqrt

from ._compensated_sums import CompensatedSum

BLOCKS = 8  # there are this many blocks of equal length at least, and twice as many at most


class CurveMean(Module):
    """The mean of a curve over time, and over each of 8 to 16 stretches of time of equal length.

    The scatter of the stretches gives error bars, also of what is fitted to the curve. When all
    are full, neighbors are merged and their length doubles: memory does not grow with the run.
    """

    total: CompensatedSum
    counts: Int[Array, "blocks ..."] = data()
    num_samples: Int[Array, ""] = data()
    length: Int[Array, ""] = data()

    @staticmethod
    def zero(shape: tuple[int, ...], dtype) -> "CurveMean":
        table = (2 * BLOCKS, *shape)
        counts = jnp.zeros(table, jnp.int32)
        return CurveMean(CompensatedSum.zero(table, dtype), counts, jnp.int32(0), jnp.int32(1))

    def plus(self, curve: Float[Array, "..."], where: Bool[Array, "..."]) -> "CurveMean":
        """This mean with one more sample, at the points of `where`."""
        full = self.num_samples == 2 * BLOCKS * self.length
        merged = jax.tree.map(lambda x: jnp.where(full, _merge(x), x), (self.total, self.counts))
        total, counts = merged
        length = jnp.where(full, 2 * self.length, self.length)
        here = jnp.arange(2 * BLOCKS, dtype=jnp.int32) == self.num_samples // length
        here = here.reshape((-1,) + (1,) * curve.ndim) & where[None]
        # Two sums are merged word by word: what that rounds, it rounds log₂(samples) times a run.
        return CurveMean(
            total.plus(jnp.where(here, curve[None], 0)),
            counts + here.astype(jnp.int32),
            self.num_samples + 1,
            length,
        )

    def summary(self) -> dict[str, Array]:
        """`value` and `error` of the mean, and the stretches: `blocks` with their `weights` (samples).

        NaN where nothing came; the error is NaN with fewer than two stretches.
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
    values = jnp.where(used, values, 0)
    total = jnp.sum(weights, axis=0)
    mean = safe_divide(jnp.sum(weights * values, axis=0), total)
    scatter = jnp.where(used, values - mean[None], 0)
    variance = safe_divide(jnp.sum(weights * scatter**2, axis=0), total)
    number = jnp.sum(used, axis=0)
    degrees = jnp.where(number > 1, number - 1, 1).astype(values.dtype)
    error = safe_sqrt(variance / degrees)
    return jnp.where(number > 0, mean, jnp.nan), jnp.where(number > 1, error, jnp.nan)


def _merge(x: Array) -> Array:
    """Neighboring blocks added up, in the first half; the second half is empty again."""
    pairs = x[0::2] + x[1::2]
    return jnp.concatenate([pairs, jnp.zeros_like(pairs)])
