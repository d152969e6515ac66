"""Elliptic equations with coefficients that vary, by conjugate gradients with multigrid."""

from collections.abc import Sequence
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import (
    ConvergenceError,
    Module,
    ParameterError,
    ShapeError,
    cast_floats,
    concrete_value,
    data,
    explain_call,
    poison_where,
    safe_clip,
)
from physkit.geometry import Outflow, Robin

from .._field import BoundaryLike, Field
from .._ghost_widths import ghost_widths
from ._conjugate_gradients import solve_positive
from ._multigrid import Level, Multigrid, flux_divergence
from ._poisson import require_balance
from ._wall_parities import is_closed, solution_template, wall_parities, without_values

Coefficient: TypeAlias = ArrayLike | Field  # a number, an array or a field over the cells


@explain_call
def solve_elliptic(
    source: Field,
    coefficient: Coefficient | Sequence[Field],
    reaction: Coefficient = 0.0,
    boundary: BoundaryLike | Field = None,
    *,
    guess: Field | None = None,
    rtol: float | None = None,
    max_steps: int = 200,
    t: ArrayLike = 0.0,
) -> Field:
    """The solution φ of an elliptic equation whose coefficients vary.

        ∇·(a∇φ) − cφ = f

    Second order, flux form, with the ghost cells of `Grid.pad`; conjugate gradients with a multigrid
    V-cycle, about ten iterations on any grid that halves a few times. Derivatives by a, c, f, boundary
    values and the box follow from the equation itself (one more solve, memory as for a solution).

    **Arguments:**

    - `source`: f, a scalar field at cell centers.
    - `coefficient`: a > 0: a number, an array or field at cell centers (faces take the mean of their
      neighbors; at walls its boundary, else a straight line, decides), or one field per axis on the faces.
    - `reaction`: c ≥ 0: a number, or an array or field at cell centers.
    - `boundary`: of φ, as for `solve_poisson`.
    - `guess`: where to start from; the last solution, say.
    - `rtol`: of the residual against the largest value of f; 1e-11 in double, 1e-6 in single precision,
      or what rounding allows where that is more.
    - `max_steps`: iterations before giving up.

    **Errors:** `ParameterError` for coefficients of the wrong sign and incompatible data, where numbers
    can be seen; `ConvergenceError` where the iteration does not reach `rtol`: inside a trace the solution
    is NaN then, which runs report as not finite.

    **Notes:** where no wall gives a value and c = 0, φ has zero mean and so is f made to have (as in
    `solve_poisson`). Jumps of a by many orders of magnitude, and cells much longer than wide, take more
    iterations.

    **Reference:** Tatebe, NASA CP-3224, 621 (1993).
    """
    solution = solve_with_statistics(
        source, coefficient, reaction, boundary, guess=guess, rtol=rtol, max_steps=max_steps, t=t
    )
    converged = concrete_value(solution.converged)
    if converged is not None and not np.all(converged):
        raise ConvergenceError(
            f"conjugate gradients did not converge within {max_steps} steps; raise max_steps or rtol, and "
            "look whether the coefficient is positive and finite everywhere"
        )
    return solution.phi


class Solution(Module):
    """A solution, whether the iteration converged, and how many steps it took."""

    phi: Field
    converged: Array = data()
    steps: Array = data()


def solve_with_statistics(
    source: Field,
    coefficient: Coefficient | Sequence[Field],
    reaction: Coefficient,
    boundary: BoundaryLike | Field,
    *,
    guess: Field | None = None,
    rtol: float | None = None,
    max_steps: int = 200,
    t: ArrayLike = 0.0,
) -> Solution:
    """`solve_elliptic` with its convergence, and without an error where it fails."""
    if source.components or not source.is_real:
        raise ShapeError(
            "the source of an equation with varying coefficients is one real number per cell; solve for "
            "components, real and imaginary parts one by one"
        )
    template = solution_template(source, boundary, t)
    grid, kinds = template.grid, wall_parities(template)
    faces, c = coefficients_on_faces_and_in_cells(template, coefficient, reaction)
    wall_source = flux_divergence(grid, template.boundary, faces, template.data)
    closed = is_closed(kinds) and _is_zero(reaction)
    if closed and any(kinds):
        require_balance(grid, source.data, wall_source)
    return _solve(template, source.data, wall_source, faces, c, guess, closed, rtol, max_steps)


