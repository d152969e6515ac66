"""Arithmetic of fields, and what happens where a field is taken for an array."""

import abc
import operator
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from physkit.core import DeclarationError, Module, ShapeError, describe, scale_array
from physkit.geometry import AnyGrid, Location

from ._collocation import require_same_location
from ._spectrum import Spectrum

_ADVICE_FOR_NUMBER = (
    "a Field has a value at every point: field.mean(), min(), max() and integral() are numbers, "
    "field.data[i] is one value"
)
_ADVICE = (
    "a Field is no array: field.map(jnp.sin) is the sine of its values, as a field; field.data its values, "
    "as an array; field.integral(), mean(), norm(), min() and max() are over the whole domain"
)
_NUMPY_OPERATORS = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
}


class AbstractFieldArithmetic(Module):
    """What fields do in formulas: +, −, ×, ÷ and powers, with fields in the same place and with arrays."""

    data: eqx.AbstractVar[Inexact[Array, "..."]]
    grid: eqx.AbstractVar[AnyGrid]
    location: eqx.AbstractVar[Location]
    vector: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def with_values(self, values: Array, *, vector: bool | None = None) -> Any:
        """Other values at the same points, without a boundary of their own."""

    def __add__(self, other):
        return self._combine(other, jnp.add)

    def __radd__(self, other):
        return self._combine(other, lambda a, b: b + a)

    def __sub__(self, other):
        return self._combine(other, jnp.subtract)

    def __rsub__(self, other):
        return self._combine(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self._combine(other, _product)

    def __rmul__(self, other):
        return self._combine(other, _product)

    def __truediv__(self, other):
        return self._combine(other, jnp.divide)

    def __rtruediv__(self, other):
        return self._combine(other, lambda a, b: b / a)

    def __pow__(self, power):
        _require_operand(self.data, power)
        return self.with_values(self.data**power)

    def __neg__(self):
        return self.with_values(-self.data)

    def __abs__(self):
        return self.with_values(jnp.abs(self.data))

    def _combine(self, other: Any, operation: Callable[[Any, Any], Array]) -> Any:
        if isinstance(other, Spectrum):
            raise ShapeError("a field and a spectrum: use spectrum.field(), or field.spectrum()")
        if not isinstance(other, AbstractFieldArithmetic):
            _require_operand(self.data, other)
            data, number = _in_one_precision(self.data, other)
            # A complex number times a real one costs half of what two complex ones do: `_product` knows.
            if jnp.iscomplexobj(data) and operation is not _product and jnp.ndim(number) == 0:
                number = jnp.asarray(number, data.dtype)
            return self.with_values(operation(data, number))
        require_same_location(self, other)
        a, b = self.data, other.data
        # A scalar times a vector is a vector: leading axes of components broadcast.
        vector = self.vector or other.vector
        return self.with_values(operation(a, b), vector=vector)

    def __float__(self) -> float:
        raise DeclarationError(_ADVICE_FOR_NUMBER)

    def __int__(self) -> int:
        raise DeclarationError(_ADVICE_FOR_NUMBER)

    def __matmul__(self, other):
        raise DeclarationError(
            "fields have no @: components multiply point by point with *; ∫ a·b dV is (a * b).integral()"
        )

    # --- taken for an array ---------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        del copy  # the values of a JAX array are never those of a NumPy array that one may write to
        return np.asarray(self.data, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # NumPy array * field: by the field's own operators. All else that NumPy computes has no grid.
        of_fields = _NUMPY_OPERATORS.get(ufunc)
        if of_fields is None or method != "__call__" or options:
            raise ShapeError(_ADVICE)
        arrays = np.ndarray | np.generic  # which would call this method again
        first, second = (jnp.asarray(x) if isinstance(x, arrays) else x for x in inputs)
        return of_fields(first, second)

    def __jax_array__(self) -> Any:
        # Not the values: the result would have lost its grid and its boundary without a word. Operators of
        # JAX arrays do not know what this returns either, and leave the work to those above.
        return _NoArray()


class _NoArray:
    """What JAX gets in place of an array: it says why there is none wherever it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise ShapeError(_ADVICE)

    def __repr__(self) -> str:
        return f"({_ADVICE})"


def _require_operand(data: Array, other: Any) -> None:
    """**Errors:** `DeclarationError` for what is no number, array or field, `ShapeError` for another shape."""
    if other is None or isinstance(other, str | bytes | list | tuple | dict | Module):
        raise DeclarationError(
            f"a field goes with numbers, arrays and fields in formulas; got {describe(other)}"
        )
    shape = jnp.shape(other)
    try:
        # Leading axes make components of a scalar field.
        fits = np.broadcast_shapes(data.shape, shape)[-data.ndim :] == data.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"a field with values {data.shape} and an array {shape} do not fit")


def _in_one_precision(data: Array, other: Any) -> tuple[Array, Any]:
    """Values, and a number that goes over all of them in their precision: it does not widen them."""
    if not isinstance(other, complex) and (not hasattr(other, "dtype") or jnp.ndim(other)):
        return data, other  # numbers of Python have no precision of their own
    real = jnp.finfo(data.dtype).dtype
    if not jnp.iscomplexobj(other):
        return data, jnp.asarray(other, real)
    complex_dtype = np.result_type(real, np.complex64)
    return data.astype(complex_dtype), jnp.asarray(other, complex_dtype)


def _product(a: Array, b: Any) -> Array:
    if jnp.iscomplexobj(a):
        return scale_array(a, b)
    return scale_array(b, a) if jnp.iscomplexobj(b) and jnp.ndim(b) else a * b
