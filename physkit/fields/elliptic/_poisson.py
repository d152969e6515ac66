"""Poisson's and Helmholtz's equations with constant coefficients, by transforms."""

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import (
    Module,
    ParameterError,
    concrete_value,
    explain_call,
    param,
    ratio,
    scale_array,
)
from physkit.geometry import AXES, Grid, Parities, Robin

from .._field import BoundaryLike, Field
from .._stack import stack
from ..operators import AbstractScheme, Central, Spectral, laplacian
from ._complex_parts import real_and_imaginary_parts
from ._wall_parities import is_closed, solution_template, wall_parities

# A smaller relative imbalance of source and flux is taken for rounding or discretization error.
_MAX_IMBALANCE = 1e-2


@explain_call
def solve_poisson(
    source: Field,
    boundary: BoundaryLike | Field = None,
    *,
    scheme: AbstractScheme | None = None,
    t: ArrayLike = 0.0,
) -> Field:
    """The solution φ of Poisson's equation, by transforms.

        ∇²φ = f

    With `Central(2)` the discrete equation – the stencil with the ghost cells of `Grid.pad` – holds to
    rounding; `laplacian(φ, Central(2))` gives f back. Differentiable in source, boundary values and box.

    **Arguments:**

    - `source`: f at cell centers; scalar, or a vector whose components have a boundary each. Of a complex one
      real and imaginary parts are solved for one by one, each with that part of the boundary's values.
    - `boundary`: of φ: what `Field(boundary=…)` takes, or a field that has it. Any combination of
      `Dirichlet`, `Neumann`, `Outflow`, `Mirror` and axes that repeat.
    - `scheme`: `Central(2)` if left out; on grids that repeat also `Central(4)`, `Central(6)` and
      `Spectral()`.
    - `t`: the time at which boundary values that are functions are taken.

    **Errors:** `ParameterError` for a boundary that is missing, for `Spectral()` or a wide stencil
    between walls, and for incompatible data between walls where no value is given: ∫ f dV must equal the
    flux ∮ ∂φ/∂n dA.

    **Notes:** where no wall gives a value, φ has zero mean. On grids that repeat everywhere the mean of f
    is taken out (a uniform neutralizing background). Between walls it may be 1 % of the source, as
    discretization leaves it, and is taken out as well; inside a trace, where numbers cannot be seen, any
    mean is.

    **Reference:** Swarztrauber, SIAM Rev. 19, 490 (1977).
    """
    return _solve_by_components(source, boundary, None, scheme, t)


@explain_call
def solve_helmholtz(
    source: Field,
    screening: ArrayLike,
    boundary: BoundaryLike | Field = None,
    *,
    scheme: AbstractScheme | None = None,
    t: ArrayLike = 0.0,
) -> Field:
    """The solution φ of the screened Poisson equation, by transforms.

        ∇²φ − κ²φ = f

    A point source is felt as far as 1/κ. An implicit step of diffusion, u − νdt ∇²u = w, is this
    equation with κ² = 1/(νdt) and f = −κ²w.

    **Arguments:**

    - `source`, `boundary`, `scheme`, `t`: as for `solve_poisson`.
    - `screening`: κ ≥ 0, 1 / length; 0 is Poisson's equation only where some wall gives a value.

    **Errors:** as `solve_poisson`.
    """
    return _solve_by_components(source, boundary, screening, scheme, t)


class Poisson(Module):
    """∇²φ = f with its boundary, as a part of a model: call it with the source.

    **Arguments:**

    - `boundary`, `scheme`: as for `solve_poisson`.
    """

    boundary: BoundaryLike | Field = None
    scheme: AbstractScheme = Central(2)

    def __call__(self, source: Field, t: ArrayLike = 0.0) -> Field:
        """φ."""
        return solve_poisson(source, self.boundary, scheme=self.scheme, t=t)


class Helmholtz(Module):
    """∇²φ − κ²φ = f with its boundary, as a part of a model: call it with the source.

    **Arguments:**

    - `screening`: κ, 1 / length.
    - `boundary`, `scheme`: as for `solve_poisson`.
    """

    screening: Array = param()
    boundary: BoundaryLike | Field = None
    scheme: AbstractScheme = Central(2)

    def __call__(self, source: Field, t: ArrayLike = 0.0) -> Field:
        """φ."""
        return solve_helmholtz(source, self.screening, self.boundary, scheme=self.scheme, t=t)


def _solve_by_components(
    source: Field,
    boundary: BoundaryLike | Field,
    screening: ArrayLike | None,
    scheme: AbstractScheme | None,
    t: ArrayLike,
) -> Field:
    """The solution for every component, real and imaginary parts one by one."""
    scheme = Central(2) if scheme is None else scheme
    template = solution_template(source, boundary, t)
    if not source.is_real:
        sources = (source.map(part) for part in (jnp.real, jnp.imag))
        u, v = (
            _solve_by_components(part, walls, screening, scheme, t)
            for part, walls in zip(sources, real_and_imaginary_parts(template), strict=True)
        )
        return template.replace(data=jax.lax.complex(u.data, v.data))
    if not source.components:
        return template.replace(data=solve_by_transforms(source.data, template, screening, scheme))
    # A vector's components have walls of their own: a mirror turns one of them around.
    pairs = [(source[k], template[k]) for k in range(source.grid.dimension)]
    parts = [b.replace(data=solve_by_transforms(s.data, b, screening, scheme)) for s, b in pairs]
    return template.replace(data=stack(parts).data)


