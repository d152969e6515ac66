"""Operators on subsystems, applied term by term: no matrix of the whole space is made."""

import abc
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Complex, Float

from physkit.core import (
    DeclarationError,
    Module,
    Network,
    ShapeError,
    as_arguments,
    call_user_function,
    describe,
    drop_outdated_programs,
    param,
    scale_array,
    static,
)

from ._contraction import apply_matrix, as_whole
from ._local_parts import LocalPart
from ._register import Register


class AbstractOperator(Module):
    """A linear operator on n subsystems, which may depend on time.

    Operators add, and are scaled by numbers; `operator.driven(envelope)` is envelope(t) · operator. Write
    `apply` and `adjoint` for one of your own.
    """

    @abc.abstractmethod
    def apply(self, x: Array, t: ArrayLike = 0.0) -> Array:
        """The operator at time `t` on the leading axes of `x`, one a subsystem; other axes are a batch."""

    @abc.abstractmethod
    def adjoint(self) -> "AbstractOperator":
        """The Hermitian conjugate."""

    def apply_over(self, register: Register, x: Array, t: ArrayLike = 0.0) -> Array:
        """`apply` on the numbers that this device has of a register.

        **Errors:** `DeviceError` for an operator of a kind that is not computed over devices.
        """
        register.require_whole(type(self).__name__)
        return self.apply(x, t)

    def local_parts(self, t: ArrayLike = 0.0) -> list[LocalPart] | None:
        """Matrices on a few subsystems whose sum is the operator at time `t`; None where it is no such sum."""
        return None

    def expectation(self, x: Array, t: ArrayLike = 0.0) -> Float[Array, ""]:
        """The real part of ⟨x|operator|x⟩."""
        y = self.apply(x, t)
        return jnp.sum(x.real * y.real + x.imag * y.imag)

    def matrix(self, dims: Sequence[int], t: ArrayLike = 0.0) -> Complex[Array, "D D"]:
        """The operator at time `t` as a matrix, subsystem 0 most significant: for small systems."""
        drop_outdated_programs(self)
        return _matrix(self, tuple(dims), jnp.asarray(t, float))

    def driven(self, envelope: Any, args: Any = None) -> "Driven":
        """envelope(t) · operator: a function, or a Module that is called with t and whose parameters count."""
        return Driven(self, envelope, args)

    def __add__(self, other: Any) -> "OperatorSum":
        if not isinstance(other, AbstractOperator):
            raise DeclarationError(f"an operator adds to operators; got {describe(other)}")
        terms = [t.terms if isinstance(t, OperatorSum) else (t,) for t in (self, other)]
        return OperatorSum((*terms[0], *terms[1]))

    def __mul__(self, factor: ArrayLike) -> "Scaled":
        if isinstance(factor, Module) or callable(factor):
            raise DeclarationError(
                f"an operator is scaled by numbers; got {describe(factor)}. A factor that depends on time is "
                "operator.driven(envelope)"
            )
        return Scaled(self, factor)  # pyright: ignore[reportArgumentType]

    __rmul__ = __mul__

    def __neg__(self) -> "Scaled":
        return self * -1.0

    def __sub__(self, other: "AbstractOperator") -> "OperatorSum":
        return self + (-other)


class LocalOperator(AbstractOperator):
    """A matrix on a few subsystems.

        LocalOperator(destroy(3), 0)                          # a on subsystem 0
        LocalOperator(np.kron(destroy(3).T, destroy(3)), 0, 1)  # a₀† a₁

    **Arguments:**

    - `matrix`: `[D D]`, D the product of the dimensions of `sites`, the first most significant. Its elements
      are constants of the program; a `Scaled` operator has a parameter.
    - `sites`: the subsystems.

    **Errors:** `ShapeError` for a matrix that is not square, and for a state without these subsystems.
    """

    elements: tuple[tuple[complex, ...], ...] = static()
    sites: tuple[int, ...] = static()

    def __init__(self, matrix: ArrayLike | Sequence, *sites: int):
        self.elements, self.sites = as_elements(matrix), as_whole(sites)
        if not sites:
            raise ShapeError("a local operator acts on subsystems: LocalOperator(matrix, 0)")

    def apply(self, x: Array, t: ArrayLike = 0.0) -> Array:
        del t
        return apply_matrix(np.array(self.elements), x, self.sites)

    def local_parts(self, t: ArrayLike = 0.0) -> list[LocalPart]:
        return [LocalPart(self.sites, np.array(self.elements))]

    def adjoint(self) -> "LocalOperator":
        return LocalOperator(np.conj(np.array(self.elements).T), *self.sites)


class Scaled(AbstractOperator):
    """A number times an operator: the number, real or complex, is a parameter.

    **Errors:** `ShapeError` for more than one number.
    """

    operator: AbstractOperator
    factor: Array = param()

    def __check_init__(self):
        # Others would be multiplied along the last subsystem.
        if shape := np.shape(self.factor):
            raise ShapeError(f"an operator is scaled by one number; got shape {list(shape)}")

    def apply(self, x: Array, t: ArrayLike = 0.0) -> Array:
        return scale(self.operator.apply(x, t), self.factor)

    def apply_over(self, register: Register, x: Array, t: ArrayLike = 0.0) -> Array:
        return scale(self.operator.apply_over(register, x, t), self.factor)

    def local_parts(self, t: ArrayLike = 0.0) -> list[LocalPart] | None:
        return _times(self.operator.local_parts(t), self.factor)

    def adjoint(self) -> "Scaled":
        return Scaled(self.operator.adjoint(), jnp.conj(self.factor))


