"""Slope limiters: how steep a cell may be, given the steps to its two neighbors."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import Module, ratio, safe_maximum, safe_minimum

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
        # Of absolute values: the compiler may compute a step twice and round it differently, so that two steps
        # near 0 of one sign here have two there, and a + b cancels. Not by the product of both, which for very
        # small or very large steps is 0 or infinite; by size, so that a mirrored flow has the same bits.
        sizes = jnp.abs(below), jnp.abs(above)
        smaller, larger = safe_minimum(*sizes), safe_maximum(*sizes)
        # Replaced where it may be 0, so that derivatives see no NaN.
        mean = 2 * smaller * ratio(larger, jnp.where(agree, smaller + larger, 1))
        return jnp.where(agree, jnp.where(below > 0, mean, -mean), 0)


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