def solve_by_transforms(
    f: Array,
    template: Field,
    screening: ArrayLike | None,
    scheme: AbstractScheme,
    magnitude: ArrayLike = 0.0,
) -> Array:
    """The values of φ, whose boundary is that of `template`."""
    grid, kinds = template.grid, wall_parities(template)
    if any(isinstance(side, Robin) for pair in template.boundary if pair for side in pair):
        raise ParameterError(
            "Robin sides have no transform: solve_elliptic(source, 1.0, …) takes them, by iteration"
        )
    walls = [AXES[k] for k, p in enumerate(kinds) if p is not None]
    if walls and scheme != Central(2):
        raise ParameterError(
            f"{scheme!r} solves on grids that repeat; the box has walls along {', '.join(walls)}: take "
            "Central(2)"
        )
    rhs = f
    if walls:
        # What the walls add: the stencil applied to zeros between them. Known values go to the other side,
        # and the transform solves with walls of zero value or slope.
        wall_source = laplacian(template, Central(2)).data
        rhs = f - wall_source
        if screening is None and is_closed(kinds):
            require_balance(grid, f, wall_source, magnitude)
    symbol = _symbol(template, kinds, scheme)
    if screening is not None:
        number = concrete_value(screening)
        if is_closed(kinds) and number is not None and number == 0:
            raise ParameterError(
                "with a screening of 0 and no wall that gives a value this is Poisson's equation: "
                "solve_poisson"
            )
        symbol = symbol - jnp.asarray(screening, f.dtype) ** 2
    elif is_closed(kinds):
        is_constant = functools.reduce(
            operator.and_, grid.mode_phases(kinds, lambda theta: theta == 0)
        )
        is_constant = jnp.asarray(is_constant)
        # The constant mode, of which the equation says nothing, is left out. The inner `where` keeps 1/0,
        # and with it NaN, out of derivatives.
        inverse = jnp.where(is_constant, 0, ratio(1.0, jnp.where(is_constant, 1, symbol)))
        return grid.inverse_transform(scale_array(grid.transform(rhs, kinds), inverse), kinds)
    return grid.inverse_transform(
        scale_array(grid.transform(rhs, kinds), ratio(1.0, symbol)), kinds
    )


def _symbol(template: Field, kinds: Parities, scheme: AbstractScheme) -> Array:
    grid, dtype = template.grid, template.real_dtype

    # On the host, in double precision: cos θ − 1 of long waves would cancel to nearly nothing.
    def part_of(theta: np.ndarray) -> np.ndarray:
        if isinstance(scheme, Spectral):
            return -(theta**2)
        stencil = scheme._stencil(2)
        middle = len(stencil) // 2
        # A symmetric stencil whose weights add up to zero: Σ wⱼ e^(ijθ) = 2 Σ_{j>0} wⱼ (cos jθ − 1).
        waves = (2 * stencil[middle + j] * (np.cos(j * theta) - 1) for j in range(1, middle + 1))
        return sum(waves)

    parts = [
        jnp.asarray(part, dtype) * ratio(1.0, grid.spacing[axis]) ** 2
        for axis, part in enumerate(grid.mode_phases(kinds, part_of))
    ]
    return sum(parts[1:], parts[0])


def require_balance(grid: Grid, f: Array, wall_source: Array, magnitude: ArrayLike = 0.0) -> None:
    """**Errors:** `ParameterError` for sources between closed walls that differ from the flux through
    them, where numbers can be seen. `magnitude`: the sum of the magnitudes that f was computed from, whose
    rounding is no imbalance."""
    if concrete_value(f) is None or concrete_value(wall_source) is None:
        return
    inside, through = grid.sum(f), grid.sum(wall_source)
    size = float(grid.sum(jnp.abs(f)) + grid.sum(jnp.abs(wall_source)))
    imbalance = abs(float(inside - through))
    # The square root: half of the digits, a generous allowance for sums over many cells.
    rounding = float(magnitude) * float(jnp.finfo(f.dtype).eps) ** 0.5
    if imbalance > max(_MAX_IMBALANCE * size, rounding):
        volume = float(grid.cell_volume)
        raise ParameterError(
            f"incompatible data: no wall gives a value, so the source's integral {float(inside) * volume:.6g} "
            f"must equal the flux through the walls, {float(through) * volume:.6g}. Change the slopes, take "
            "the mean out of the source, or give a value (Dirichlet) at some wall"
        )
