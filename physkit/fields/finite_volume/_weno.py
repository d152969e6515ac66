"""Weighted essentially non-oscillatory reconstruction, of averages and of points."""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ._reconstruction import AbstractReconstruction, Values


class _Parabolas(NamedTuple):
    """Three parabolas through neighboring cells, each by its value at the edge, and their best weights."""

    weights: tuple[float, float, float]
    values: tuple[tuple[float, float, float], ...]


_AVERAGES = _Parabolas(
    (0.1, 0.6, 0.3), ((2 / 6, -7 / 6, 11 / 6), (-1 / 6, 5 / 6, 2 / 6), (2 / 6, 5 / 6, -1 / 6))
)
_POINTS = _Parabolas(
    (1 / 16, 10 / 16, 5 / 16),
    ((3 / 8, -10 / 8, 15 / 8), (-1 / 8, 6 / 8, 3 / 8), (3 / 8, 6 / 8, -1 / 8)),
)


class WENO5(AbstractReconstruction):
    """Weighted essentially non-oscillatory reconstruction of fifth order.

    Three parabolas, weighted by how smooth the flow is under each. Takes conserved variables; where an
    edge would have a negative density or pressure it takes the average itself.

    **Good values:** `SSPRK3` with a Courant number up to 0.5 over the number of axes.

    **Notes:** one flux per face: in more than one dimension the order of a nonlinear law is two, with
    much smaller errors than `MUSCL`. `AWENO5` has order five in any dimension.

    Jiang & Shu's ε of 10⁻⁶ is for variables that vary by about one. Here it is 10⁻⁶ of the squared range of
    each variable over the domain, so that neither units nor an added constant change what is smooth.
    Derivatives take that range for fixed: they are off by 10⁻⁶ to 10⁻⁵ of their size.

    **Reference:** Jiang & Shu, J. Comput. Phys. 126, 202 (1996), eqs. 2.15–2.17, 2.61–2.63; averages:
    Shu, NASA/CR-97-206253 (1997), eqs. 2.58–2.63; ε in units of the data: Don & Borges, J. Comput. Phys.
    250, 347 (2013); Don, Li, Li & Wang, J. Comput. Phys. 448, 110724 (2022).
    """

    width: ClassVar[int] = 3
    uses_primitive: ClassVar[bool] = False
    is_high_order: ClassVar[bool] = True

    def edges(self, *cells: Values) -> tuple[Values, Values]:
        return self.edges_of_scale(_range_of(cells), *cells)

    def edges_of_scale(self, scale: Array, *cells: Values) -> tuple[Values, Values]:
        per_range = _per_range(scale)
        # The low edge is the high edge of the mirrored stencil.
        return (
            _weno5(per_range, _AVERAGES, *reversed(cells)),
            _weno5(per_range, _AVERAGES, *cells),
        )


class AWENO5(AbstractReconstruction):
    """Weighted essentially non-oscillatory interpolation of points: fifth order in any number of dimensions.

        F̂ = F(u_L, u_R) − h²/24 ∂²F/∂x² + 7h⁴/5760 ∂⁴F/∂x⁴

    Values of cells are those at their middles, as functions of the coordinates give them, not averages:
    primitive variables are interpolated to the faces, where any Riemann solver gives the flux F. What makes a
    difference of F̂ the derivative at a point is added from the fluxes in the cells. Sums are kept, as with
    averages.

    **Good values:** `SSPRK3` with a Courant number up to 0.5 over the number of axes, smaller where its third
    order in time shows.

    **Notes:** for planar grids. Next to walls the order is that of their ghosts, two. Strong shocks: with
    `CompressibleEuler(…, keeps_positive=True)`.

    **Reference:** Jiang, Shu & Zhang, SIAM J. Sci. Comput. 35, A1137 (2013), eqs. 2.5–2.9; Shu & Osher, J.
    Comput. Phys. 77, 439 (1988).
    """

    width: ClassVar[int] = 3
    is_high_order: ClassVar[bool] = True
    of_points: ClassVar[bool] = True

    def edges(self, *cells: Values) -> tuple[Values, Values]:
        return self.edges_of_scale(_range_of(cells), *cells)

    def edges_of_scale(self, scale: Array, *cells: Values) -> tuple[Values, Values]:
        per_range = _per_range(scale)
        return (
            _weno5(per_range, _POINTS, *reversed(cells)),
            _weno5(per_range, _POINTS, *cells),
        )

    def correct_flux(self, *fluxes: Values) -> Values:
        a, b, c, d, e, f = fluxes
        # Second and fourth difference at the face, of fourth and second order, with their factors.
        return ((57 / 11520) * (a + f) - (411 / 11520) * (b + e)) + (354 / 11520) * (c + d)


def _range_of(cells: tuple[Values, ...]) -> Array:
    # Without a domain: the range of the cells that are given.
    high, low = (f(jnp.stack([f(x) for x in cells])) for f in (jnp.max, jnp.min))
    return high - low


def _per_range(scale: Array) -> Array:
    # A variable that is the same everywhere has no range, and every weight is right for it. Below the
    # smallest normal number 1/scale would overflow. What is small is no part of the physics.
    scale = jax.lax.stop_gradient(scale)
    has_range = scale >= 4 * jnp.finfo(scale.dtype).tiny
    return jnp.where(has_range, 1 / jnp.where(has_range, scale, 1), 0)


def _weno5(
    per_range: Array, kind: _Parabolas, a: Values, b: Values, c: Values, d: Values, e: Values
) -> Values:
    """The value at the edge between c and d; `per_range`: 1 over the range of the variable."""
    tiny = 1e-6
    # Smoothness of the three parabolas: squares of their derivatives over the cell, Jiang & Shu's IS.
    # In units of the range before they are squared: squares of very small or large numbers are 0 or infinite.
    differences = (
        (a - 2 * b + c, a - 4 * b + 3 * c),
        (b - 2 * c + d, b - d),
        (c - 2 * d + e, 3 * c - 4 * d + e),
    )
    smoothness = tuple(
        13 / 12 * (second * per_range) ** 2 + 0.25 * (first * per_range) ** 2
        for second, first in differences
    )
    # The ideal weights make of the parabolas the interpolation of fifth order; a rough one loses its weight.
    first, second, third = (
        ideal / (tiny + beta) ** 2 for ideal, beta in zip(kind.weights, smoothness, strict=True)
    )
    p, q, r = (
        w[0] * x + w[1] * y + w[2] * z
        for w, (x, y, z) in zip(kind.values, ((a, b, c), (b, c, d), (c, d, e)), strict=True)
    )
    return (first * p + second * q + third * r) / (first + second + third)
