"""Reconstruction: from averages over cells to values on both sides of every face."""

import abc
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Module

from ._limiters import AbstractLimiter, VanLeer

Values = Float[Array, "..."]


class AbstractReconstruction(Module):
    """A way from cell averages to the values at both edges of each cell.

    `width` ghost cells are needed on either side; `edges` sees 2·width − 1 cells. `uses_primitive` says
    which variables are reconstructed: primitive ones, which keeps densities and pressures positive,
    or conserved ones, which methods of more than second order need (the primitive of an average is
    not the average of the primitive).
    """

    width: ClassVar[int]
    uses_primitive: ClassVar[bool] = True

    @abc.abstractmethod
    def edges(self, *cells: Values) -> tuple[Values, Values]:
        """Values at the low and at the high edge of the middle cell, from the cells around it."""

    def edges_of_scale(self, scale: Array, *cells: Values) -> tuple[Values, Values]:
        """`edges`, with the range of the variable over the whole domain: what counts as small there."""
        del scale
        return self.edges(*cells)

    def faces(self, padded: Values, axis: int) -> tuple[Values, Values]:
        """Values below and above every face across array `axis`: one face more than cells.

        `padded` has `width` ghost cells on both sides of `axis`, and of no other.
        """
        cells = self.stencil(padded, axis)
        low, high = self.edges(*cells)
        return edges_to_faces(low, high, axis)

    def stencil(self, padded: Values, axis: int) -> list[Values]:
        """The cells that `edges` takes, for each cell and one ghost on both sides."""
        count = padded.shape[axis] - 2 * (self.width - 1)
        return [
            jax.lax.slice_in_dim(padded, j, j + count, axis=axis) for j in range(2 * self.width - 1)
        ]


def edges_to_faces(low: Values, high: Values, axis: int) -> tuple[Values, Values]:
    """Edges of cells (with one ghost on both sides) as values below and above faces."""
    n = low.shape[axis]
    below = jax.lax.slice_in_dim(high, 0, n - 1, axis=axis)
    return below, jax.lax.slice_in_dim(low, 1, n, axis=axis)


class PiecewiseConstant(AbstractReconstruction):
    """The average itself: first order, and as robust as can be (Godunov's method).

    **Reference:** Godunov, Mat. Sb. 47, 271 (1959).
    """

    width: ClassVar[int] = 1

    def edges(self, *cells: Values) -> tuple[Values, Values]:
        (cell,) = cells
        return cell, cell


class MUSCL(AbstractReconstruction):
    """A straight line with a limited slope in every cell: second order where the flow is smooth.

        u(x_i ± h/2) = u_i ± ½ slope(u_i − u_{i−1}, u_{i+1} − u_i)

    **Arguments:**

    - `limiter`: `VanLeer()` if left out; `Minmod()`, `MonotonizedCentral()`, `Superbee()`.

    **Good values:** `SSPRK2` with a Courant number up to 0.5 over the number of axes.

    **Reference:** van Leer, J. Comput. Phys. 32, 101 (1979).
    """

    width: ClassVar[int] = 2
    limiter: AbstractLimiter = VanLeer()

    def edges(self, *cells: Values) -> tuple[Values, Values]:
        # The slope is the rise over one cell: half of it to either edge.
        before, cell, after = cells
        half = 0.5 * self.limiter.slope(cell - before, after - cell)
        return cell - half, cell + half


class WENO5(AbstractReconstruction):
    """Weighted essentially non-oscillatory reconstruction of fifth order.

    Three parabolas, weighted by how smooth the flow is under each. Takes conserved variables; where an
    edge would have a negative density or pressure it takes the average itself.

    **Good values:** `SSPRK3` with a Courant number up to 0.5 over the number of axes.

    **Notes:** one flux per face: in more than one dimension the order of a nonlinear law is two, with
    much smaller errors than `MUSCL`.

    Jiang & Shu's ε of 10⁻⁶ is for variables that vary by about one. Here it is 10⁻⁶ of the squared range of
    each variable over the domain, so that neither units nor an added constant change what is smooth.

    **Reference:** Jiang & Shu, J. Comput. Phys. 126, 202 (1996), eqs. 2.15–2.17, 2.61–2.63; averages:
    Shu, NASA/CR-97-206253 (1997), eqs. 2.58–2.63; ε in units of the data: Don & Borges, J. Comput. Phys.
    250, 347 (2013); Don, Li, Li & Wang, J. Comput. Phys. 448, 110724 (2022).
    """

    width: ClassVar[int] = 3
    uses_primitive: ClassVar[bool] = False

    def edges(self, *cells: Values) -> tuple[Values, Values]:
        # Without a domain: the range of the cells that are given.
        high, low = (f(jnp.stack([f(x) for x in cells])) for f in (jnp.max, jnp.min))
        return self.edges_of_scale(high - low, *cells)

    def edges_of_scale(self, scale: Array, *cells: Values) -> tuple[Values, Values]:
        # A variable that is the same everywhere has no range, and every weight is right for it. Below the
        # smallest normal number 1/scale would overflow. What is small is no part of the physics.
        scale = jax.lax.stop_gradient(scale)
        has_range = scale >= 4 * jnp.finfo(scale.dtype).tiny
        per_range = jnp.where(has_range, 1 / jnp.where(has_range, scale, 1), 0)
        # The low edge is the high edge of the mirrored stencil.
        return _weno5(per_range, *reversed(cells)), _weno5(per_range, *cells)


def _weno5(per_range: Array, a: Values, b: Values, c: Values, d: Values, e: Values) -> Values:
    """The value at the edge between the averages c and d; `per_range`: 1 over the range of the variable."""
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
    # 0.1, 0.6, 0.3 make of the parabolas the interpolation of fifth order; a rough one loses its weight.
    first, second, third = (
        ideal / (tiny + beta) ** 2 for ideal, beta in zip((0.1, 0.6, 0.3), smoothness, strict=True)
    )
    # Each parabola's value at the edge, from the averages under it.
    parabolas = (
        (2 * a - 7 * b + 11 * c) / 6,
        (-b + 5 * c + 2 * d) / 6,
        (2 * c + 5 * d - e) / 6,
    )
    total = first * parabolas[0] + second * parabolas[1] + third * parabolas[2]
    return total / (first + second + third)
