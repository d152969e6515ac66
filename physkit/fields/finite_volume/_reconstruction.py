"""Reconstruction: from averages over cells to values on both sides of every face."""

import abc
from typing import ClassVar

import jax
from jaxtyping import Array, Float

from physkit.core import Module

from ._limiters import AbstractLimiter, VanLeer

Values = Float[Array, "..."]


class AbstractReconstruction(Module):
    """A way from cell averages to the values at both edges of each cell.

    `width` ghost cells are needed on either side; `edges` sees 2·width − 1 cells. `uses_primitive` says which
    variables are reconstructed: primitive ones, which keeps densities and pressures positive, or conserved
    ones, which methods of more than second order need (the primitive of an average is not the average of the
    primitive). Where `is_high_order` the range of each variable over the domain is given, too, and edges that
    are not physical are replaced by the cell.

    Where `of_points` values are those at the middles of cells, not averages, and `correct_flux` says what a
    flux at a face lacks.
    """

    width: ClassVar[int]
    uses_primitive: ClassVar[bool] = True
    is_high_order: ClassVar[bool] = False
    of_points: ClassVar[bool] = False

    @abc.abstractmethod
    def edges(self, *cells: Values) -> tuple[Values, Values]:
        """Values at the low and at the high edge of the middle cell, from the cells around it."""

    def edges_of_scale(self, scale: Array, *cells: Values) -> tuple[Values, Values]:
        """`edges`, with the range of the variable over the whole domain: what counts as small there."""
        del scale
        return self.edges(*cells)

    def correct_flux(self, *fluxes: Values) -> Values:
        """What is added at a face, from the fluxes in the middles of the 2·width cells around it."""
        raise NotImplementedError(f"{type(self).__name__} takes averages")

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
