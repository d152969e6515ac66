"""Error bars of functions of averages, by leaving out blocks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from physkit.core import ParameterError, as_count, explain_call


class Jackknife(NamedTuple):
    """A function of averages: its `value`, and its standard `error`."""

    value: Any
    error: Any


@explain_call
def jackknife(
    function: Callable[..., ArrayLike], *series: ArrayLike, blocks: int = 32
) -> Jackknife:
    """A function of the means of correlated series, with its standard error.

        e² = (B − 1)/B Σ_b (f_b − f̄)²,   f_b: of the means without block b

    For what is no mean itself: a variance, a ratio, a cumulant. `f_b` also takes out the bias of order 1/B.

        jackknife(lambda m2, m4: 1 - m4 / (3 * m2**2), m**2, m**4)

    **Arguments:**

    - `function`: of the means, one argument for each series; it may return an array.
    - `series`: `[t]` each, time first, of one length.
    - `blocks`: B. Blocks must be longer than the correlation time; values beyond a whole number of blocks are
      left out at the beginning.

    **Returns:** `value` and `error`.

    **Errors:** `ParameterError` for series of different lengths, or shorter than `blocks`, or `blocks` < 2.

    **Reference:** Miller, Biometrika 61, 1 (1974); Newman & Barkema, Monte Carlo Methods in Statistical Physics
    (1999), section 3.4.3.
    """
    rows = [np.asarray(x, np.float64) for x in series]
    blocks = as_count(blocks, "blocks", ParameterError)
    lengths = {x.shape[0] if x.ndim else 0 for x in rows}
    if len(lengths) != 1 or blocks < 2 or lengths.pop() < blocks:
        raise ParameterError(
            f"a jackknife of {blocks} blocks takes series of one length, of at least that many values, and at "
            f"least two blocks; got shapes {[x.shape for x in rows]}"
        )
    size = rows[0].shape[0] // blocks
    sums = [x[-blocks * size :].reshape(blocks, size, *x.shape[1:]).sum(axis=1) for x in rows]
    total = blocks * size
    full = np.asarray(function(*(s.sum(axis=0) / total for s in sums)))
    without = np.stack(
        [
            np.asarray(function(*((s.sum(axis=0) - s[b]) / (total - size) for s in sums)))
            for b in range(blocks)
        ]
    )
    value = blocks * full - (blocks - 1) * without.mean(axis=0)
    return Jackknife(value, np.sqrt((blocks - 1) * without.var(axis=0)))