@eqx.filter_jit
def _solve(
    template: Field,
    f: Array,
    wall_source: Array,
    faces: tuple[Array, ...],
    c: Array,
    guess: Field | None,
    closed: bool,
    rtol: float | None,
    max_steps: int,
) -> Solution:
    grid, kinds, dtype = template.grid, wall_parities(template), f.dtype
    count = float(np.prod(grid.shape))
    level = Level.of(grid, kinds, faces, c)
    # In units where the smallest eigenvalue is about one, so that residuals and corrections have like
    # tolerances; the factor drops out of the solution.
    fixed = jax.lax.stop_gradient(level)
    # The mean of the diagonal is about 2d/h²·a; the smallest eigenvalue is about that over n².
    unit = max(grid.shape) ** 2 * count / grid.sum(fixed.diagonal())

    def mean(x: Array) -> Array:
        return jnp.broadcast_to(grid.sum(x) / count, x.shape)

    # The eigenvalue that constants get where the equation gives them 0: see `operator`.
    weight = float(max(grid.shape)) ** 2
    # A preconditioner changes the way to the solution, not the solution: it needs no derivative.
    cycle = Multigrid.of(fixed)

    # Cycles know values and slopes at walls; an exchange at a wall is in the operator alone.
    has_exchange = any(isinstance(s, Robin) for pair in template.boundary if pair for s in pair)
    exchange = cast_floats(without_values(template.boundary), dtype) if has_exchange else None

    def apply(phi: Array) -> Array:
        if exchange is None:
            return level.apply(phi)
        phi = jax.lax.optimization_barrier(phi)
        return c * phi - flux_divergence(grid, exchange, faces, phi)

    def operator(phi: Array) -> Array:
        out = unit * apply(phi)
        # Closed: constants are in the null space. A rank-one term lifts them out of it, so that the
        # operator is positive; with a right-hand side of mean 0 the solution has mean 0.
        return out + weight * mean(phi) if closed else out

    def preconditioner(r: Array) -> Array:
        if not closed:
            return cycle(r) / unit
        # The exact inverse of that term on the constants, the cycle on all else.
        average = mean(r)
        out = cycle(r - average) / unit
        return out - mean(out) + average / weight

    rhs = unit * (wall_source - f)
    rhs = rhs - mean(rhs) if closed else rhs
    eps = float(jnp.finfo(dtype).eps)
    rtol = (1e-11 if dtype == jnp.float64 else 1e-6) if rtol is None else rtol
    # In these units the solution is at most about as large as the source, the operator `weight`: more
    # digits than this rounding leaves cannot be asked for.
    rtol = max(rtol, 2 * eps * weight)
    # A guess changes how long it takes, not what comes out: no derivative.
    start = None if guess is None else jax.lax.stop_gradient(guess.data)
    correction, converged, steps = solve_positive(
        grid,
        operator,
        preconditioner,
        rhs if start is None else rhs - operator(start),
        rtol,
        max_steps,
    )
    values = correction if start is None else start + correction
    # In a trace nothing can be raised: what has not converged is NaN.
    values = poison_where(values, ~converged)
    return Solution(template.replace(data=values), converged, steps)


