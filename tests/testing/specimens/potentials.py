"""Pair potentials: good ones, and one for each mistake."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    as_parameter,
    data,
    param,
    static,
)
from physkit.particles.forces.potentials import AbstractPairPotential


class AbstractGaussian(AbstractPairPotential):
    """U = A exp(−r²/w²)."""

    height: Float[Array, "..."] = param(1.5)
    width: Float[Array, "..."] = param(0.7)

    def energy(self, r):
        return self.height * jnp.exp(-((r / self.width) ** 2))


class Gaussian(AbstractGaussian):
    """Good."""

    def force_over_distance(self, r2):
        return 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)


class GaussianByDefault(AbstractGaussian):
    """Good: the force comes from the base class, by derivative of the energy."""


class WrongSign(AbstractGaussian):
    def force_over_distance(self, r2):
        return -2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)


class StopsGradient(AbstractGaussian):
    def energy(self, r):
        return self.height * jnp.exp(-((r / jax.lax.stop_gradient(self.width)) ** 2))


class SinglePrecisionInside(AbstractGaussian):
    def energy(self, r):
        x = ((r / self.width) ** 2).astype(jnp.float32)
        return self.height * jnp.exp(-x).astype(r.dtype)


class SinglePrecisionOut(AbstractGaussian):
    def energy(self, r):
        return (self.height * jnp.exp(-((r / self.width) ** 2))).astype(jnp.float32)

    def force_over_distance(self, r2):
        return (2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)).astype(jnp.float32)


class DoublePrecisionOut(AbstractGaussian):
    def energy(self, r):
        return (self.height * jnp.exp(-((r / self.width) ** 2))).astype(jnp.float64)

    def force_over_distance(self, r2):
        u = 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)
        return u.astype(jnp.float64)


class BranchesInPython(AbstractGaussian):
    def energy(self, r):
        if np.all(np.asarray(r) > 0):
            return self.height * jnp.exp(-((r / self.width) ** 2))
        return jnp.zeros_like(r)


class LosesElements(AbstractGaussian):
    def energy(self, r):
        return self.height * jnp.exp(-((jnp.max(r) / self.width) ** 2)) + 0 * r


class NaNGradient(AbstractGaussian):
    def energy(self, r):
        at_edge = jnp.sqrt(jnp.maximum(self.width - self.width, 0))
        return self.height * jnp.exp(-((r / self.width) ** 2)) + at_edge

    def force_over_distance(self, r2):
        return 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)


class StaticNumber(AbstractPairPotential):
    height: Float[Array, "..."] = param(1.5)
    width: float = static(default=0.7)

    def energy(self, r):
        return self.height * jnp.exp(-((r / self.width) ** 2))


class ConsumedInInit(AbstractPairPotential):
    height: Float[Array, "..."] = param()
    width: Float[Array, "..."] = param()
    rate: Float[Array, "..."] = data()

    def __init__(self, height=1.5, width=0.7):
        self.height, self.width = as_parameter(height), as_parameter(width)
        self.rate = jnp.asarray(1 / float(self.width) ** 2)

    def energy(self, r):
        return self.height * jnp.exp(-(r**2) * self.rate)


class IgnoresTables(AbstractGaussian):
    def between(self, i, j):
        first = lambda x: x if x.ndim == 0 else x[0, 0]
        return Gaussian(first(self.height), first(self.width))


GOOD_POTENTIALS = [
    Gaussian,
    GaussianByDefault,
    lambda: Gaussian(jnp.array([[1.0, 0.5], [0.5, 2.0]]), 0.7),
]
BROKEN_POTENTIALS = [
    (WrongSign, r"force_over_distance against −\(dU/dr\)/r"),
    (StopsGradient, r"width'?\]? is exactly 0, but the finite difference is"),
    (SinglePrecisionInside, r"automatic against differences|Taylor"),
    (
        SinglePrecisionOut,
        r"energy of \[\d\] distances: the value is float32\[\d\], expected float64",
    ),
    (DoublePrecisionOut, r"float32: the value is float64\[\d\], expected float32"),
    (BranchesInPython, r"reads the numbers of an array in Python"),
    (LosesElements, r"of an array against a loop"),
    (NaNGradient, r"derivative by .*width.* not finite"),
    (StaticNumber, r"static field StaticNumber.width = 0.7"),
    (ConsumedInInit, r"\.width has no effect.*consumed in __init__"),
    (IgnoresTables, r"between\(i, j\)\.energy of tables"),
]
