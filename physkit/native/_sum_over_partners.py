"""Sums over the partners of each particle by native code."""

import jax
import numpy as np
from jaxtyping import Array, Int

from physkit.core import PyTree, vary_alike

from ._c_source import c_constants, c_lines, c_source
from ._compiler import load_handler
from ._formulas import NotTranslatableError, c_type
from ._terms import TermsOfPairs, TranslatedTerms, translate_terms
from ._translate import Translation

# Of a particle, whose blocks are on the stack of a thread, and of sums, each of which is a variable.
_MAX_NUMBERS = 256
# At least so many rows, of all pairs, share a copy of a block of partners.
_MIN_ROWS_PER_CHUNK = 8


def sum_over_partners(
    terms: TermsOfPairs,
    arrays_i: PyTree,
    arrays_j: PyTree,
    context: PyTree,
    index: Int[Array, "r k"] | None,
    exact: bool = False,
) -> PyTree:
    """For every row i the sum of `terms` over its partners j, on CPUs only.

    **Arguments:**

    - `terms(arrays_i, arrays_j, context, present)`: gets leaves `[c 1 …]` of i and `[c k …]` of j, and returns
      a pytree of `[c k …]`, 0 where `present` is False.
    - `arrays_i`: pytree of `[r …]`; `arrays_j`: of `[n …]`; `context`: a pytree of arrays.
    - `index`: the partners of each row, places in `arrays_j`; n where there is none. None: all but i itself.
    - `exact`: every product and sum is rounded by itself.

    **Returns:** a pytree of `[r …]`.

    **Errors:** `NotTranslatableError` where `terms` has operations that are not translated to C, or C cannot be
    compiled: then nothing was done.
    """
    translated = translate_terms([Translation], terms, arrays_i, arrays_j, context, _MAX_NUMBERS)
    name = load_handler(_source(translated, index is not None), "sum_over_partners", exact)
    if name is None:
        raise NotTranslatableError("there is no compiled code")
    shapes, structure = jax.tree.flatten(translated.shapes)
    rows, partners = (jax.tree.leaves(tree) for tree in (arrays_i, arrays_j))
    num_rows = rows[0].shape[0]
    call = jax.ffi.ffi_call(
        name,
        [jax.ShapeDtypeStruct((num_rows, *s.shape[2:]), s.dtype) for s in shapes],
        vmap_method="broadcast_all",
    )
    listed = [] if index is None else [index.astype(np.int32)]
    constants = translated.translation.constants
    results = call(*listed, *rows, *partners, *constants)
    return jax.tree.unflatten(structure, vary_alike(list(results), [*rows, *partners]))


def _source(translated: TranslatedTerms, is_listed: bool) -> str:
    """The code, from the template and what is to be read, computed and written."""
    rows, partners, translation, sums, _ = translated
    first_row = 1 if is_listed else 0
    first_partner = first_row + len(rows)
    first_constant = first_partner + len(partners)
    read_constants = c_constants(translation.constants, "sums->arguments", first_constant)
    read_row, declare, copy, copy_last, read = [], [], [], [], []
    begin, add, write, names = [], [], [], []
    for k, symbol in enumerate(rows):
        size, kind = symbol.elements.size, c_type(symbol.dtype)
        pointer = f"((const {kind} *)sums->arguments[{first_row + k}])"
        for e, name in enumerate(symbol.elements.flat):
            place = f"(member * rows + row) * {size} + {e}"
            read_row.append(f"const {kind} {name} = {pointer}[{place}];")
    for k, symbol in enumerate(partners):
        size, kind = symbol.elements.size, c_type(symbol.dtype)
        pointer = (
            f"(const {kind} *)sums->arguments[{first_partner + k}] + member * partners * {size}"
        )
        if size:
            read_constants.append(f"const {kind} *restrict a{k} = {pointer};")
        for e, name in enumerate(symbol.elements.flat):
            declare.append(f"{kind} b{name}[BLOCK] __attribute__((aligned(64)));")
            copy.append(f"b{name}[c] = a{k}[partner * {size} + {e}];")
            copy_last.append(f"b{name}[c] = b{name}[length - 1];")
            read.append(f"const {kind} {name} = b{name}[c];")
    for k, symbol in enumerate(sums):
        size, kind = symbol.elements.size, c_type(symbol.dtype)
        for e, term in enumerate(symbol.elements.flat):
            total = f"s{k}_{e}"
            names.append(total)
            place = f"(({kind} *)sums->results[{k}])[(member * rows + row) * {size} + {e}]"
            begin.append(f"{kind} {total} = first == 0 ? 0 : {place};")
            add.append(f"{total} += {term};")
            write.append(f"{place} = {total};")
    code = {
        "is_listed": int(is_listed),
        "num_arguments": first_constant + len(translation.constants),
        "num_results": len(sums),
        "result_rank": sums[0].elements.ndim - 2,
        "partner_argument": first_partner,
        "partner_rank": partners[0].elements.ndim - 2,
        "read_constants": c_lines(read_constants, 1),
        "chunk_rows": 1 if is_listed else _MIN_ROWS_PER_CHUNK,
        "read_row": c_lines([*read_row, *translation.row_statements], 4),
        "begin_sums": c_lines(begin, 4),
        "declare_block": c_lines(declare, 3),
        "copy_partner": c_lines(copy, 4),
        "copy_last": c_lines(copy_last, 4),
        "number": c_type(sums[0].dtype),
        "sums": ", ".join(names),
        "read_partner": c_lines(read, 5),
        "terms": c_lines([*translation.statements, *add], 5),
        "write_sums": c_lines(write, 4),
    }
    return c_source("sum_over_partners.c", code)
