"""Conjugate gradients whose tolerance is relative to the largest entry of what is solved for."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.geometry import Grid


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
    # Here, so that equations which seldom need it do not wait for it.
    import lineax as lx

    from ._relative_cg import RelativeCG

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
