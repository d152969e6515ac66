"""Elliptic equations with coefficients that vary, by conjugate gradients with multigrid."""

from collections.abc import Sequence
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import ConvergenceError, Module, ParameterError, ShapeError, concrete_value, data
from physkit.geometry import Outflow

from .._field import BoundaryLike, Field
from ._conjugate_gradients import solve_positive
from ._multigrid import Level, Multigrid, flux_divergence
from ._poisson import require_balance
from ._wall_parities import is_closed, parities, solution_template

Coefficient: TypeAlias = ArrayLike | Field  # a number, an array or a field over the cells


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
    done = concrete_value(solution.converged)
    if done is not None and not np.all(done):
        raise ConvergenceError(
            f"conjugate gradients did not converge within {max_steps} steps; raise max_steps or rtol, and "
            "look whether the coefficient is positive and finite everywhere"
        )
    return solution.phi


class Solution(Module):
    """A solution, whether it is one, and how many iterations it took."""

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
    blank = solution_template(source, boundary, t)
    grid, kinds = blank.grid, parities(blank)
    faces, c = _coefficients(blank, coefficient, reaction)
    added = flux_divergence(grid, blank.boundary, faces, blank.data)
    closed = is_closed(kinds) and _is_zero(reaction)
    if closed and any(kinds):
        require_balance(grid, source.data, added)
    return _solved(blank, source.data, added, faces, c, guess, closed, rtol, max_steps)


@eqx.filter_jit
def _solved(
    blank: Field,
    f: Array,
    added: Array,
    faces: tuple[Array, ...],
    c: Array,
    guess: Field | None,
    closed: bool,
    rtol: float | None,
    max_steps: int,
) -> Solution:
    grid, kinds, dtype = blank.grid, parities(blank), f.dtype
    count = float(np.prod(grid.shape))
    level = Level.of(grid, kinds, faces, c)
    # In units where the smallest eigenvalue is about one, so that residuals and corrections have like
    # tolerances; the factor drops out of the solution.
    fixed = jax.lax.stop_gradient(level)
    unit = max(grid.shape) ** 2 * count / grid.sum(fixed.diagonal())
    mean = lambda x: jnp.broadcast_to(grid.sum(x) / count, x.shape)
    weight = float(max(grid.shape)) ** 2
    # A preconditioner changes the way to the solution, not the solution: it needs no derivative.
    cycle = Multigrid.of(fixed)

    def operator(phi: Array) -> Array:
        out = unit * level.apply(phi)
        return out + weight * mean(phi) if closed else out

    def preconditioner(r: Array) -> Array:
        if not closed:
            return cycle(r) / unit
        average = mean(r)
        out = cycle(r - average) / unit
        return out - mean(out) + average / weight

    rhs = unit * (added - f)
    rhs = rhs - mean(rhs) if closed else rhs
    eps = float(jnp.finfo(dtype).eps)
    rtol = (1e-11 if dtype == jnp.float64 else 1e-6) if rtol is None else rtol
    # In these units the solution is at most about as large as the source, the operator `weight`: more
    # digits than this rounding leaves cannot be asked for.
    rtol = max(rtol, 2 * eps * weight)
    near = None if guess is None else jax.lax.stop_gradient(guess.data)
    found, converged, steps = solve_positive(
        grid,
        operator,
        preconditioner,
        rhs if near is None else rhs - operator(near),
        rtol,
        max_steps,
    )
    values = found if near is None else near + found
    values = jnp.where(converged, values, jnp.nan)
    return Solution(blank.replace(data=values), converged, steps)


def _coefficients(
    blank: Field, a: Coefficient | Sequence[Field], c: Coefficient
) -> tuple[tuple[Array, ...], Array]:
    """a/h² on the faces across every axis, and c in the cells."""
    grid, dtype = blank.grid, blank.real_dtype
    if isinstance(a, Sequence):
        if len(a) != grid.dimension or any(
            f.location != grid.face(k) or f.grid.shape != grid.shape for k, f in enumerate(a)
        ):
            raise ShapeError(
                f"coefficients on faces: one field per axis of {grid.shape}, on its faces"
            )
        faces = [_closed_ring(f, k) if grid.periodic[k] else f.data for k, f in enumerate(a)]
    else:
        cells = a if isinstance(a, Field) else blank.with_values(_values_in_cells(a, blank))
        faces = [_onto_faces(cells, k) for k in range(grid.dimension)]
    reaction = c.data if isinstance(c, Field) else _values_in_cells(c, blank)
    for name, values in (("coefficient", faces), ("reaction", [reaction])):
        for x in values:
            _require_sign(name, x)
    spacing = grid.spacing.astype(dtype)
    return tuple(f / spacing[k] ** 2 for k, f in enumerate(faces)), reaction


def _values_in_cells(value: ArrayLike, blank: Field) -> Array:
    value = jnp.asarray(value, blank.real_dtype)
    grid = blank.grid
    if value.ndim and value.shape not in (grid.shape, grid.local_shape):
        raise ShapeError(
            f"a coefficient of shape {value.shape} on a grid of {blank.grid.shape} cells"
        )
    return jnp.broadcast_to(grid.local(value), grid.local_shape)


def _onto_faces(cells: Field, axis: int) -> Array:
    grid = cells.grid
    if cells.location != grid.cell or cells.components:
        raise ShapeError(
            f"a coefficient is one number per cell, or a tuple of fields on faces; this one sits at "
            f"{cells.location!r} with components {cells.components}"
        )
    x, n = cells.data, grid.local_shape[axis]
    cut = lambda x, j, m: jax.lax.slice_in_dim(x, j, j + m, axis=axis)
    width = tuple((1, 1) if k == axis else (0, 0) for k in range(grid.dimension))
    if cells.boundary[axis] is not None:
        x = cells.padded(width)
        return 0.5 * (cut(x, 0, n + 1) + cut(x, 1, n + 1))
    sides = tuple((Outflow(), Outflow()) if k == axis else None for k in range(grid.dimension))
    padded = grid.pad(x, width, sides)
    inner = 0.5 * (cut(padded, 0, n + 1) + cut(padded, 1, n + 1))
    if n == 1:
        return inner
    ends = [_straight(cut(x, i, 1), cut(x, j, 1)) for i, j in ((0, 1), (n - 1, n - 2))]
    for side in (0, 1):
        if (has_wall := grid.touches_side(axis, side)) is not True:
            ends[side] = jnp.where(has_wall, ends[side], cut(inner, side * n, 1))
    return jnp.concatenate([ends[0], cut(inner, 1, n - 1), ends[1]], axis)


def _straight(near: Array, next_: Array) -> Array:
    """The value on a wall by a straight line through two cells, but within a factor of two."""
    return jnp.clip(1.5 * near - 0.5 * next_, 0.5 * near, 2 * near)


def _closed_ring(faces: Field, axis: int) -> Array:
    return faces.padded(tuple((0, int(k == axis)) for k in range(faces.grid.dimension)))


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
