"""Sums over the populations of a cell, and polynomials in their velocities, with derivatives that are as fast.

JAX's derivative of a population that is read from all is an array of all, zero but for one; that of a number
that all read is a reduction which computes all that led to it again. So both are written by hand.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import linear_call

from ._lattice import Lattice

Axes = tuple[int, ...]


def moments_of(lattice: Lattice, populations: Array) -> tuple[Array, list[Array]]:
    """Σ (f − w) and Σ f e, by axis."""
    return linear_call(_Moments(lattice), _FromMoments(lattice), (), populations)


def weighted_polynomials(lattice: Lattice, coefficients: dict[Axes, Array]) -> Array:
    """w_i (a + Σ b_k e_ik + Σ c_km e_ik e_im + …), `[q, *cells]`.

    - `coefficients`: of cells, by the axes along which e_i is multiplied by them: `()` of a, `(k,)`, `(k, m)`.
    """
    powers = tuple(coefficients)
    values = list(jnp.broadcast_arrays(*coefficients.values()))
    return linear_call(_Polynomials(lattice, powers), _WeightedSums(lattice, powers), (), values)


def scale(factor: Array, populations: Array, fields: list[Array]) -> tuple[Array, list[Array]]:
    """Populations and fields times a factor. The derivative by one of all cells is a single sum over them."""
    if factor.ndim:
        # One for each cell: `[*cells]`, or `[1, *cells]` as populations have them.
        return factor * populations, [factor.reshape(factor.shape[-x.ndim :]) * x for x in fields]
    return linear_call(_scale, _sum_of_products, (populations, fields), factor)


def _scale(arrays: tuple[Array, list[Array]], factor: Array) -> tuple[Array, list[Array]]:
    populations, fields = arrays
    return factor * populations, [factor * x for x in fields]


def _sum_of_products(
    arrays: tuple[Array, list[Array]], cotangents: tuple[Array, list[Array]]
) -> Array:
    populations, fields = arrays
    of_populations, of_fields = cotangents
    products = of_populations * populations
    total = products[0]
    for k in range(1, len(products)):
        total = total + products[k]
    for x, y in zip(fields, of_fields, strict=True):
        total = total + x * y
    return jnp.sum(total)


@dataclasses.dataclass(frozen=True)
class _Moments:
    lattice: Lattice

    def __call__(self, _: tuple, populations: Array) -> tuple[Array, list[Array]]:
        lattice = self.lattice
        excess, momentum = populations[lattice.rest], [None] * lattice.dimension
        for i, j in lattice.pairs:
            excess = excess + (populations[i] + populations[j])
            flux = populations[i] - populations[j]
            for k, n in enumerate(lattice.velocities[i].tolist()):
                if n:
                    signed = flux if n > 0 else -flux
                    momentum[k] = signed if momentum[k] is None else momentum[k] + signed
        return excess, momentum


@dataclasses.dataclass(frozen=True)
class _FromMoments:
    """The transpose of `_Moments`: ρ + e·m for each population."""

    lattice: Lattice

    def __call__(self, _: tuple, moments: tuple[Array, list[Array]]) -> Array:
        out, momentum = moments[0][None], moments[1]
        for e, m in zip(self.lattice.velocities.T, momentum, strict=True):
            out = out + e.astype(m.dtype).reshape(-1, *[1] * m.ndim) * m[None]
        return out


@dataclasses.dataclass(frozen=True)
class _Polynomials:
    lattice: Lattice
    powers: tuple[Axes, ...]

    def __call__(self, _: tuple, coefficients: list[Array]) -> Array:
        out = 0
        for axes, c in zip(self.powers, coefficients, strict=True):
            factors = _weights(self.lattice, axes).astype(c.dtype)
            out = out + factors.reshape(-1, *[1] * c.ndim) * c[None]
        return out


@dataclasses.dataclass(frozen=True)
class _WeightedSums:
    """The transpose of `_Polynomials`."""

    lattice: Lattice
    powers: tuple[Axes, ...]

    def __call__(self, _: tuple, populations: Array) -> list[Array]:
        return [self._sum(_weights(self.lattice, axes), populations) for axes in self.powers]

    def _sum(self, weights: np.ndarray, populations: Array) -> Array:
        terms = [float(weight) * populations[i] for i, weight in enumerate(weights) if weight]
        return sum(terms[1:], terms[0])


def _weights(lattice: Lattice, axes: Axes) -> np.ndarray:
    """w_i times the components of e_i along `axes`."""
    return lattice.weights * np.prod(lattice.velocities[:, list(axes)], axis=1)