def coefficients_on_faces_and_in_cells(
    template: Field, a: Coefficient | Sequence[Field], c: Coefficient
) -> tuple[tuple[Array, ...], Array]:
    """a/h² on the faces across every axis, and c in the cells."""
    grid, dtype = template.grid, template.real_dtype
    if isinstance(a, Sequence):
        if len(a) != grid.dimension or any(
            f.location != grid.face(k) or f.grid.shape != grid.shape for k, f in enumerate(a)
        ):
            raise ShapeError(
                f"coefficients on faces: one field per axis of {grid.shape}, on its faces"
            )
        faces = [_repeat_first_face(f, k) if grid.periodic[k] else f.data for k, f in enumerate(a)]
    else:
        cells = a if isinstance(a, Field) else template.with_values(_values_in_cells(a, template))
        faces = [_interpolate_to_faces(cells, k) for k in range(grid.dimension)]
    reaction = c.data if isinstance(c, Field) else _values_in_cells(c, template)
    for name, values in (("coefficient", faces), ("reaction", [reaction])):
        for x in values:
            _require_sign(name, x)
    spacing = grid.spacing.astype(dtype)
    return tuple(f / spacing[k] ** 2 for k, f in enumerate(faces)), reaction


def _values_in_cells(value: ArrayLike, template: Field) -> Array:
    value = jnp.asarray(value, template.real_dtype)
    grid = template.grid
    if value.ndim and value.shape not in (grid.shape, grid.local_shape):
        raise ShapeError(
            f"a coefficient of shape {value.shape} on a grid of {template.grid.shape} cells"
        )
    return jnp.broadcast_to(grid.local(value), grid.local_shape)


def _interpolate_to_faces(cells: Field, axis: int) -> Array:
    grid = cells.grid
    if cells.location != grid.cell or cells.components:
        raise ShapeError(
            f"a coefficient is one number per cell, or a tuple of fields on faces; this one sits at "
            f"{cells.location!r} with components {cells.components}"
        )
    x, n = cells.data, grid.local_shape[axis]

    def window(x: Array, first: int, count: int) -> Array:
        return jax.lax.slice_in_dim(x, first, first + count, axis=axis)

    width = ghost_widths(axis, grid.dimension, 1)
    # A ring, or a coefficient that knows its values beyond the walls.
    if cells.boundary[axis] is not None:
        x = cells.padded(width)
        return 0.5 * (window(x, 0, n + 1) + window(x, 1, n + 1))
    # Else any ghosts will do: what they make of the walls' faces is replaced below.
    sides = tuple((Outflow(), Outflow()) if k == axis else None for k in range(grid.dimension))
    padded = grid.pad(x, width, sides)
    inner = 0.5 * (window(padded, 0, n + 1) + window(padded, 1, n + 1))
    if n == 1:
        return inner
    ends = [
        _extrapolate_to_wall(window(x, i, 1), window(x, j, 1)) for i, j in ((0, 1), (n - 1, n - 2))
    ]
    # Between devices the end of a block is no wall: there the mean with the neighbor's cell stands.
    for side in (0, 1):
        if (has_wall := grid.touches_side(axis, side)) is not True:
            ends[side] = jnp.where(has_wall, ends[side], window(inner, side * n, 1))
    return jnp.concatenate([ends[0], window(inner, 1, n - 1), ends[1]], axis)


def _extrapolate_to_wall(first: Array, second: Array) -> Array:
    """The value on a wall by a straight line through two cells, but within a factor of two."""
    # The clip keeps a coefficient positive that falls steeply towards the wall.
    return safe_clip(1.5 * first - 0.5 * second, 0.5 * first, 2 * first)


def _repeat_first_face(faces: Field, axis: int) -> Array:
    """Faces across a periodic axis, `[n]`, with the first once more at the end, `[n + 1]`."""
    return faces.padded(ghost_widths(axis, faces.grid.dimension, 0, 1))


def _require_sign(name: str, values: Array) -> None:
    numbers = concrete_value(values)
    if numbers is None:
        return
    lowest = float(np.min(numbers))
    if not (lowest > 0 if name == "coefficient" else lowest >= 0):
        rule = "positive" if name == "coefficient" else "at least zero"
        raise ParameterError(f"the {name} of an elliptic equation must be {rule}; got {lowest:.6g}")


def _is_zero(reaction: Coefficient) -> bool:
    numbers = concrete_value(reaction.data if isinstance(reaction, Field) else reaction)
    return numbers is not None and not np.any(numbers)
