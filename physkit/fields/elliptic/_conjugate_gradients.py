"""Conjugate gradients whose tolerance is relative to the largest entry of what is solved for."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import lineax as lx
from jaxtyping import Array

from physkit.geometry import Grid


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


def solve_positive(
    grid: Grid,
    operator: Callable[[Array], Array],
    preconditioner: Callable[[Array], Array],
    rhs: Array,
    rtol: float,
    max_steps: int,
) -> tuple[Array, Array, Array]:
    """The solution for a symmetric positive operator, whether it is one, and the number of iterations."""
    if grid.space.comm.size > 1:
        return _solved_over_devices(grid, operator, preconditioner, rhs, rtol, max_steps)
    structure = jax.ShapeDtypeStruct(rhs.shape, rhs.dtype)
    positive = lambda f: lx.FunctionLinearOperator(f, structure, lx.positive_semidefinite_tag)
    found = lx.linear_solve(
        positive(operator),
        rhs,
        RelativeCG(rtol, max_steps),
        options={"preconditioner": positive(preconditioner)},
        throw=False,
    )
    return found.value, found.result == lx.RESULTS.successful, found.stats["num_steps"]


def _solved_over_devices(grid, operator, preconditioner, rhs, rtol, max_steps):
    """The same iteration with inner products over all devices, which lineax cannot be told to take."""
    dot = lambda a, b: grid.sum(a * b)
    largest = lambda x: grid.max(jnp.abs(x))

    def solve(apply: Callable, b: Array) -> tuple[Array, tuple[Array, Array]]:
        size = largest(b)
        b = b / jnp.where(size > 0, size, 1)
        z = preconditioner(b)
        start = (jnp.zeros_like(b), b, z, dot(b, z), largest(b) > rtol, jnp.int32(0))

        def unfinished(loop):
            return loop[4] & (loop[5] < max_steps)

        def iterate(loop):
            x, r, p, gamma, _, count = loop
            image = apply(p)
            curvature = dot(p, image)
            length = gamma / jnp.where(curvature == 0, 1, curvature)
            step, r = length * p, r - length * image
            z = preconditioner(r)
            after = dot(r, z)
            p = z + after / jnp.where(gamma == 0, 1, gamma) * p
            more = ~((largest(r) <= rtol) & (largest(step) <= rtol))
            return x + step, r, p, after, more, count + 1

        x, _, _, _, more, count = jax.lax.while_loop(unfinished, iterate, start)
        return x * jnp.where(size > 0, size, 1), (~more, count)

    found, (converged, steps) = jax.lax.custom_linear_solve(
        operator, rhs, solve, symmetric=True, has_aux=True
    )
    return found, converged, steps
