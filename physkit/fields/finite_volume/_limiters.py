"""Slope limiters: how steep a cell may be, given the steps to its two neighbors."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import Module

Steps = Float[Array, "..."]


class AbstractLimiter(Module):
    """A slope from the step below a cell and the step above it; 0 where they differ in sign.

    Symmetric in its two arguments, so that flows to the left and to the right are mirror images to
    the last bit.
    """

    @abc.abstractmethod
    def slope(self, below: Steps, above: Steps) -> Steps:
        """The cell's rise from edge to edge."""


class Minmod(AbstractLimiter):
    """The smaller step. The most dissipative second-order limiter.

    **Reference:** Roe, Annu. Rev. Fluid Mech. 18, 337 (1986).
    """

    def slope(self, below: Steps, above: Steps) -> Steps:
        return minmod(below, above)


class VanLeer(AbstractLimiter):
    """The harmonic mean of the steps, 2ab/(a + b): smooth, the usual choice.

    **Reference:** van Leer, J. Comput. Phys. 14, 361 (1974).
    """

    def slope(self, below: Steps, above: Steps) -> Steps:
        agree = _have_one_sign(below, above)
        # Where signs differ the sum may be 0: it is replaced, so that derivatives see no NaN.
        below, above = (jnp.where(agree, x, 1) for x in (below, above))
        product = below * above
        # The product of very small or very large steps is 0 or infinite, their mean is neither.
        info = jnp.finfo(product.dtype)
        in_range = (product > info.tiny / info.eps) & (product < info.max / 4)
        mean = 2 * jnp.where(in_range, product, 1) / (below + above)
        scaled = 2 * below * (above / (below + above))
        return jnp.where(agree, jnp.where(in_range, mean, scaled), 0)


class MonotonizedCentral(AbstractLimiter):
    """The mean step, at most twice the smaller one: sharper than van Leer's.

    **Reference:** van Leer, J. Comput. Phys. 23, 276 (1977).
    """

    def slope(self, below: Steps, above: Steps) -> Steps:
        return minmod(2 * minmod(below, above), 0.5 * (below + above))


class Superbee(AbstractLimiter):
    """The steepest slope that makes no new extremum: for contacts; squares off smooth waves.

    **Reference:** Roe, Lect. Appl. Math. 22, 163 (1985).
    """

    def slope(self, below: Steps, above: Steps) -> Steps:
        one, other = minmod(2 * below, above), minmod(below, 2 * above)
        return jnp.where(jnp.abs(one) > jnp.abs(other), one, other)


def minmod(a: Steps, b: Steps) -> Steps:
    """The one nearer to 0 where signs agree, else 0."""
    return jnp.where(_have_one_sign(a, b), jnp.where(jnp.abs(a) < jnp.abs(b), a, b), 0)


def _have_one_sign(a: Steps, b: Steps) -> Bool[Array, "..."]:
    # Not by their product, which is 0 for very small steps.
    return ((a > 0) & (b > 0)) | ((a < 0) & (b < 0))
