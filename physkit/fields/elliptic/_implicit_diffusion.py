"""Implicit steps of diffusion, between any sides and wherever in the cells a field sits."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import ParameterError, ShapeError, explain_call
from physkit.geometry import (
    AbstractBoundary,
    Dirichlet,
    Mirror,
    Neumann,
    Outflow,
    Periodic,
    Robin,
)

from .._field import Field
from .._wall_values import zero_on_walls
from ..operators import Central, laplacian
from ._complex_parts import real_and_imaginary_parts
from ._fast_diagonalization import Edge, from_modes, mode_symbols, to_modes
from ._multigrid import flux_divergence
from ._variable_coefficients import (
    Coefficient,
    coefficients_on_faces_and_in_cells,
    solve_with_statistics,
)


@explain_call
def solve_diffusion(field: Field, amount: ArrayLike, *, varies: bool = False) -> Field:
    """An implicit step of diffusion, solved to rounding: u of

        u − a ∇²u = w

    with the second-order stencil and the boundary of `field`, inhomogeneous values included. Differentiable in
    w, a, boundary values and box.

    **Arguments:**

    - `field`: w, at cell centers, faces, edges or nodes; of any components. A boundary that depends on time is
      to be evaluated before (`Field.at_time`). Real and imaginary parts are solved for one by one, each with
      that part of the boundary's values.
    - `amount`: a = ν·dt ≥ 0, length²; one number, or one per component.
    - `varies`: `amount` is one number per cell, the same for all components, and the term ∇·(a∇u).

    **Errors:** `ParameterError` for a complex field beside a `Robin` side with a complex coefficient;
    `ShapeError` for another number of amounts than components.

    **Notes:** `Periodic`, `Dirichlet`, `Neumann`, `Outflow` and `Mirror` sides by fast diagonalization; `Robin`
    by conjugate gradients with multigrid, at cell centers.

    **Reference:** Lynch, Rice & Thomas, Numer. Math. 6, 185 (1964).
    """
    amount = jnp.asarray(amount, field.real_dtype)
    if not field.is_real:
        parts = [
            solve_diffusion(part, amount, varies=varies).data
            for part in real_and_imaginary_parts(field)
        ]
        return field.replace(data=jax.lax.complex(*parts))
    if field.components:
        if not varies and amount.size > 1 and amount.shape != field.components:
            raise ShapeError(
                f"diffusivities of shape {list(amount.shape)} for {list(field.components)} components: "
                "give one number, or one per component"
            )
        shape, flat = (
            field.data.shape,
            field.data.reshape(-1, *field.data.shape[len(field.components) :]),
        )
        parts = [
            _solve(
                field[k]
                if len(field.components) == 1
                else field.replace(data=flat[k], vector=False),
                amount if varies or amount.size == 1 else amount.reshape(-1)[k],
                varies,
            )
            for k in range(flat.shape[0])
        ]
        return field.replace(data=jnp.stack(parts).reshape(shape))
    return field.replace(data=_solve(field, amount, varies))


def divergence_of_flux(field: Field, coefficient: Coefficient) -> Field:
    """∇·(a∇u) of a scalar field at cell centers, by the fluxes through faces that implicit steps solve for."""
    template = field.replace(data=jnp.zeros_like(field.data))
    faces, _ = coefficients_on_faces_and_in_cells(template, coefficient, 0.0)
    return field.with_values(flux_divergence(field.grid, field.boundary, faces, field.data))


def _solve(field: Field, amount: Array, varies: bool) -> Array:
    """The values of u, for one real component."""
    sides = [side for pair in field.boundary if pair is not None for side in pair]
    if varies or any(isinstance(side, Robin) for side in sides):
        # From w on, so that residuals are those of the change: what is kept does not drift by the tolerance.
        source = field * -1.0
        return solve_with_statistics(
            source, amount, 1.0, field, guess=field, rtol=_rtol(field)
        ).phi.data
    # Only the change is solved for, δ − a∇²δ = a∇²w: rounding is of it, so that ∫w stays where nothing leaves.
    given = _zero_between_walls(field).data + zero_on_walls(field, field.data)
    change = zero_on_walls(field, amount * laplacian(field.replace(data=given), Central(2)).data)
    return given + divide_waves(field, change, lambda bend: 1 - amount * bend)


def _zero_between_walls(field: Field) -> Field:
    """0 inside, with the boundary of `field`, its values on walls included."""
    return field.replace(data=jnp.zeros_like(field.data)).with_boundary(field)


def divide_waves(field: Field, values: Array, divisor: Callable[[Array], Array]) -> Array:
    """`values` with every wave between the sides of `field` divided by a number: that of its ∇².

    - `values`: as if all sides were at 0.
    - `divisor`: of the second difference's eigenvalues, −k² of long waves, to one number each.
    """
    grid = field.grid
    edges = tuple(_edges(field, k) for k in range(grid.dimension))
    bends = [
        along / grid.spacing[k] ** 2
        for k, along in enumerate(mode_symbols(grid, field.location, edges, field.real_dtype))
    ]
    modes = to_modes(grid, field.location, edges, values)
    return from_modes(grid, field.location, edges, modes / divisor(sum(bends[1:], bends[0])))


def _rtol(field: Field) -> float:
    return 1e-13 if field.real_dtype == jnp.float64 else 1e-6


def _edges(field: Field, axis: int) -> tuple[Edge, Edge] | None:
    """What waves do at the two ends of an axis; None where it repeats."""
    pair = field.boundary[axis]
    if pair is None:
        raise ParameterError(
            "an implicit step needs a field with its boundary: field.with_boundary(…)"
        )
    if isinstance(pair[0], Periodic):
        return None
    on_wall = field.location.staggered[axis]
    return _edge(pair[0], on_wall), _edge(pair[1], on_wall)


def _edge(side: AbstractBoundary, on_wall: bool) -> Edge:
    if isinstance(side, Dirichlet):
        return "fixed" if on_wall else "odd"
    if isinstance(side, Neumann | Mirror):
        return "free" if on_wall else "even"
    if isinstance(side, Outflow):
        return "even"
    raise ParameterError(
        f"implicit diffusion takes Dirichlet, Neumann, Robin, Outflow and Mirror at walls; got {side!r}"
    )
