"""A space under a homogeneous strain, by which energies are differentiated for their virial."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import NoVirialError, data, matmul
from physkit.parallel import AbstractComm

from ._space import AbstractSpace, Components
from ._triclinic import determinant, inverse_matrix


class StrainedSpace(AbstractSpace):
    """`base` with every vector r turned into (1 + ε) r, lattice vectors included: any strain of any space.

    A rectangular box under shear is no rectangular box. So this has what every space has, and none of the
    numbers that make up `base`: whoever reads `lengths` would miss the shear.

    - `strain`: ε, `[d d]`; 0 where derivatives are taken, so that all values are those of `base`.
    """

    base: AbstractSpace
    strain: Float[Array, "d d"] = data()

    @property
    def comm(self) -> AbstractComm:
        return self.base.comm

    @property
    def _stretch(self) -> Float[Array, "d d"]:
        return jnp.eye(self.strain.shape[0], dtype=self.strain.dtype) + self.strain

    def periodic_axes(self, dimension: int) -> tuple[bool, ...]:
        return self.base.periodic_axes(dimension)

    def cell(self, dimension: int):
        return self._stretch_rows(self.base.cell(dimension))

    def basis(self, dimension: int):
        return self._stretch_rows(self.base.basis(dimension))

    def minimum_image(self, difference: Components) -> Components:
        stretch = self._stretch
        relaxed = _apply(inverse_matrix(stretch), difference)
        return _apply(stretch, self.base.minimum_image(relaxed))

    def displacement(self, a, b):
        back = inverse_matrix(self._stretch).T
        near = self.base.displacement(_times(a, back), _times(b, back))
        return _times(near, self._stretch.T)

    def wrap_with_image(self, x):
        back, image = self.base.wrap_with_image(_times(x, inverse_matrix(self._stretch).T))
        return _times(back, self._stretch.T), image

    @property
    def volume(self):
        return self.base.volume * determinant(self._stretch)

    def max_cutoff(self, dimension: int):
        return self.base.max_cutoff(dimension)

    def is_degenerate(self):
        return self.base.is_degenerate()

    def detached(self) -> AbstractSpace:
        # The strain is 0: a list that was built for `base` stays one of this space.
        return self.base.detached()

    def __getattr__(self, name: str) -> Any:
        # Only what the base has and other spaces lack: JAX asks for names that no space has.
        if name.startswith("_") or name == "base" or not hasattr(self.base, name):
            raise AttributeError(f"StrainedSpace has no {name}")
        raise NoVirialError(
            f"an energy reads space.{name}, so that its virial cannot be found by straining the space: take "
            "displacements from space.displacement(a, b), extents from space.cell(d) and space.volume, or "
            "write virial(clock, state, cache)"
        )

    def _stretch_rows(self, rows: Float[Array, "d d"] | None) -> Float[Array, "d d"] | None:
        return None if rows is None else _times(rows, self._stretch.T)


def _apply(matrix: Float[Array, "d d"], vector: Components) -> Components:
    """matrix · vector, by components of any shape."""
    axes = range(len(vector))
    return tuple(sum(matrix[i, k] * vector[k] for k in axes) for i in axes)


def _times(rows: Float[Array, "... d"], matrix: Float[Array, "d d"]) -> Float[Array, "... d"]:
    return matmul(rows, matrix)
