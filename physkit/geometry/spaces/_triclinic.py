"""Periodic cells spanned by any lattice vectors."""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import ParameterError, ShapeError, as_parameter, concrete_value, param, static
from physkit.parallel import AbstractComm, SerialComm

from ._space import AbstractSpace, Components


class Triclinic(AbstractSpace):
    """Periodic cell spanned by the rows of `vectors`, however strongly tilted.

    Images are sought in a *reduced* basis of the same lattice (short, nearly orthogonal vectors),
    found once from the numbers given. The basis change is a matrix of integers, so derivatives by
    `vectors` are exact, and it stays valid when the vectors change; they should only not change so
    much that another basis would be far better, because `max_cutoff` is that of this basis.

    **Arguments:**

    - `vectors`: lattice vectors as rows, `[d d]`, length unit; differentiable (stress).

    **Errors:** `ParameterError` for vectors that span no volume.

    **Notes:** `displacement` returns the true nearest image of any pair; `nearest`, which inner
    loops use, does so for pairs closer than `max_cutoff`, half the smallest height of the reduced
    cell. Built inside a trace, the basis cannot be reduced: build it outside.

    **Reference:** Semaev, "A 3-dimensional lattice reduction algorithm", CaLC 2001.
    """

    vectors: Float[Array, "d d"] = param()
    reduction: tuple[tuple[int, ...], ...] = static()
    comm: AbstractComm = static(default=SerialComm())

    def __init__(self, vectors: Any, comm=None):
        self.vectors = as_parameter(vectors)
        self.comm = SerialComm() if comm is None else comm
        shape = np.shape(vectors)
        if len(shape) != 2 or shape[0] != shape[1] or not 1 <= shape[0] <= 3:
            raise ShapeError(
                f"lattice vectors are rows of a [d d] matrix, d ≤ 3; got shape {shape}"
            )
        numbers = concrete_value(vectors)
        if numbers is None or numbers.dtype == object:
            self.reduction = tuple(map(tuple, np.eye(shape[0], dtype=int).tolist()))
            return
        if not np.all(np.isfinite(numbers)) or np.linalg.det(numbers) == 0:
            raise ParameterError(f"lattice vectors span no volume: {numbers.tolist()}")
        self.reduction = tuple(map(tuple, _reduce(np.asarray(numbers, float)).tolist()))

    def periodic_axes(self, dimension: int) -> tuple[bool, ...]:
        self._check(dimension)
        return (True,) * dimension

    def cell(self, dimension: int):
        self._check(dimension)
        return self.vectors

    def basis(self, dimension: int):
        self._check(dimension)
        return self.reduced

    @property
    def reduced(self) -> Float[Array, "d d"]:
        """Short lattice vectors that span the same lattice, as rows."""
        return _product(jnp.array(self.reduction, self.vectors.dtype), self.vectors)

    def minimum_image(self, difference: Components) -> Components:
        self._check(len(difference))
        basis = self.reduced
        inverse = inverse_matrix(basis)
        axes = range(len(difference))
        cells = [jnp.round(sum(difference[k] * inverse[k, i] for k in axes)) for i in axes]
        return tuple(difference[k] - sum(cells[i] * basis[i, k] for i in axes) for k in axes)

    def displacement(self, a, b):
        rough = super().displacement(a, b)
        steps = itertools.product((-1, 0, 1), repeat=rough.shape[-1])
        images = _product(jnp.array(list(steps), rough.dtype), self.reduced)
        candidates = rough[..., None, :] + images.reshape((1,) * (rough.ndim - 1) + images.shape)
        best = jnp.argmin(jnp.sum(candidates**2, axis=-1), axis=-1)
        return jnp.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :]

    def wrap_with_image(self, x):
        self._check(x.shape[-1])
        cells = jnp.floor(_product(x, inverse_matrix(self.vectors)))
        return x - _product(cells, self.vectors), cells.astype(jnp.int32)

    @property
    def volume(self):
        return jnp.abs(determinant(self.vectors))

    def max_cutoff(self, dimension: int):
        self._check(dimension)
        return jnp.min(heights(self.reduced)) / 2

    def is_degenerate(self):
        return ~(self.volume > 0)

    def _check(self, dimension: int) -> None:
        if dimension != len(self.reduction):
            raise ShapeError(f"positions have {dimension} axes, the cell has {len(self.reduction)}")


def _product(a: Float[Array, "n d"], b: Float[Array, "d d"]) -> Float[Array, "n d"]:
    """a b in full precision: accelerators round the factors of float32 products by default."""
    return jnp.matmul(a, b, precision="highest")


def _reduce(vectors: np.ndarray) -> np.ndarray:
    """Integers T such that the rows of T @ vectors are a short basis of the same lattice."""
    d = len(vectors)
    whole = np.eye(d, dtype=int)
    for _ in range(100):
        before = whole.copy()
        for i in range(d):
            others = [j for j in range(d) if j != i]
            for signs in itertools.product((-1, 0, 1), repeat=len(others)):
                step = sum((s * whole[j] for s, j in zip(signs, others, strict=True)), 0 * whole[i])
                short = step @ vectors
                if np.any(step):
                    whole[i] -= (
                        round(whole[i] @ vectors @ short / (short @ short) * (1 - 1e-12)) * step
                    )
        if np.array_equal(before, whole):
            break
    return whole


def determinant(m: Float[Array, "d d"]) -> Float[Array, ""]:
    """det m for d ≤ 3, by expansion: cheap inside a step, on any device."""
    if m.shape[0] == 1:
        return m[0, 0]
    if m.shape[0] == 2:
        return m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    return jnp.dot(m[0], jnp.cross(m[1], m[2]))


def inverse_matrix(m: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """m⁻¹ for d ≤ 3, by cofactors."""
    if m.shape[0] == 1:
        return 1 / m
    if m.shape[0] == 2:
        adjugate = jnp.array([[m[1, 1], -m[0, 1]], [-m[1, 0], m[0, 0]]])
    else:
        pairs = ((1, 2), (2, 0), (0, 1))
        adjugate = jnp.stack([jnp.cross(m[i], m[j]) for i, j in pairs], axis=1)
    return adjugate / determinant(m)


def heights(m: Float[Array, "d d"]) -> Float[Array, " d"]:
    """Distance between opposite faces of the cell spanned by the rows of m."""
    return 1 / jnp.sqrt(jnp.sum(inverse_matrix(m) ** 2, axis=0))
