"""Periodic cells spanned by arbitrary lattice vectors, and linear algebra of small matrices."""

import itertools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from physkit.core import (
    ParameterError,
    ShapeError,
    as_parameter,
    concrete_value,
    is_concrete,
    matmul,
    param,
    replace_fields,
    static,
)
from physkit.parallel import AbstractComm, SerialComm

from ._space import AbstractSpace, Components


class Triclinic(AbstractSpace):
    """Periodic cell spanned by the rows of `vectors`, however strongly tilted.

    Nearest images are found in a *reduced* basis of the same lattice: short, nearly orthogonal vectors, which
    are computed once from the given numbers. The change of basis is a matrix of integers. So derivatives by
    `vectors` are exact, and the basis stays valid when the vectors change. They should not change so much that
    another basis would be far shorter, since `max_cutoff` is that of this basis.

    **Arguments:**

    - `vectors`: lattice vectors as rows, `[d d]`, length unit; differentiable (stress).

    **Errors:** `ParameterError` for vectors that span no volume.

    **Notes:** `displacement` returns the nearest image of any pair. `minimum_image`, which inner loops use,
    does so for pairs closer than `max_cutoff`, half the smallest height of the reduced cell. Build the space
    outside of traces: inside, the basis cannot be reduced.

    **Reference:** Semaev, "A 3-dimensional lattice reduction algorithm", CaLC 2001.
    """

    vectors: Float[Array, "d d"] = param()
    reduction: tuple[tuple[int, ...], ...] = static()
    comm: AbstractComm = static(default=SerialComm())

    def __init__(self, vectors: ArrayLike | Sequence[Any], comm=None):
        self.vectors = as_parameter(vectors)
        self.comm = SerialComm() if comm is None else comm
        shape = np.shape(self.vectors)
        if len(shape) != 2 or shape[0] != shape[1] or not 1 <= shape[0] <= 3:
            raise ShapeError(
                f"lattice vectors are rows of a [d d] matrix, d ≤ 3; got shape {shape}"
            )
        numbers = concrete_value(vectors) if is_concrete(vectors) else None
        # A trace hides the numbers: take the vectors as they are.
        if numbers is None:
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
        return matmul(jnp.array(self.reduction, self.vectors.dtype), self.vectors)

    def minimum_image(self, difference: Components) -> Components:
        self._check(len(difference))
        basis = self.reduced
        inverse = inverse_matrix(basis)
        axes = range(len(difference))
        # Written out by components: a matrix product would need a layout `[…, d]`, which inner loops avoid.
        cells = [jnp.round(sum(difference[k] * inverse[k, i] for k in axes)) for i in axes]
        return tuple(difference[k] - sum(cells[i] * basis[i, k] for i in axes) for k in axes)

    def displacement(self, a, b):
        # In a reduced basis the nearest image is this one or one of its 3ᵈ − 1 neighbors.
        near = super().displacement(a, b)
        steps = itertools.product((-1, 0, 1), repeat=near.shape[-1])
        offsets = matmul(jnp.array(list(steps), near.dtype), self.reduced)
        # (..., images, d)
        candidates = near[..., None, :] + offsets.reshape((1,) * (near.ndim - 1) + offsets.shape)
        nearest = jnp.argmin(jnp.sum(candidates**2, axis=-1), axis=-1)
        return jnp.take_along_axis(candidates, nearest[..., None, None], axis=-2)[..., 0, :]

    def wrap_with_image(self, x):
        self._check(x.shape[-1])
        cells = jnp.floor(matmul(x, inverse_matrix(self.vectors)))
        return x - matmul(cells, self.vectors), cells.astype(jnp.int32)

    def stretch(self, matrix):
        return replace_fields(self, {"vectors": matmul(self.vectors, matrix.T)})

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


def _reduce(vectors: np.ndarray) -> np.ndarray:
    """Integers T such that the rows of T @ vectors are a short basis of the same lattice.

    Each row is shortened by multiples of sums and differences of the others, until none gets shorter.
    """
    d = len(vectors)
    integers = np.eye(d, dtype=int)
    # Converges in a few rounds; the bound is for vectors at the limit of rounding.
    for _ in range(100):
        before = integers.copy()
        for i in range(d):
            others = [j for j in range(d) if j != i]
            for signs in itertools.product((-1, 0, 1), repeat=len(others)):
                step = sum(
                    (s * integers[j] for s, j in zip(signs, others, strict=True)), 0 * integers[i]
                )
                direction = step @ vectors
                if np.any(step):
                    # Slightly less than the projection: at exactly ½, a step to a vector of the same length,
                    # rounding errors must not decide.
                    projection = integers[i] @ vectors @ direction / (direction @ direction)
                    integers[i] -= round(projection * (1 - 1e-12)) * step
        if np.array_equal(before, integers):
            break
    return integers


def determinant(m: Float[Array, "d d"]) -> Float[Array, ""]:
    """det m for d ≤ 3, by expansion: cheap inside a step, on any device."""
    if m.shape[0] == 1:
        return m[0, 0]
    if m.shape[0] == 2:
        return m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    return matmul(m[0], jnp.cross(m[1], m[2]))


def inverse_matrix(m: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """m⁻¹ for d ≤ 3, by cofactors: no pivoting, so that it is cheap inside a step."""
    if m.shape[0] == 1:
        return 1 / m
    if m.shape[0] == 2:
        adjugate = jnp.array([[m[1, 1], -m[0, 1]], [-m[1, 0], m[0, 0]]])
    else:
        pairs = ((1, 2), (2, 0), (0, 1))
        adjugate = jnp.stack([jnp.cross(m[i], m[j]) for i, j in pairs], axis=1)
    return adjugate / determinant(m)


def heights(m: Float[Array, "d d"]) -> Float[Array, " d"]:
    """Distances between opposite faces of the cell that the rows of m span, `[d]`."""
    # Columns of m⁻¹ are the reciprocal vectors, whose lengths are the inverse distances.
    return 1 / jnp.sqrt(jnp.sum(inverse_matrix(m) ** 2, axis=0))
