"""Batches: which rows of the data each step of a descent sees."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    Key,
    ObjectiveError,
    ParameterError,
    PyTree,
    ShapeError,
)

MIN_EPOCHS = 20  # of which a tenth has a scatter


@dataclasses.dataclass(frozen=True)
class Batches:
    """Rows in an order drawn anew for each epoch, so many at a time.

    Where they do not come out even, the last rows of an epoch's order are left out: others each time.
    """

    size: int
    rows: int
    key: Key

    @staticmethod
    def of(size: int | None, data: PyTree, key: Key | None) -> "Batches | None":
        """Batches of this size; None where there are none.

        **Errors:** `ObjectiveError` without data; `ShapeError` where their arrays differ in their first axis;
        `ParameterError` for a size larger than that.
        """
        if size is None:
            return None
        arrays = jax.tree.leaves(data)
        if not arrays:
            raise ObjectiveError("batch_rows takes rows of data=…, and there are none")
        counts = {x.shape[0] if x.ndim else 0 for x in arrays}
        if len(counts) != 1:
            raise ShapeError(
                f"batches take rows of all arrays of the data; their first axes are {sorted(counts)}"
            )
        (rows,) = counts
        if size > rows:
            raise ParameterError(f"batch_rows={size} is more than the data have rows, {rows}")
        return Batches(size, rows, jax.random.key(0) if key is None else key)

    @property
    def per_epoch(self) -> int:
        """Steps of an epoch."""
        return self.rows // self.size

    def take(self, inputs: Any, count: jax.Array) -> Any:
        """`inputs` with the rows of step number `count` alone."""
        # By the number of the step, and by nothing that went before: a fit that goes on sees the same rows.
        key = jax.random.fold_in(self.key, count // self.per_epoch)
        order = jax.random.permutation(key, self.rows)
        begin = count % self.per_epoch * self.size
        index = jax.lax.dynamic_slice(order, (begin,), (self.size,))
        return inputs._replace(data=jax.tree.map(lambda x: jnp.take(x, index, axis=0), inputs.data))

    def is_flat(self, losses: np.ndarray, tolerance: float) -> np.ndarray:
        """Whether the last tenth of the epochs was no lower than the tenth before, within the scatter.

        Or within `tolerance` of the loss. Losses are `[steps s]`; False for fewer than `MIN_EPOCHS`.
        """
        count = len(losses) // self.per_epoch
        tail = count // 10
        if count < MIN_EPOCHS:
            return np.zeros(losses.shape[1], bool)
        epochs = losses[: count * self.per_epoch].reshape(count, self.per_epoch, -1).mean(axis=1)
        last, before = epochs[-tail:], epochs[-2 * tail : -tail]
        fall = before.mean(axis=0) - last.mean(axis=0)
        scatter = np.sqrt((last.var(axis=0, ddof=1) + before.var(axis=0, ddof=1)) / tail)
        return fall <= 2 * scatter + tolerance * np.abs(last.mean(axis=0))
