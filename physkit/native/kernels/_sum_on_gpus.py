"""Sums over the partners of each particle by one kernel, for NVIDIA's GPUs."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from physkit.core import PyTree

from .._formulas import NotTranslatableError
from .._terms import PRESENT, TermsOfPairs, TranslatedTerms, translate_terms
from ._arithmetic import Evaluate, evaluate_by_instructions, evaluate_in_steps, fuse_products
from ._launch import (
    as_type,
    known_numbers,
    launch,
    look_up_in,
    require_compiler,
    split,
)
from ._packing import pack_numbers, unpack_tile
from ._tiles import (
    Operation,
    TileTranslation,
    broadcast_tile,
    evaluate_tiles,
    translations_to_try,
)

# More are in no registers.
_MAX_NUMBERS = 64
# All pairs of so few are faster by XLA, most of all in many boxes at once.
_FEW_PARTICLES = 512


class Tiling(NamedTuple):
    """How a kernel goes through pairs: `rows` at once, each with `columns` partners at once, by `warps`.

    Rows and columns are powers of two.

    - `is_packed`: several numbers of a partner are read at once.
    """

    rows: int
    columns: int
    warps: int = 4
    is_packed: bool = False


def sum_on_gpus(
    terms: TermsOfPairs,
    arrays_i: PyTree,
    arrays_j: PyTree,
    context: PyTree,
    index: Int[Array, "r k"] | None,
    exact: bool = False,
    tiling: Tiling | None = None,
    interpret: bool = False,
) -> PyTree:
    """`sum_over_partners` for platform `cuda`: by one kernel, in an order that is always the same.

    **Arguments:** those of `sum_over_partners`.

    - `tiling`: None: what suits the number of pairs and sums.
    - `interpret`: evaluate the kernel by XLA, on any platform and for any number of particles: for tests.

    **Errors:** `NotTranslatableError` where `terms` has operations that kernels have not, and where sums must
    be exact: compilers for GPUs fuse products and sums, in a way of their own in each program.
    """
    if exact:
        raise NotTranslatableError("products and sums that are rounded one by one")
    if not interpret:
        require_compiler()
    kinds = translations_to_try()
    translated = translate_terms(kinds, terms, arrays_i, arrays_j, context, _MAX_NUMBERS)
    translation = translated.translation
    assert isinstance(translation, TileTranslation)
    rows, partners = (jax.tree.leaves(tree) for tree in (arrays_i, arrays_j))
    num_rows, n = rows[0].shape[0], partners[0].shape[0]
    num_columns = n if index is None else index.shape[1]
    shapes, structure = jax.tree.flatten(translated.shapes)
    num_sums = sum(math.prod(s.shape) for s in shapes)
    # Numbers that are read at once are up to four for each row.
    sizes = [
        *(a.size for a in (*rows, *partners)),
        max(num_rows, n) * 4,
        num_rows * max(num_sums, 1 if index is None else num_columns),
    ]
    if max(sizes) >= 2**31 - 2**12:
        raise NotTranslatableError("places beyond 32 bits")
    if min(num_rows, num_columns) == 0:
        raise NotTranslatableError("no pairs")
    if index is None and num_rows < _FEW_PARTICLES and not interpret:
        raise NotTranslatableError("few particles")
    if tiling is None:
        tiling = _choose_tiling(num_columns, num_sums, index is not None, shapes[0].dtype)
    read_row = read_partner = _read
    if tiling.is_packed:
        # Of the same arrays, XLA makes one.
        if all(a is b for a, b in zip(rows, partners, strict=True)):
            rows, symbols = pack_numbers(rows, translated.rows)
            translated, read_row = translated._replace(rows=symbols), _read_packed
        partners, symbols = pack_numbers(partners, translated.partners)
        translated, read_partner = translated._replace(partners=symbols), _read_packed
    # Flat, which costs nothing.
    listed = [] if index is None else [index.astype(jnp.int32)]
    operands = [*listed, *rows, *partners, *translation.constants]
    kernel = functools.partial(
        _add_up,
        translated,
        (num_rows, num_columns, n),
        tiling,
        index is not None,
        (read_row, read_partner),
        evaluate_in_steps if interpret else evaluate_by_instructions,
    )
    out = [jax.ShapeDtypeStruct((num_rows * math.prod(s.shape),), s.dtype) for s in shapes]
    num_blocks = -(-num_rows // tiling.rows)
    sums = launch("sum_over_partners", kernel, out, operands, num_blocks, tiling.warps, interpret)
    sums = [x.reshape(num_rows, *s.shape[2:]) for x, s in zip(sums, shapes, strict=True)]
    return jax.tree.unflatten(structure, sums)


def _choose_tiling(num_columns: int, num_sums: int, is_listed: bool, dtype: np.dtype) -> Tiling:
    """Tiles so small that sums and what they are made of stay in registers; the fastest on an H100."""
    if num_sums * dtype.itemsize > 64:
        most = Tiling(4, 32, 4, is_listed)
    else:
        # All read the same partners, unless they are listed.
        most = Tiling(8, 16, 4, is_packed=True) if is_listed else Tiling(4, 128, 2)
    columns = min(most.columns, 1 << (num_columns - 1).bit_length())
    return most._replace(columns=max(columns, 16))


def _add_up(
    translated: TranslatedTerms,
    counts: tuple[int, int, int],
    tiling: Tiling,
    is_listed: bool,
    reads: tuple[Callable, Callable],
    evaluate: Evaluate,
    *references: Any,
) -> None:
    """The kernel: sums of one block of rows."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    rows, partners, translation, sums, _ = translated
    assert isinstance(translation, TileTranslation)
    num_rows, num_columns, n = counts
    read_row, read_partner = reads
    lists, row_refs, partner_refs, constants, results = split(
        references,
        [int(is_listed), len(rows), len(partners), len(translation.constants), len(sums)],
    )

    look_up = look_up_in(translation, constants)
    row = pallas.program_id(0) * np.int32(tiling.rows) + jnp.arange(tiling.rows, dtype=jnp.int32)
    # Rows behind the last one compute what it does, and write nothing.
    row_or_last = jnp.minimum(row, np.int32(num_rows - 1))[:, None]
    column = jnp.arange(tiling.columns, dtype=jnp.int32)[None]
    if tiling.is_packed:
        # Each thread shall read all numbers of its partner, and the next thread those of the next one. Where
        # Triton sees that indices are side by side it gives a thread several partners, and moves the numbers.
        column = jnp.minimum(column, np.int32(tiling.columns))
    # Sums and terms that are added to them: operations of the loop, too.
    terms = [name for s in sums for name in s.elements.flat]
    adds = [
        Operation(f"new {k}", lax.add, (f"sum {k}", name), kind="add")
        for k, name in enumerate(terms)
    ]
    statements = fuse_products([*translation.statements, *adds], evaluate)
    known = known_numbers(translation, set(terms), look_up)
    for symbol, reference in zip(rows, row_refs, strict=True):
        known |= read_row(symbol, reference, row_or_last, triton.load)
    evaluate_tiles(translation.row_statements, known, look_up)

    def add_chunk(chunk: Array, totals: list[Array]) -> list[Array]:
        c = chunk * np.int32(tiling.columns) + column
        inside = c < np.int32(num_columns)
        if is_listed:
            place, mask = row_or_last * np.int32(num_columns) + c, None
            if num_columns % tiling.columns:
                mask = broadcast_tile(inside, place.shape)
                place = jnp.where(mask, place, 0)
            j = triton.load(lists[0].at[place])
            present = j < np.int32(n)
            present = present if mask is None else present & mask
        else:
            j, present = c, inside & (c != row_or_last)
        tiles = known | {PRESENT: present} | {f"sum {k}": x for k, x in enumerate(totals)}
        # Where there is no partner, the last particle is read; what comes of it is masked by the terms.
        j = jnp.minimum(j, np.int32(n - 1))
        for symbol, reference in zip(partners, partner_refs, strict=True):
            tiles |= read_partner(symbol, reference, j, triton.load)
        evaluate_tiles(statements, tiles, look_up)
        return [tiles[f"new {k}"] for k in range(len(totals))]

    shape = (tiling.rows, tiling.columns)
    totals = [jnp.zeros(shape, s.dtype) for s in sums for _ in s.elements.flat]
    num_chunks = -(-num_columns // tiling.columns)
    totals = iter(lax.fori_loop(np.int32(0), np.int32(num_chunks), add_chunk, totals))
    for symbol, result in zip(sums, results, strict=True):
        size = symbol.elements.size
        for e in range(size):
            where = result.at[row * np.int32(size) + np.int32(e)]
            triton.store(where, jnp.sum(next(totals), axis=1), mask=row < np.int32(num_rows))


def _read(symbol: Any, reference: Any, places: Array, load: Callable) -> dict[str, Array]:
    """The numbers of particles at `places`, by name."""
    size = symbol.elements.size
    return {
        name: as_type(symbol.dtype, load(reference.at[places * np.int32(size) + np.int32(e)]))
        for e, name in enumerate(symbol.elements.flat)
    }


def _read_packed(symbol: Any, reference: Any, places: Array, load: Callable) -> dict[str, Array]:
    """The same of a leaf by `pack_numbers`."""
    names = symbol.elements.flatten()
    width = len(names)
    together = places[..., None] * np.int32(width) + jnp.arange(width, dtype=jnp.int32)[None, None]
    parts = unpack_tile(load(reference.at[together]))
    return {name: as_type(symbol.dtype, part) for name, part in zip(names, parts, strict=True)}
