"""Operations on single numbers of a pair, evaluated for tiles of pairs within a kernel for GPUs."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from .._formulas import NotTranslatableError, c_type
from .._translate import COMPOSED, MAX_STATEMENTS, Start, Symbolic, Translation, Value
from ._tile_functions import ON_TILES, Tile, tile_function

_FEW_NUMBERS = 8  # lengths of a box, parameters of a potential


class Operation(NamedTuple):
    """Of tiles: `name` becomes `function` of the operands, in one shape.

    - `table`: of what `function` is an element, instead: of a constant, at the places that it computes.
    - `kind`: the name of a primitive of floating numbers.
    """

    name: str
    function: Callable[..., Tile]
    operands: tuple[str, ...]
    table: int | None = None
    kind: str = ""


class TileTranslation(Translation):
    """Turns a jaxpr into operations on tiles.

    - `row_statements`, `statements`: lists of `Operation`.
    - `literals`: names of numbers and the numbers. `elements`: names of elements of `constants`, and where
      they are: which constant, which element of it.
    """

    translated = frozenset({*COMPOSED, *ON_TILES})

    def __init__(
        self,
        of_partner: Sequence[Symbolic],
        most_statements: int = MAX_STATEMENTS,
        most_axes: int = -1,
    ) -> None:
        """`most_axes`: of what is known, and computed with in the kernel, which saves a launch."""
        super().__init__(of_partner, most_statements)
        self._most_axes = most_axes
        self.literals: dict[str, np.generic] = {}
        self.elements: dict[str, tuple[int, int]] = {}

    def known(self, leaf: Array) -> Value:
        few = leaf.ndim <= self._most_axes and leaf.size <= _FEW_NUMBERS
        return self.symbolic(leaf) if few else leaf

    def _literal(self, value: float | int | bool, dtype: np.dtype) -> str:
        name = f"{dtype.name} {value!r}"
        self.literals[name] = dtype.type(value)
        return name

    def _element(self, name: str, k: int, size: int) -> str:
        element = f"{name}[{k}]"
        self.elements[element] = int(name[1:]), k
        return element

    def _elementwise(
        self, name: str, params: dict, symbols: Sequence[Symbolic], aval: Any
    ) -> Symbolic:
        for dtype in (*(s.dtype for s in symbols), aval.dtype):
            c_type(dtype)  # raises for types that are left to XLA here, too
        function = tile_function(name, params, symbols[0].dtype, aval.dtype)
        operands = [np.broadcast_to(s.elements, aval.shape) for s in symbols]
        out = np.empty(aval.shape, object)
        for place in np.ndindex(*aval.shape):
            kind = name if symbols[0].dtype.kind == "f" else ""
            out[place] = self._operate(function, [o[place] for o in operands], kind=kind)
        return Symbolic(out, aval.dtype)

    def _operate(
        self,
        function: Callable[..., Tile],
        operands: Sequence[str],
        table: int | None = None,
        kind: str = "",
    ) -> str:
        def statement(name: str) -> Operation:
            return Operation(name, function, tuple(operands), table, kind)

        return self._add(operands, statement)

    def _look_up(
        self, table: str, size: int, offset: int, starts: Sequence[Start], dtype: np.dtype
    ) -> str:
        del dtype
        if size >= 2**31:
            raise NotTranslatableError("a large table")

        def place(*indices: Tile) -> Tile:
            at = jnp.full(indices[0].shape if indices else (), offset, jnp.int32)
            for index, (_, last, stride) in zip(indices, starts, strict=True):
                inside = lax.clamp(_cast(0, index), index, _cast(last, index))
                at = at + lax.convert_element_type(inside, jnp.int32) * np.int32(stride)
            return at

        return self._operate(place, [s.name for s in starts], int(table[1:]))

    def _fill(
        self, element: str, starts: Sequence[Start], fill: float | int | bool, dtype: np.dtype
    ) -> str:
        def choose(value: Tile, *indices: Tile) -> Tile:
            for index, (_, last, _) in zip(indices, starts, strict=True):
                inside = (index >= _cast(0, index)) & (index <= _cast(last, index))
                value = lax.select(inside, value, jnp.full(value.shape, fill, dtype))
            return value

        return self._operate(choose, [element, *(s.name for s in starts)])


def translations_to_try(
    most_statements: int = MAX_STATEMENTS,
) -> list[Callable[[Sequence[Symbolic]], TileTranslation]]:
    """One after the other: vectors that are known in the kernel, then numbers alone, then nothing.

    Tables, and what takes operations that kernels have not, are computed by XLA before.
    """
    return [
        functools.partial(TileTranslation, most_statements=most_statements, most_axes=axes)
        for axes in (1, 0, -1)
    ]


def _cast(value: int, like: Tile) -> np.generic:
    return np.dtype(like.dtype).type(value)


def evaluate_tiles(
    operations: Sequence[Operation],
    tiles: dict[str, Tile],
    look_up: Callable[[int, Tile], Tile],
) -> None:
    """Evaluate one operation after the other, and add the results to `tiles`.

    - `look_up(constant, places)`: elements of a constant.
    """
    for name, function, operands, table, _ in operations:
        values = [tiles[operand] for operand in operands]
        shape = np.broadcast_shapes(*(np.shape(v) for v in values))
        out = function(*(broadcast_tile(v, shape) for v in values))
        tiles[name] = out if table is None else look_up(table, out)


def broadcast_tile(x: Tile, shape: tuple[int, ...]) -> Tile:
    """A number or a tile `[r 1]`, `[1 k]` … in a larger shape."""
    if np.shape(x) == shape:
        return x
    return lax.broadcast_in_dim(x, shape, range(len(shape)) if np.ndim(x) else ())
