"""Interpolation kernels: the shapes of particles on a grid."""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Module


class AbstractKernel(Module):
    """A B-spline of some order: how a particle is distributed over the nearest points along an axis.

    In two and three dimensions weights are products over axes.
    """

    order: eqx.AbstractClassVar[int]

    @abc.abstractmethod
    def weights(self, f: Float[Array, " n"]) -> tuple[Float[Array, " n"], ...]:
        """Weights of the `order` nearest points, lowest first; 0 ≤ f ≤ 1 is the position in their interval."""

    def window(self, phase: Float[Array, "..."]) -> Float[Array, "..."]:
        """The kernel's Fourier transform at kh = `phase`: (sin(kh/2) / (kh/2))^order."""
        # A B-spline is the convolution of `order` boxes; jnp.sinc(x) is sin(πx)/(πx).
        return jnp.sinc(phase / (2 * jnp.pi)) ** self.order


class Nearest(AbstractKernel):
    """Nearest grid point (NGP, order 1): a single point has the weight 1.

    Interpolated values jump half way between points, and the derivative with respect to positions is 0.
    """

    order: ClassVar[int] = 1

    def weights(self, f: Float[Array, " n"]) -> tuple[Float[Array, " n"], ...]:
        # 1, but NaN where the position is: it would count in some cell.
        return (1 + 0 * f,)


class CIC(AbstractKernel):
    """Cloud in cell: linear between two points an axis (order 2).

    Values are continuous, derivatives with respect to positions jump from point to point.

    **Reference:** Birdsall & Fuss, J. Comput. Phys. 3, 494 (1969).
    """

    order: ClassVar[int] = 2

    def weights(self, f: Float[Array, " n"]) -> tuple[Float[Array, " n"], ...]:
        return 1 - f, f


class TSC(AbstractKernel):
    """Triangular-shaped cloud: quadratic, three points an axis (order 3), one continuous derivative.

    **Reference:** Hockney & Eastwood, Computer Simulation Using Particles (1988), section 5-3.
    """

    order: ClassVar[int] = 3

    def weights(self, f: Float[Array, " n"]) -> tuple[Float[Array, " n"], ...]:
        return (1 - f) ** 2 / 2, 0.5 + f * (1 - f), f**2 / 2


class PCS(AbstractKernel):
    """Piecewise cubic spline: four points an axis (order 4), two continuous derivatives.

    **Reference:** Chaniotis & Poulikakos, J. Comput. Phys. 197, 253 (2004).
    """

    order: ClassVar[int] = 4

    def weights(self, f: Float[Array, " n"]) -> tuple[Float[Array, " n"], ...]:
        g = 1 - f

        def inner(s: Array) -> Array:
            return (4 - 6 * s**2 + 3 * s**3) / 6

        return g**3 / 6, inner(f), inner(g), f**3 / 6


class QuarticSpline(AbstractKernel):
    """B-spline of order 5: five points an axis, three continuous derivatives.

    **Reference:** Essmann et al., J. Chem. Phys. 103, 8577 (1995), eq. 4.1.
    """

    order: ClassVar[int] = 5

    def weights(self, f: Float[Array, " n"]) -> tuple[Float[Array, " n"], ...]:
        return _raise_order(PCS().weights(f), f)


class QuinticSpline(AbstractKernel):
    """B-spline of order 6: six points an axis, four continuous derivatives.

    **Reference:** Essmann et al., J. Chem. Phys. 103, 8577 (1995), eq. 4.1.
    """

    order: ClassVar[int] = 6

    def weights(self, f: Float[Array, " n"]) -> tuple[Float[Array, " n"], ...]:
        return _raise_order(QuarticSpline().weights(f), f)


def _raise_order(
    weights: tuple[Float[Array, " n"], ...], f: Float[Array, " n"]
) -> tuple[Float[Array, " n"], ...]:
    """The weights of the next order: M_{p+1}(u) = (u M_p(u) + (p + 1 − u) M_p(u − 1)) / p."""
    p = len(weights)
    inner = [((f + (p - j)) * weights[j - 1] + ((1 + j) - f) * weights[j]) / p for j in range(1, p)]
    return (1 - f) * weights[0] / p, *inner, f * weights[-1] / p
