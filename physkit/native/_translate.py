"""From a traced JAX function of small arrays to statements in C."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import LINEAR_CALL, is_concrete

# More statements would take long to compile, and would not fit into a processor's registers.
_MAX_STATEMENTS = 2000

_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "bool": "_Bool",
}
# Operations on one element. `max` and `min` return NaN where one argument is NaN, as XLA's do: of this form GCC
# makes vector instructions, of others with `!=` it does not.
_FORMULAS = {
    "abs": "({0} < 0 ? -{0} : {0})",
    "add": "{0} + {1}",
    "add_any": "{0} + {1}",
    "and": "{0} & {1}",
    "clamp": "({1} < {0} ? {0} : ({1} > {2} ? {2} : {1}))",
    "copy": "{0}",
    "div": "{0} / {1}",
    "eq": "{0} == {1}",
    "ge": "{0} >= {1}",
    "gt": "{0} > {1}",
    "is_finite": "({0} - {0} == 0)",
    "le": "{0} <= {1}",
    "lt": "{0} < {1}",
    "max": "({0} >= {1} ? {0} : ({1} > {0} ? {1} : {0} + {1}))",
    "min": "({0} <= {1} ? {0} : ({1} < {0} ? {1} : {0} + {1}))",
    "mul": "{0} * {1}",
    "ne": "{0} != {1}",
    "neg": "-{0}",
    "or": "{0} | {1}",
    "select_n": "({0} ? {2} : {1})",
    "sign": "({0} > 0 ? 1 : ({0} < 0 ? -1 : {0}))",
    "square": "{0} * {0}",
    "sub": "{0} - {1}",
    "xor": "{0} ^ {1}",
}
_FLOAT_FUNCTIONS = {
    "ceil": "ceil",
    "erfc": "erfc_f",
    "exp": "exp_f",
    "floor": "floor",
    "rsqrt": "1 / sqrt",
    "sqrt": "sqrt",
}
_CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat2")
_REDUCTIONS = {
    "reduce_sum": "add",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "and",
    "reduce_or": "or",
}


class NotTranslatableError(Exception):
    """A function has an operation that has no counterpart here; the message names it."""


class Symbolic(NamedTuple):
    """An array that exists in C only: an expression for each element, in an array of objects."""

    elements: np.ndarray
    dtype: np.dtype


Value = Symbolic | Any  # what is no `Symbolic` is a number or an array that JAX knows


class Translation:
    """Turns a jaxpr into C, operation by operation.

    What depends on known arrays only JAX computes, outside of the loop; the results are constants, which the C
    code reads from memory.

    - `row_statements`, `statements`: what depends on the row only, before the loop over its partners, and the
      loop's body. `constants`: the known arrays that it reads, `k0`, `k1` …: pointers, or
      numbers where they have one element.
    """

    def __init__(self, of_partner: Sequence[Symbolic]) -> None:
        """`of_partner`: what changes within the loop."""
        self.row_statements: list[str] = []
        self.statements: list[str] = []
        self._changing = {name for s in of_partner for name in s.elements.flat}
        self.constants: list[Array] = []
        self._names: dict[int, str] = {}
        self._count = itertools.count()

    def call(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Value]) -> list[Value]:
        """The results of a jaxpr for arguments of which each is known or symbolic.

        **Errors:** `NotTranslatableError`.
        """
        values: dict[Any, Value] = dict(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))

        def value(variable: Any) -> Value:
            # Literals carry their value.
            return variable.val if hasattr(variable, "val") else values[variable]

        for equation in jaxpr.eqns:
            results = self._apply(equation, [value(v) for v in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
        return [value(v) for v in jaxpr.outvars]

    def symbolic(self, value: Value, dtype: np.dtype | None = None) -> Symbolic:
        """`value`, with an expression in C for each element."""
        if isinstance(value, Symbolic):
            return value
        dtype = (
            np.dtype(value.dtype if hasattr(value, "dtype") else jnp.result_type(value))
            if dtype is None
            else dtype
        )
        shape = np.shape(value)
        if math.prod(shape) == 1 and is_concrete(value):
            return Symbolic(
                np.full(shape, _literal(np.asarray(value).item(), dtype), object), dtype
            )
        name, size = self._constant(value), math.prod(shape)
        elements = [name] if size == 1 else [f"{name}[{k}]" for k in range(size)]
        return Symbolic(np.array(elements, object).reshape(shape), dtype)

    def _constant(self, value: Any) -> str:
        if id(value) not in self._names:
            self._names[id(value)] = f"k{len(self.constants)}"
            self.constants.append(value)  # also keeps it alive, and its id its own
        return self._names[id(value)]

    def _apply(self, equation: Any, values: list[Value]) -> list[Value]:
        primitive, params = equation.primitive, equation.params
        name = primitive.name
        if name in _CALLS:
            inner = params.get("jaxpr", params.get("call_jaxpr"))
            return self.call(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), values)
        if name == LINEAR_CALL:
            # Its implementation computes the value; what it adds are derivatives.
            inner = jax.make_jaxpr(lambda *arrays: primitive.impl(*arrays, **params))(
                *(v.aval for v in equation.invars)
            )
            return self.call(inner.jaxpr, inner.consts, values)
        if not any(isinstance(v, Symbolic) for v in values):
            out = primitive.bind(*values, **params)
            return list(out) if primitive.multiple_results else [out]
        if name == "optimization_barrier":
            return values
        dtypes = [np.dtype(v.aval.dtype) for v in equation.invars]
        if name == "gather":
            return [self._gather(values[0], self.symbolic(values[1], dtypes[1]), params, equation)]
        symbols = [self.symbolic(v, t) for v, t in zip(values, dtypes, strict=True)]
        out = equation.outvars[0].aval
        if name in _STRUCTURAL:
            results = _STRUCTURAL[name](params, *(s.elements for s in symbols))
            return [Symbolic(r, symbols[0].dtype) for r in results]
        if name in _REDUCTIONS:
            return [self._reduce(_REDUCTIONS[name], symbols[0], params["axes"], out.dtype)]
        if name == "select_n" and len(symbols) != 3:
            raise NotTranslatableError("a choice of more than two")
        formula = _formula(name, params, symbols[0].dtype, np.dtype(out.dtype))
        return [self._elementwise(formula, symbols, out.shape, np.dtype(out.dtype))]

    def _elementwise(
        self, formula: str, symbols: Sequence[Symbolic], shape: tuple[int, ...], dtype: np.dtype
    ) -> Symbolic:
        operands = [np.broadcast_to(s.elements, shape) for s in symbols]
        out = np.empty(shape, object)
        for place in np.ndindex(*shape):
            names = [o[place] for o in operands]
            out[place] = self._assign(formula.format(*names), names, dtype)
        return Symbolic(out, dtype)

    def _assign(self, expression: str, operands: Sequence[str], dtype: np.dtype) -> str:
        name = f"t{next(self._count)}"
        if not self._changing.isdisjoint(operands):
            self._changing.add(name)
        # Compilers move such statements out of a loop, too, but no longer after they failed to vectorize it.
        kept = self.statements if name in self._changing else self.row_statements
        if len(kept) >= _MAX_STATEMENTS:
            raise NotTranslatableError("too many operations")
        kept.append(f"const {c_type(dtype)} {name} = {expression};")
        return name

    def _reduce(
        self, operation: str, symbol: Symbolic, axes: Sequence[int], dtype: Any
    ) -> Symbolic:
        kept = [axis for axis in range(symbol.elements.ndim) if axis not in axes]
        rows = symbol.elements.transpose(*kept, *axes)
        shape = rows.shape[: len(kept)]
        rows = rows.reshape(*shape, -1)
        total = rows[..., 0]
        for k in range(1, rows.shape[-1]):
            pair = (Symbolic(total, symbol.dtype), Symbolic(rows[..., k], symbol.dtype))
            total = self._elementwise(_FORMULAS[operation], pair, shape, np.dtype(dtype)).elements
        return Symbolic(total, symbol.dtype)

    def _gather(self, table: Value, index: Symbolic, params: dict, equation: Any) -> Symbolic:
        """Elements of a table that JAX knows, at places that are computed in C."""
        numbers, sizes, aval = (
            params["dimension_numbers"],
            params["slice_sizes"],
            equation.outvars[0].aval,
        )
        is_plain = not (numbers.operand_batching_dims or numbers.start_indices_batching_dims)
        if isinstance(table, Symbolic) or not is_plain:
            raise NotTranslatableError("gather from what depends on the pair")
        shape, out = np.shape(table), np.empty(aval.shape, object)
        dtype, name = np.dtype(aval.dtype), self._constant(table)
        batch_axes = [a for a in range(len(aval.shape)) if a not in numbers.offset_dims]
        sliced_axes = [a for a in range(len(shape)) if a not in numbers.collapsed_slice_dims]
        strides = [math.prod(shape[a + 1 :]) for a in range(len(shape))]
        for place in np.ndindex(*aval.shape):
            starts, bounds = index.elements[tuple(place[a] for a in batch_axes)], []
            terms = [
                f"{place[a] * strides[axis]}"
                for a, axis in zip(numbers.offset_dims, sliced_axes, strict=True)
                if place[a]
            ]
            for start, axis in zip(starts, numbers.start_index_map, strict=True):
                last = shape[axis] - sizes[axis]
                # Also where JAX was promised that it is inside: of no pair, an index may be anything.
                bounded = f"{start} < 0 ? 0 : ({start} > {last} ? {last} : {start})"
                bounded = self._assign(bounded, [start], np.dtype("int64"))
                bounds.append(bounded)
                terms.append(f"{bounded} * {strides[axis]}")
            element = name if math.prod(shape) == 1 else f"{name}[{' + '.join(terms) or '0'}]"
            out[place] = self._assign(element, bounds, dtype)
            if "FILL" in str(params["mode"]):
                inside = " & ".join(
                    f"({s} >= 0) & ({s} <= {shape[a] - sizes[a]})"
                    for s, a in zip(starts, numbers.start_index_map, strict=True)
                )
                fill = params["fill_value"]
                fill = (math.nan if dtype.kind == "f" else 0) if fill is None else fill
                chosen = f"{inside} ? {out[place]} : {_literal(fill, dtype)}"
                out[place] = self._assign(chosen, [*starts, out[place]], dtype)
        return Symbolic(out, dtype)


def c_type(dtype: Any) -> str:
    """**Errors:** `NotTranslatableError` for a type that C has not."""
    name = np.dtype(dtype).name if dtype != jax.dtypes.float0 else "float0"
    if name not in _C_TYPES:
        raise NotTranslatableError(f"numbers of type {name}")
    return _C_TYPES[name]


def _literal(value: float | int | bool, dtype: np.dtype) -> str:
    """A number in C, to the last bit."""
    if dtype.kind != "f":
        return f"(({c_type(dtype)}){int(value)}{'u' if dtype.kind == 'u' else ''})"
    suffix = "f" if dtype.itemsize == 4 else ""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = float(value).hex() + suffix
    return f"({text})" if text.startswith("-") else text


def _formula(name: str, params: dict, dtype: np.dtype, out: np.dtype) -> str:
    """An operation on one element, with `{0}`, `{1}` … in the place of its arguments."""
    if name in _FLOAT_FUNCTIONS:
        if dtype.kind != "f":
            raise NotTranslatableError(name)
        function = _FLOAT_FUNCTIONS[name]
        suffix = (
            str(8 * dtype.itemsize)
            if function.endswith("_f")
            else ("f" if dtype.itemsize == 4 else "")
        )
        return f"{function}{suffix}({{0}})"
    if name == "round":
        to_even = int(params["rounding_method"]) == int(jax.lax.RoundingMethod.TO_NEAREST_EVEN)
        return f"{'rint' if to_even else 'round'}{'f' if dtype.itemsize == 4 else ''}({{0}})"
    if name == "integer_pow":
        return _power(params["y"])
    if name == "convert_element_type":
        return "({0} != 0)" if out.kind == "b" else f"({c_type(out)}){{0}}"
    if name == "not":
        return "!{0}" if dtype.kind == "b" else "~{0}"
    if name not in _FORMULAS or (name == "div" and dtype.kind != "f"):
        raise NotTranslatableError(name)
    return _FORMULAS[name]


def _power(exponent: int) -> str:
    """{0} to an integer power, by squares."""
    if exponent < 0:
        return f"1 / ({_power(-exponent)})"
    if exponent == 0:
        return "1"
    if exponent == 1:
        return "{0}"
    half = _power(exponent // 2)
    return f"({half}) * ({half})" + (" * {0}" if exponent % 2 else "")


def _concatenate(params: dict, *parts: np.ndarray) -> list[np.ndarray]:
    return [np.concatenate(parts, axis=params["dimension"])]


def _broadcast(params: dict, x: np.ndarray, *_: np.ndarray) -> list[np.ndarray]:
    shape = [1] * len(params["shape"])
    for axis, size in zip(params["broadcast_dimensions"], x.shape, strict=True):
        shape[axis] = size
    return [np.broadcast_to(x.reshape(shape), params["shape"])]


def _slice(params: dict, x: np.ndarray) -> list[np.ndarray]:
    strides = params["strides"] or (1,) * x.ndim
    limits = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return [x[tuple(slice(*limit) for limit in limits)]]


# Operations that move elements and compute nothing.
_STRUCTURAL: dict[str, Callable[..., list[np.ndarray]]] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "reshape": lambda params, x: [x.reshape(params["new_sizes"])],
    "rev": lambda params, x: [np.flip(x, params["dimensions"])],
    "slice": _slice,
    "split": lambda params, x: np.split(x, np.cumsum(params["sizes"])[:-1], params["axis"]),
    "squeeze": lambda params, x: [np.squeeze(x, tuple(params["dimensions"]))],
    "transpose": lambda params, x: [x.transpose(params["permutation"])],
}