class OperatorSum(AbstractOperator):
    """The sum of several operators."""

    terms: tuple[AbstractOperator, ...]

    def apply(self, x: Array, t: ArrayLike = 0.0) -> Array:
        total = self.terms[0].apply(x, t)
        for term in self.terms[1:]:
            total = total + term.apply(x, t)
        return total

    def apply_over(self, register: Register, x: Array, t: ArrayLike = 0.0) -> Array:
        total = self.terms[0].apply_over(register, x, t)
        for term in self.terms[1:]:
            total = total + term.apply_over(register, x, t)
        return total

    def local_parts(self, t: ArrayLike = 0.0) -> list[LocalPart] | None:
        parts = [term.local_parts(t) for term in self.terms]
        if any(part is None for part in parts):
            return None
        return [own for part in parts if part is not None for own in part]

    def adjoint(self) -> "OperatorSum":
        return OperatorSum(tuple(term.adjoint() for term in self.terms))


class Driven(AbstractOperator):
    """envelope(t) times an operator: a pulse, a sweep, a rotating drive.

    **Arguments:**

    - `operator`: what is driven.
    - `envelope`: a Module that is called with t, whose parameters have gradients, as those of
      `GaussianPulse`; or a plain function of t. Real, or complex with its conjugate part added as another
      term.
    - `args`: numbers by which a plain function, then called as `envelope(t, args)`, is differentiable.

    **Errors:** `DeclarationError` for an envelope that cannot be called.
    """

    operator: AbstractOperator
    envelope: Module | None
    args: Any = eqx.field(converter=as_arguments)
    function: Callable | None = static()
    is_conjugate: bool = static()

    def __init__(
        self,
        operator: AbstractOperator,
        envelope: Any,
        args: Any = None,
        *,
        is_conjugate: bool = False,
    ):
        if not callable(envelope) or isinstance(envelope, type):
            raise DeclarationError(
                f"an envelope is a function of t, e.g. lambda t: jnp.cos(t); got {describe(envelope)}"
            )
        if isinstance(envelope, eqx.Module) and not isinstance(envelope, Module):
            envelope = Network(envelope)
        is_module = isinstance(envelope, Module)
        self.operator, self.args, self.is_conjugate = operator, args, is_conjugate
        self.envelope = envelope if is_module else None
        self.function = None if is_module else envelope

    def factor(self, t: ArrayLike) -> Array:
        """The envelope at time `t`."""
        function: Any = self.function if self.envelope is None else self.envelope
        arguments = (t,) if self.args is None else (t, self.args)
        value = call_user_function(function, arguments, "an envelope", "(t)")
        value = jnp.asarray(value)
        if value.ndim:
            raise ShapeError(f"an envelope is one number at a time; got shape {list(value.shape)}")
        return jnp.conj(value) if self.is_conjugate else value

    def apply(self, x: Array, t: ArrayLike = 0.0) -> Array:
        return scale(self.operator.apply(x, t), self.factor(t))

    def apply_over(self, register: Register, x: Array, t: ArrayLike = 0.0) -> Array:
        return scale(self.operator.apply_over(register, x, t), self.factor(t))

    def local_parts(self, t: ArrayLike = 0.0) -> list[LocalPart] | None:
        return _times(self.operator.local_parts(t), self.factor(t))

    def adjoint(self) -> "Driven":
        envelope = self.function if self.envelope is None else self.envelope
        return Driven(
            self.operator.adjoint(), envelope, self.args, is_conjugate=not self.is_conjugate
        )


@eqx.filter_jit  # one program, not one for each operation
def _matrix(operator: AbstractOperator, dims: tuple[int, ...], t: ArrayLike) -> Array:
    size = math.prod(dims)
    identity = jnp.eye(size, dtype=np.result_type(jnp.result_type(float), np.complex64))
    return operator.apply(identity.reshape(*dims, size), t).reshape(size, size)


def scale(x: Array, factor: Array) -> Array:
    """factor · x in the precision of `x`."""
    # Real by complex: half of the products. `scale_array` casts real factors only.
    return scale_array(x, factor.astype(x.dtype) if jnp.iscomplexobj(factor) else factor)


def _times(parts: list[LocalPart] | None, factor: Array) -> list[LocalPart] | None:
    return None if parts is None else [part.times(factor) for part in parts]


def as_elements(matrix: ArrayLike | Sequence) -> tuple[tuple[complex, ...], ...]:
    """A matrix as something that can be hashed.

    **Errors:** `ShapeError` for what is no square matrix.
    """
    array = np.asarray(matrix, complex)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ShapeError(f"an operator's matrix is square; got shape {list(array.shape)}")
    return tuple(tuple(complex(v) for v in row) for row in array)
