"""Functions of the cells around each face by native code."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import PyTree, vary_alike

from ._c_source import c_constants, c_lines, c_source
from ._compiler import load_handler
from ._formulas import NotTranslatableError, c_type
from ._stencils import AtFace, TranslatedStencil, translate_stencil
from ._translate import Translation

_BLOCK = 64  # numbers side by side
_MAX_STATEMENTS = 10_000  # some six seconds of a compiler


def map_stencil(
    function: AtFace, arrays: Sequence[Array], num_cells: Sequence[int], context: PyTree
) -> tuple[list[Array], list[Array]]:
    """`function` of the cells around each of n faces, on CPUs only; products and sums are rounded one by one.

    **Arguments:**

    - `function(cells, context)`: gets `cells[k][j]`, the number of array k in cell j of those around a face.
      Returns for every result what is added in each of its cells around the face, and what is summed over all
      faces. It closes over no array.
    - `arrays`: `[outer, n + cells − 1, inner]`, all of one type; `num_cells`: of each array around a face.
      Those of face i are i to i + cells − 1.
    - `context`: a pytree of arrays.

    **Returns:** results `[outer, n + cells − 1, inner]`, and the sums.

    **Errors:** `NotTranslatableError` where `function` has operations that are not translated to C, or C cannot
    be compiled: then nothing was done.
    """
    dtype = arrays[0].dtype
    outer, length, inner = arrays[0].shape
    faces, columns = length - (num_cells[0] - 1), -(-inner // _BLOCK)
    if faces < 1 or any(x.dtype != dtype for x in arrays):
        raise NotTranslatableError("no faces, or numbers of several types")
    kind = functools.partial(Translation, most_statements=_MAX_STATEMENTS)
    translated = translate_stencil([kind], function, num_cells, dtype, context)
    name = load_handler(_source(translated, dtype), "map_stencil", True)
    if name is None:
        raise NotTranslatableError("there is no compiled code")
    _, translation, outs, sums = translated
    shapes = [(outer, faces + len(parts) - 1, inner) for parts in outs]
    shapes += [(outer, columns, *s.elements.shape) for s in sums]
    results = jax.ffi.ffi_call(
        name, [jax.ShapeDtypeStruct(s, dtype) for s in shapes], vmap_method="broadcast_all"
    )(*arrays, *translation.constants)
    results = vary_alike(list(results), list(arrays))
    # Of each column by itself, so that neither threads nor their number change the order of a sum.
    return results[: len(outs)], [jnp.sum(s, axis=(0, 1)) for s in results[len(outs) :]]


def _source(translated: TranslatedStencil, dtype: Any) -> str:
    """The code, from the template and what is to be read, computed and written."""
    all_cells, translation, outs, sums = translated
    num_arrays = len(all_cells)
    begin, declare, read, write, spread, end, names = [], [], [], [], [], [], []

    def place(cells: int) -> str:
        return f"(line * (faces + {cells - 1}) + face) * inner + first"

    for k, cells in enumerate(all_cells):
        declare.append(
            f"const number *restrict a{k} = (const number *)map->arguments[{k}] + "
            f"{place(len(cells))};"
        )
        read += [f"const number {name} = a{k}[c + {j} * inner];" for j, name in enumerate(cells)]
    for k, parts in enumerate(outs):
        cells = len(parts)
        declare.append(f"number *restrict r{k} = (number *)map->results[{k}] + {place(cells)};")
        if cells == 1:
            write.append(f"r{k}[c] = {parts[0].elements.item()};")
            continue
        # Cells that this block reaches first begin at zero.
        spread.append(
            f"for (int64_t j = face == 0 ? 0 : {cells - 1}; j < {cells - 1} + begun; j++) "
            f"for (int64_t c = 0; c < wide; c++) r{k}[j * inner + c] = 0;"
        )
        for j, part in enumerate(parts):
            declare.append(f"number w{k}_{j}[BLOCK] __attribute__((aligned(64)));")
            write.append(f"w{k}_{j}[c] = {part.elements.item()};")
            spread.append(
                f"for (int64_t c = 0; c < count; c++) r{k}[c + {j} * inner] += w{k}_{j}[c];"
            )
    for k, symbol in enumerate(sums):
        size, result = symbol.elements.size, len(outs) + k
        for e, term in enumerate(symbol.elements.flat):
            names.append(f"s{k}_{e}")
            begin.append(f"number s{k}_{e} = 0;")
            write.append(f"s{k}_{e} += {term};")
            end.append(
                f"((number *)map->results[{result}])[(line * map->columns + column) * {size} + {e}] "
                f"= s{k}_{e};"
            )
    code = {
        "block": _BLOCK,
        "number": c_type(dtype),
        "num_arguments": num_arrays + len(translation.constants),
        "num_results": len(outs) + len(sums),
        "first_cells": len(all_cells[0]),
        "read_constants": c_lines(
            c_constants(translation.constants, "map->arguments", num_arrays), 1
        ),
        "begin": c_lines([*translation.row_statements, *begin], 1),
        "declare": c_lines(declare, 2),
        "reduction": f"reduction(+ : {', '.join(names)})" if names else "",
        "read": c_lines(read, 3),
        "statements": c_lines([*translation.statements, *write], 3),
        "spread": c_lines(spread, 2),
        "end": c_lines(end, 1),
    }
    return c_source("map_stencil.c", code)
