"""Mixed states: density matrices, with an axis for each subsystem on either side."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Complex, Float

from physkit.core import ParameterError, ShapeError, build_unchecked, concrete_value, data

from ._contraction import as_matrix
from ._operators import AbstractOperator
from ._pauli_sum import require_subsystems
from ._quantum_state import (
    AbstractQuantumState,
    Sites,
    as_complex,
    as_sites,
    basis_array,
    check_total,
    replace_array,
)


class DensityMatrix(AbstractQuantumState):
    """The mixed state of n subsystems of any dimensions.

        ρ = Σ ρ[i₀ … i_{n−1}, j₀ … j_{n−1}] |i₀ … ⟩⟨j₀ … |

        StateVector.basis((2, 2)).density()
        DensityMatrix(np.eye(4) / 4, (2, 2))

    **Arguments:**

    - `elements`: `[d₀ … d_{n−1} d₀ … d_{n−1}]`, or a matrix `[D D]` with `dims`.
    - `dims`: dimensions of the subsystems; half of the shape if left out.

    **Errors:** `ShapeError` where they disagree; `ParameterError` unless Tr ρ = 1 to a thousandth
    and ρ is Hermitian to 1e-4.
    """

    elements: Complex[Array, "..."] = data()

    def __init__(self, elements: ArrayLike | Sequence, dims: Sequence[int] | None = None):
        self.elements = _shaped(as_complex(elements), dims)
        numbers = concrete_value(self.elements)
        total = (
            None
            if numbers is None
            else complex(np.trace(numbers.reshape(2 * (math.prod(self.dims),))))
        )
        check_total(total, "DensityMatrix", "Tr ρ")
        if numbers is not None:
            matrix = numbers.reshape(2 * (math.prod(self.dims),))
            if not np.allclose(matrix, matrix.conj().T, atol=1e-4):
                raise ParameterError(
                    "a density matrix is Hermitian; this one differs from its conjugate transpose by "
                    f"{np.max(np.abs(matrix - matrix.conj().T)):.2g}"
                )

    @staticmethod
    def basis(
        dims: int | Sequence[int],
        levels: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
    ) -> "DensityMatrix":
        """|i⟩⟨i| of a basis state with subsystem k in level `levels[k]`; all in level 0 if left out."""
        vector = basis_array(dims, levels, dtype)
        return DensityMatrix(jnp.multiply.outer(vector, vector))

    @staticmethod
    def unnormalized(
        elements: ArrayLike | Sequence, dims: Sequence[int] | None = None
    ) -> "DensityMatrix":
        """Elements of any trace, unchecked: for `normalized()`."""
        array = _shaped(as_complex(elements), dims)
        return build_unchecked(DensityMatrix, {"elements": array})

    @property
    def dims(self) -> tuple[int, ...]:
        return self.elements.shape[: self.elements.ndim // 2]

    @property
    def array(self) -> Array:
        return self.elements

    def with_array(self, array: Array) -> "DensityMatrix":
        return replace_array(self, "elements", array)

    def matrix(self) -> Complex[Array, "D D"]:
        """The elements as `[D D]`, subsystem 0 most significant."""
        return as_matrix(self.elements)

    def total(self) -> Float[Array, ""]:
        return jnp.trace(self.matrix()).real

    def diagonal(self) -> Float[Array, "..."]:
        return jnp.diagonal(self.matrix()).real.reshape(self.dims)

    def expectation(self, operator: AbstractOperator, t: ArrayLike = 0.0) -> Float[Array, ""]:
        require_subsystems(operator, self.dims)
        return jnp.trace(as_matrix(operator.apply(self.elements, t))).real

    def density(self) -> "DensityMatrix":
        return self

    def reduced(self, sites: Sites) -> "DensityMatrix":
        n, kept = len(self.dims), as_sites(sites, self.dims)
        others = [k for k in range(n) if k not in kept]
        dims = tuple(self.dims[k] for k in kept)
        size, rest = math.prod(dims), math.prod(self.dims[k] for k in others)
        order = (*kept, *others, *(n + k for k in kept), *(n + k for k in others))
        table = jnp.transpose(self.elements, order).reshape(size, rest, size, rest)
        return DensityMatrix.unnormalized(jnp.trace(table, axis1=1, axis2=3), dims)

    def smallest_eigenvalue(self) -> Float[Array, ""]:
        """The least probability in the spectrum of ρ: below 0 only by the error of a method."""
        return jnp.linalg.eigvalsh(self.matrix())[0]


def _shaped(array: Array, dims: Sequence[int] | None) -> Array:
    if dims is not None:
        if array.size != math.prod(dims) ** 2:
            raise ShapeError(
                f"{array.size} elements for subsystems of dimensions {list(dims)}, whose density matrix has "
                f"{math.prod(dims) ** 2}"
            )
        array = array.reshape((*dims, *dims))
    half = array.ndim // 2
    if array.ndim == 0 or array.ndim % 2 or array.shape[:half] != array.shape[half:]:
        raise ShapeError(
            "a density matrix is [d₀ … d₀ …], each dimension twice, or [D D] with dims; got shape "
            f"{list(array.shape)}"
        )
    return array
