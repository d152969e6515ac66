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
    """The solution for a symmetric positive operator, whether it converged, and the number of iterations."""
    if grid.space.comm.size > 1:
        return _solve_over_devices(grid, operator, preconditioner, rhs, rtol, max_steps)
    structure = jax.ShapeDtypeStruct(rhs.shape, rhs.dtype)

    def as_positive(function: Callable[[Array], Array]) -> lx.FunctionLinearOperator:
        return lx.FunctionLinearOperator(function, structure, lx.positive_semidefinite_tag)

    # throw=False: inside a trace nothing can be raised. Callers poison what has not converged.
    solution = lx.linear_solve(
        as_positive(operator),
        rhs,
        RelativeCG(rtol, max_steps),
        options={"preconditioner": as_positive(preconditioner)},
        throw=False,
    )
    converged = solution.result == lx.RESULTS.successful
    return solution.value, converged, solution.stats["num_steps"]


def _solve_over_devices(
    grid: Grid,
    operator: Callable[[Array], Array],
    preconditioner: Callable[[Array], Array],
    rhs: Array,
    rtol: float,
    max_steps: int,
) -> tuple[Array, Array, Array]:
    """The same iteration with inner products over all devices, which lineax does not offer."""

    def dot(a: Array, b: Array) -> Array:
        return grid.sum(a * b)

    def largest(x: Array) -> Array:
        return grid.max(jnp.abs(x))

    def solve(apply: Callable, b: Array) -> tuple[Array, tuple[Array, Array]]:
        size = largest(b)
        # A right-hand side of zeros has no scale; it ends the loop before its first iteration.
        b = b / jnp.where(size > 0, size, 1)
        z = preconditioner(b)
        start = (jnp.zeros_like(b), b, z, dot(b, z), largest(b) > rtol, jnp.int32(0))

        # All devices read the same sums and maxima, so that they leave the loop together.
        def needs_iteration(carry):
            *_, unconverged, count = carry
            return unconverged & (count < max_steps)

        # Saad, Iterative Methods for Sparse Linear Systems, 2nd ed. (2003), algorithm 9.1.
        def iterate(carry):
            x, r, p, gamma, _, count = carry
            image = apply(p)
            curvature = dot(p, image)
            # Where the iteration has come to rest, 0/0 would be NaN: there the step is 0.
            length = gamma / jnp.where(curvature == 0, 1, curvature)
            step, r = length * p, r - length * image
            z = preconditioner(r)
            next_gamma = dot(r, z)
            p = z + next_gamma / jnp.where(gamma == 0, 1, gamma) * p
            # Both residual and correction must be small, as lineax has it. NaN counts as unconverged.
            unconverged = ~((largest(r) <= rtol) & (largest(step) <= rtol))
            return x + step, r, p, next_gamma, unconverged, count + 1

        x, _, _, _, unconverged, count = jax.lax.while_loop(needs_iteration, iterate, start)
        return x * jnp.where(size > 0, size, 1), (~unconverged, count)

    # The loop has no reverse mode. Derivatives are solves with the same operator, its own transpose.
    solution, (converged, steps) = jax.lax.custom_linear_solve(
        operator, rhs, solve, symmetric=True, has_aux=True
    )
    return solution, converged, steps
