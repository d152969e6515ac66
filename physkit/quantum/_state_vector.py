"""Pure states: one complex amplitude for each basis state."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Complex, Float

from physkit.core import ShapeError, build_unchecked, concrete_value, data, matmul
from physkit.geometry import shard_array, unshard_array

from ._contraction import check_sites
from ._density_matrix import DensityMatrix
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
from ._register import Register


class StateVector(AbstractQuantumState):
    """The pure state of n subsystems of any dimensions.

        |ψ⟩ = Σ ψ[i₀ … i_{n−1}] |i₀ … i_{n−1}⟩

        StateVector.basis((2, 2, 2))                  # three qubits in |000⟩
        StateVector([1, 0, 0, 1j] / np.sqrt(2), (2, 2))

    Subsystem 0 is the leading axis: in a flat vector its digit counts most, and in the text of an outcome it
    stands leftmost. `simulate`, `run`, `fit` and `sweep` take it as any other component. Over devices, axis k
    of these is subsystem k: `devices=(2, 2)` cuts two qubits.

    **Arguments:**

    - `amplitudes`: `[d₀ … d_{n−1}]`, or flat with `dims`; complex64 or complex128.
    - `dims`: dimensions of the subsystems; the shape of `amplitudes` if left out.

    **Errors:** `ShapeError` where they disagree; `ParameterError` unless ⟨ψ|ψ⟩ = 1 to a thousandth.
    """

    amplitudes: Complex[Array, "..."] = data()
    register: Register

    def __init__(self, amplitudes: ArrayLike | Sequence, dims: Sequence[int] | None = None):
        self.amplitudes = _shaped(as_complex(amplitudes), dims)
        self.register = Register(self.amplitudes.shape)
        numbers = concrete_value(self.amplitudes)
        total = None if numbers is None else complex(np.vdot(numbers, numbers))
        check_total(total, "StateVector", "⟨ψ|ψ⟩")

    @staticmethod
    def basis(
        dims: int | Sequence[int],
        levels: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
    ) -> "StateVector":
        """The basis state with subsystem k in level `levels[k]`; all in level 0 if left out."""
        return StateVector(basis_array(dims, levels, dtype))

    @staticmethod
    def unnormalized(
        amplitudes: ArrayLike | Sequence, dims: Sequence[int] | None = None
    ) -> "StateVector":
        """Amplitudes of any norm, unchecked: for `normalized()`."""
        array = _shaped(as_complex(amplitudes), dims)
        fields = {"amplitudes": array, "register": Register(array.shape)}
        return build_unchecked(StateVector, fields)

    @property
    def dims(self) -> tuple[int, ...]:
        return self.register.dims

    @property
    def array(self) -> Array:
        return self.amplitudes

    def with_array(self, array: Array) -> "StateVector":
        return replace_array(self, "amplitudes", array)

    def total(self) -> Float[Array, ""]:
        return self.register.sum(jnp.sum(self.diagonal()))

    def diagonal(self) -> Float[Array, "..."]:
        return self.amplitudes.real**2 + self.amplitudes.imag**2

    def expectation(self, operator: AbstractOperator, t: ArrayLike = 0.0) -> Float[Array, ""]:
        require_subsystems(operator, self.dims)
        x, y = self.amplitudes, operator.apply_over(self.register, self.amplitudes, t)
        return self.register.sum(jnp.sum(x.real * y.real + x.imag * y.imag))

    def marginal(self, kept: tuple[int, ...]) -> Float[Array, "..."]:
        return self.register.marginal(self.diagonal(), kept)

    def density(self) -> DensityMatrix:
        self.register.require_whole("a density matrix")
        flat = self.amplitudes.reshape(-1)
        return _density(jnp.outer(flat, jnp.conj(flat)), self.dims)

    def reduced(self, sites: Sites) -> DensityMatrix:
        self.register.require_whole("the state of a part, or its entropy,")
        kept = as_sites(sites, self.dims)
        others = [k for k in range(len(self.dims)) if k not in kept]
        dims = tuple(self.dims[k] for k in kept)
        table = jnp.transpose(self.amplitudes, (*kept, *others)).reshape(math.prod(dims), -1)
        return _density(matmul(table, jnp.conj(table.T)), dims)

    def shard(self, devices: tuple[int, ...]) -> "StateVector":
        self.register.check_devices(devices)
        shared = (False,) * len(self.dims)
        return self.with_array(shard_array(self.amplitudes, devices, shared))

    def unshard(self, devices: tuple[int, ...]) -> "StateVector":
        shared = (False,) * len(self.dims)
        return self.with_array(unshard_array(self.amplitudes, devices, shared))


def _density(matrix: Array, dims: tuple[int, ...]) -> DensityMatrix:
    return DensityMatrix.unnormalized(matrix, dims)


def _shaped(array: Array, dims: Sequence[int] | None) -> Array:
    if dims is not None:
        if math.prod(dims) != array.size:
            raise ShapeError(
                f"{array.size} amplitudes for subsystems of dimensions {list(dims)}, which have "
                f"{math.prod(dims)}"
            )
        array = array.reshape(tuple(dims))
    check_sites(range(array.ndim), array.shape)
    if array.ndim == 0:
        raise ShapeError("a state vector has an axis for each subsystem; got one number")
    return array
