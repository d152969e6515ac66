"""Slope limiters: how steep a cell may be, given the steps to its two neighbors."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float

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
        # Where signs differ the sum may be 0: it is replaced, so that derivatives see no NaN.
        product = below * above
        rising = product > 0
        return jnp.where(rising, 2 * product / jnp.where(rising, below + above, 1), 0)


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
    return jnp.where(a * b > 0, jnp.where(jnp.abs(a) < jnp.abs(b), a, b), 0)
