"""Conjugate gradients of lineax in units of the right-hand side; imported only where they are used."""

from typing import Any

import jax.numpy as jnp
import lineax as lx
from jaxtyping import Array


class RelativeCG(lx.AbstractLinearSolver):
    """lineax's conjugate gradients, in units of the right-hand side.

    Derivatives are solves with the same operator and other right-hand sides, larger or smaller by many
    orders of magnitude: each needs its own scale, which a tolerance per entry (lineax's `rtol`) is not,
    and an absolute one cannot be.

    The operator is to be scaled such that its smallest eigenvalue is about one: residuals and corrections
    are held against the same tolerance.
    """

    rtol: float
    max_steps: int

    def init(self, operator: Any, options: dict[str, Any]) -> Any:
        return self._inner().init(operator, options)

    def compute(self, state: Any, vector: Array, options: dict[str, Any]) -> Any:
        size = jnp.max(jnp.abs(vector))
        size = jnp.where(size > 0, size, 1)  # a right-hand side of zeros has no scale
        solution, result, stats = self._inner().compute(state, vector / size, options)
        return solution * size, result, stats

    def transpose(self, state: Any, options: dict[str, Any]) -> Any:
        return self._inner().transpose(state, options)

    def conj(self, state: Any, options: dict[str, Any]) -> Any:
        return self._inner().conj(state, options)

    def assume_full_rank(self) -> bool:
        return True

    def _inner(self) -> lx.CG:
        return lx.CG(rtol=0.0, atol=self.rtol, max_steps=self.max_steps)
