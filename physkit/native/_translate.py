"""From a traced JAX function of small arrays to statements in C."""

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence, Set as AbstractSet
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import called_program, is_concrete, is_literal, vary_alike

from ._formulas import ELEMENTWISE, NotTranslatableError, c_type, formula, literal

# More statements would take long to compile, and would not fit into a processor's registers.
MAX_STATEMENTS = 2000

_REDUCTIONS = {
    "reduce_sum": "add",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "and",
    "reduce_or": "or",
}
_GATHER_MODES = (
    jax.lax.GatherScatterMode.CLIP,
    jax.lax.GatherScatterMode.FILL_OR_DROP,
    jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS,
)


class Symbolic(NamedTuple):
    """An array that exists in native code only: an expression for each element, in an array of objects."""

    elements: np.ndarray
    dtype: np.dtype


class Start(NamedTuple):
    """Where a gather begins along an axis of a table: the name of the index, its largest value, the stride."""

    name: str
    last: int
    stride: int


_T = TypeVar("_T")
Value = Symbolic | Any  # what is no `Symbolic` is a number or an array that JAX knows


class Translation:
    """Turns a jaxpr into C, operation by operation. `TileTranslation` makes something else of single numbers.

    What depends on known arrays only JAX computes, outside of the loop; the results are constants, which the C
    code reads from memory.

    - `row_statements`, `statements`: what depends on the row only, before the loop over its partners, and the
      loop's body. `constants`: the known arrays that it reads, `k0`, `k1` …: pointers, or
      numbers where they have one element.
    """

    translated: AbstractSet[str]  # the primitives that this has a translation of

    def __init__(
        self, of_partner: Sequence[Symbolic], most_statements: int = MAX_STATEMENTS
    ) -> None:
        """`of_partner`: what changes within the loop."""
        self._most_statements = most_statements
        self.row_statements: list[Any] = []
        self.statements: list[Any] = []
        self._changing = {name for s in of_partner for name in s.elements.flat}
        self.constants: list[Array] = []
        self._names: dict[int, tuple[str, Any]] = {}
        self._count = itertools.count()

    def call(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Value]) -> list[Value]:
        """The results of a jaxpr for arguments of which each is known or symbolic.

        **Errors:** `NotTranslatableError`.
        """
        values: dict[Any, Value] = dict(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))

        def value(variable: Any) -> Value:
            # Literals carry their value.
            return variable.val if is_literal(variable) else values[variable]

        for equation in jaxpr.eqns:
            results = self._apply(equation, [value(v) for v in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
        return [value(v) for v in jaxpr.outvars]

    def known(self, leaf: Array) -> Value:
        """What JAX knows, as an argument of `call`."""
        return leaf

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
            number = self._literal(np.asarray(value).item(), dtype)
            return Symbolic(np.full(shape, number, object), dtype)
        name, size = self._constant(value, dtype), math.prod(shape)
        elements = [self._element(name, k, size) for k in range(size)]
        return Symbolic(np.array(elements, object).reshape(shape), dtype)

    def _literal(self, value: float | int | bool, dtype: np.dtype) -> str:
        return literal(value, dtype)

    def _element(self, name: str, k: int, size: int) -> str:
        """Element `k` of a constant of `size` elements."""
        return name if size == 1 else f"{name}[{k}]"

    def _constant(self, value: Any, dtype: np.dtype) -> str:
        # The value is kept: as long as it lives, its id is its own.
        if id(value) not in self._names:
            self._names[id(value)] = f"k{len(self.constants)}", value
            # Of the type that C reads: without double precision JAX takes a `float64` of NumPy for a `float32`.
            self.constants.append(jnp.asarray(value, dtype))
        return self._names[id(value)][0]

    def _apply(self, equation: Any, values: list[Value]) -> list[Value]:
        primitive, params = equation.primitive, equation.params
        name = primitive.name
        if called := called_program(equation):
            return self.call(*called, values)
        if not any(isinstance(v, Symbolic) for v in values):
            out = primitive.bind(*vary_alike(values), **params)
            return list(out) if primitive.multiple_results else [out]
        if name in _IDENTITIES:
            return values
        if name not in self.translated:
            raise NotTranslatableError(name)
        dtypes, out = [v.aval.dtype for v in equation.invars], equation.outvars[0].aval
        if name == "gather":
            return [self._gather(values[0], self.symbolic(values[1], dtypes[1]), params, out)]
        symbols = [self.symbolic(v, t) for v, t in zip(values, dtypes, strict=True)]
        if name in _STRUCTURAL:
            results = _STRUCTURAL[name](params, *(s.elements for s in symbols))
            return [Symbolic(r, symbols[0].dtype) for r in results]
        if name in _REDUCTIONS:
            return [self._reduce(_REDUCTIONS[name], symbols[0], params["axes"])]
        if name == "clamp":
            least, x, most = symbols
            raised = self._elementwise("max", {}, [least, x], out)
            return [self._elementwise("min", {}, [raised, most], out)]
        if name == "select_n" and len(symbols) != 3:
            raise NotTranslatableError("a choice of more than two")
        return [self._elementwise(name, params, symbols, out)]

    def _elementwise(
        self, name: str, params: dict, symbols: Sequence[Symbolic], aval: Any
    ) -> Symbolic:
        text = formula(name, params, symbols[0].dtype, aval.dtype)
        operands = [np.broadcast_to(s.elements, aval.shape) for s in symbols]
        out = np.empty(aval.shape, object)
        for place in np.ndindex(*aval.shape):
            names = [o[place] for o in operands]
            out[place] = self._assign(text.format(*names), names, aval.dtype)
        return Symbolic(out, aval.dtype)

    def _assign(self, expression: str, operands: Sequence[str], dtype: np.dtype) -> str:
        kind = c_type(dtype)
        return self._add(operands, lambda name: f"const {kind} {name} = {expression};")

    def _add(self, operands: Sequence[str], statement: Callable[[str], Any]) -> str:
        """Add the statement that defines a new name, before the loop or in it; returns the name."""
        name = f"t{next(self._count)}"
        if not self._changing.isdisjoint(operands):
            self._changing.add(name)
        # Compilers move such statements out of a loop, too, but no longer after they failed to vectorize it.
        kept = self.statements if name in self._changing else self.row_statements
        if len(kept) >= self._most_statements:
            raise NotTranslatableError("too many operations")
        kept.append(statement(name))
        return name

    def _reduce(self, operation: str, symbol: Symbolic, axes: Sequence[int]) -> Symbolic:
        kept = [axis for axis in range(symbol.elements.ndim) if axis not in axes]
        rows = symbol.elements.transpose(*axes, *kept)
        rows = rows.reshape(math.prod(rows.shape[: len(axes)]), *rows.shape[len(axes) :])
        if not len(rows):
            raise NotTranslatableError("a reduction of nothing")
        total, *others = (Symbolic(np.asarray(row, object), symbol.dtype) for row in rows)
        aval = jax.ShapeDtypeStruct(total.elements.shape, symbol.dtype)
        for other in others:
            total = self._elementwise(operation, {}, [total, other], aval)
        return total

    def _gather(self, table: Value, index: Symbolic, params: dict, aval: Any) -> Symbolic:
        """Elements of a table that JAX knows, at places that are computed in C."""
        numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
        mode, shape = params["mode"], np.shape(table)
        if isinstance(table, Symbolic) or numbers.operand_batching_dims:
            raise NotTranslatableError("gather from what depends on the pair")
        if mode not in _GATHER_MODES or math.prod(shape) == 0:
            raise NotTranslatableError(f"gather from {shape} in mode {mode}")
        name, out = self._constant(table, aval.dtype), np.empty(aval.shape, object)
        batch_axes = [a for a in range(len(aval.shape)) if a not in numbers.offset_dims]
        sliced_axes = [a for a in range(len(shape)) if a not in numbers.collapsed_slice_dims]
        strides = [math.prod(shape[a + 1 :]) for a in range(len(shape))]
        last = [size - slice_size for size, slice_size in zip(shape, sizes, strict=True)]
        for place in np.ndindex(*aval.shape):
            index_here = index.elements[tuple(place[a] for a in batch_axes)]
            offset = sum(
                place[a] * strides[axis]
                for a, axis in zip(numbers.offset_dims, sliced_axes, strict=True)
            )
            starts = [
                Start(start, last[axis], strides[axis])
                for start, axis in zip(index_here, numbers.start_index_map, strict=True)
            ]
            element = self._look_up(name, math.prod(shape), offset, starts, aval.dtype)
            if mode == jax.lax.GatherScatterMode.FILL_OR_DROP and starts:
                element = self._fill(element, starts, params["fill_value"], aval.dtype)
            out[place] = element
        return Symbolic(out, aval.dtype)

    def _look_up(
        self, table: str, size: int, offset: int, starts: Sequence[Start], dtype: np.dtype
    ) -> str:
        # Also where JAX was promised that it is inside: of no pair, an index may be anything.
        terms, bounds = [f"{offset}"] if offset else [], []
        for start, last, stride in starts:
            bounded = f"{start} < 0 ? 0 : ({start} > {last} ? {last} : {start})"
            bounds.append(self._assign(bounded, [start], np.dtype("int64")))
            terms.append(f"{bounds[-1]} * {stride}")
        element = table if size == 1 else f"{table}[{' + '.join(terms) or '0'}]"
        return self._assign(element, bounds, dtype)

    def _fill(
        self, element: str, starts: Sequence[Start], fill: float | int | bool, dtype: np.dtype
    ) -> str:
        """The element where all indices are inside, `fill` elsewhere."""
        inside = " & ".join(f"({s} >= 0) & ({s} <= {last})" for s, last, _ in starts)
        chosen = f"({inside}) ? {element} : {literal(fill, dtype)}"
        return self._assign(chosen, [*(s.name for s in starts), element], dtype)


def first_that_can(
    kinds: Sequence[Callable[[list[Symbolic]], Translation]],
    translate: Callable[[Callable[[list[Symbolic]], Translation]], _T],
) -> _T:
    """`translate(kind)` for the first kind of translation that can.

    **Errors:** `NotTranslatableError` of the last one, where none can.
    """
    *others, last = kinds
    for kind in others:
        with contextlib.suppress(NotTranslatableError):
            return translate(kind)
    return translate(last)


def _concatenate(params: dict, *parts: np.ndarray) -> list[np.ndarray]:
    return [np.concatenate(parts, axis=params["dimension"])]


def _broadcast(params: dict, x: np.ndarray, *_: np.ndarray) -> list[np.ndarray]:
    shape = [1] * len(params["shape"])
    for axis, size in zip(params["broadcast_dimensions"], x.shape, strict=True):
        shape[axis] = size
    return [np.broadcast_to(x.reshape(shape), params["shape"])]


def _pad(params: dict, x: np.ndarray, value: np.ndarray) -> list[np.ndarray]:
    config = params["padding_config"]
    lengths = [
        low + n + max(n - 1, 0) * between + high
        for n, (low, high, between) in zip(x.shape, config, strict=True)
    ]
    out = np.full(lengths, value.item(), object)
    for place in np.ndindex(*x.shape):
        to = [low + k * (1 + gap) for k, (low, _, gap) in zip(place, config, strict=True)]
        # Negative padding cuts elements off.
        if all(0 <= k < n for k, n in zip(to, lengths, strict=True)):
            out[tuple(to)] = x[place]
    return [out]


def _slice(params: dict, x: np.ndarray) -> list[np.ndarray]:
    strides = params["strides"] or (1,) * x.ndim
    limits = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return [x[tuple(slice(*limit) for limit in limits)]]


# Notes to XLA: about what is computed once, and, in a program for several devices, on which of them.
_IDENTITIES = ("optimization_barrier", "reshard")
# Operations that move elements and compute nothing.
_STRUCTURAL: dict[str, Callable[..., list[np.ndarray]]] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "pad": _pad,
    "reshape": lambda params, x: [x.reshape(params["new_sizes"])],
    "rev": lambda params, x: [np.flip(x, params["dimensions"])],
    "slice": _slice,
    "split": lambda params, x: np.split(x, np.cumsum(params["sizes"])[:-1], params["axis"]),
    "squeeze": lambda params, x: [np.squeeze(x, tuple(params["dimensions"]))],
    "stack": lambda params, *parts: [np.stack(parts, params["axis"])],
    "tile": lambda params, x: [np.tile(x, params["reps"])],
    "transpose": lambda params, x: [x.transpose(params["permutation"])],
    "unstack": lambda params, x: list(np.moveaxis(x, params["axis"], 0)),
}
COMPOSED = {*_REDUCTIONS, *_STRUCTURAL, "clamp", "gather"}  # of operations on single numbers
Translation.translated = {*COMPOSED, *ELEMENTWISE}
