"""Error bars of correlated series by blocking, of stored series and of streams."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, ParameterError, data, explain_call, safe_divide, safe_sqrt

from ._compensated_sums import Moments

LEVELS = 30  # block lengths 1, 2, 4, … 2²⁹ samples
_MIN_BLOCKS = 8  # with fewer blocks an error bar is mostly noise


class BlockAverageResult(NamedTuple):
    """A mean with its error bar, and the table of levels from which the error bar was chosen.

    - `mean`: over the whole series.
    - `error`: standard error of the mean at the plateau.
    - `converged`: whether a plateau was reached. If not, `error` is the largest of the levels
      with enough blocks, a lower bound: run longer.
    - `level`: blocks at the plateau are 2^level samples long.
    - `errors`, `uncertainties`: per level, the estimate and its own standard error.
    - `counts`: per level, how many blocks there are.
    """

    mean: ArrayLike
    error: ArrayLike
    converged: ArrayLike
    level: ArrayLike
    errors: ArrayLike
    uncertainties: ArrayLike
    counts: ArrayLike


@explain_call
def block_average(series: Any) -> BlockAverageResult:
    """Mean and standard error of a correlated, stationary series by blocking.

        e_ℓ² = c₀(ℓ) / (n_ℓ − 1),   n_ℓ blocks of 2^ℓ values,   c₀ their variance

    Neighbors are averaged in pairs again and again; e_ℓ grows until blocks are longer than the
    correlation time and then stays on a plateau. The plateau is the first level with
    2^(3ℓ) > 2 n (e_ℓ/e₀)⁴.

    **Arguments:**

    - `series`: `[t]` or `[t …]`, any unit; time first. Summed in float64.

    **Errors:** `ParameterError` for fewer than two values.

    **Good values:** series of at least a hundred correlation times, without the equilibration.

    **Reference:** Flyvbjerg & Petersen, J. Chem. Phys. 91, 461 (1989), eq. 26–28; the rule for the
    plateau: Lee, Conduit, Nemec, López Ríos & Drummond, Phys. Rev. E 83, 066706 (2011), sec. III.
    """
    values = np.asarray(series, np.float64)
    if values.ndim == 0 or len(values) < 2:
        raise ParameterError(f"a block average needs at least two values; got shape {values.shape}")
    mean, counts, errors = values.mean(axis=0), [], []
    while len(values) >= 2:
        counts.append(len(values))
        errors.append(values.std(axis=0) / np.sqrt(len(values) - 1))
        # Pairs of neighbors; the last value of an odd number is dropped.
        values = 0.5 * (values[0 : len(values) // 2 * 2 : 2] + values[1::2])
    table = np.stack(errors)  # (levels, …)
    counts = np.array(counts, np.int32).reshape((-1,) + (1,) * (table.ndim - 1))
    fields = _plateau(jnp.asarray(table), jnp.broadcast_to(jnp.asarray(counts), table.shape))
    return BlockAverageResult(mean, *(np.asarray(x) for x in fields))


class StreamingBlocks(Module):
    """`block_average` of a stream that is never stored, in constant memory.

    - `moments`: of the complete blocks, per level.
    - `waiting`: per level, the last complete block.
    - `num_samples`: since the start.
    """

    moments: Moments
    waiting: Float[Array, "levels ..."] = data()
    num_samples: Int[Array, ""] = data()

    @staticmethod
    def zero(shape: tuple[int, ...], dtype: DTypeLike) -> "StreamingBlocks":
        """The blocks of no samples, each of this shape."""
        table = (LEVELS, *shape)
        return StreamingBlocks(Moments.zero(table, dtype), jnp.zeros(table, dtype), jnp.int32(0))

    def plus(self, x: Float[Array, "..."]) -> "StreamingBlocks":
        """These blocks with one more value."""
        samples = self.num_samples + 1
        # A block of level ℓ is complete when 2^ℓ divides the number of samples; it is then the mean
        # of the block of level ℓ−1 that waits and of the one that has just been completed.
        values = [x]
        for level in range(LEVELS - 1):
            values.append(0.5 * (self.waiting[level] + values[-1]))
        # 2^ℓ divides the number where its last ℓ bits are zero.
        complete = (samples & (2 ** jnp.arange(LEVELS, dtype=jnp.int32) - 1)) == 0
        where = jnp.broadcast_to(complete.reshape((LEVELS,) + (1,) * x.ndim), self.waiting.shape)
        table = jnp.stack(values)  # (levels, …), of which only complete blocks are used
        return StreamingBlocks(
            self.moments.plus(table, where), jnp.where(where, table, self.waiting), samples
        )

    def result(self) -> BlockAverageResult:
        """The same as `block_average` of the whole series."""
        counts = self.moments.count
        deviations = jnp.where(counts > 1, self.moments.deviation, 0)
        # The unbiased variance over n is c₀ over n − 1.
        errors = safe_divide(deviations, safe_sqrt(counts.astype(deviations.dtype)))
        return BlockAverageResult(self.moments.mean[0], *_plateau(errors, counts))


def _plateau(
    errors: Float[Array, "levels ..."], counts: Int[Array, "levels ..."]
) -> tuple[Array, ...]:
    """Choose the level of the plateau; return the fields of the result after `mean`."""
    levels = jnp.arange(len(errors)).reshape((-1,) + (1,) * (errors.ndim - 1))
    levels = jnp.broadcast_to(levels, errors.shape)
    growth = safe_divide(errors, jnp.broadcast_to(errors[:1], errors.shape))
    total = counts[:1].astype(errors.dtype)
    # Lee et al. 2011, sec. III: B³ > 2 n (e_ℓ/e₀)⁴ with blocks of B = 2^ℓ samples.
    is_long = 2.0 ** (3.0 * levels.astype(errors.dtype)) > 2 * total * growth**4
    is_flat: Bool[Array, "levels ..."] = is_long & (counts >= 2)
    converged = jnp.any(is_flat, axis=0)
    usable = jnp.where((counts >= _MIN_BLOCKS) | ((levels == 0) & (counts >= 2)), errors, 0)
    # `argmax` of booleans is the first that is true.
    level = jnp.where(converged, jnp.argmax(is_flat, axis=0), jnp.argmax(usable, axis=0))
    error = jnp.take_along_axis(errors, level[None], axis=0)[0]
    error = jnp.where(counts[0] >= 2, error, jnp.nan)
    # Flyvbjerg & Petersen, eq. 28: the relative error of an error bar from n blocks is 1/√(2(n − 1)).
    uncertainties = safe_divide(errors, safe_sqrt(2 * (counts - 1).astype(errors.dtype)))
    return error, converged, level, errors, uncertainties, counts
