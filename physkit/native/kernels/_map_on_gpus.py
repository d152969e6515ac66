"""Functions of the cells around each face by one kernel, for NVIDIA's GPUs."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from physkit.core import PyTree

from .._formulas import NotTranslatableError
from .._stencils import AtFace, TranslatedStencil, translate_stencil
from ._arithmetic import (
    Evaluate,
    evaluate_by_instructions,
    evaluate_in_steps,
    fuse_products,
    join_formulas,
)
from ._launch import (
    known_numbers,
    launch,
    look_up_in,
    require_compiler,
    split,
)
from ._tiles import TileTranslation, broadcast_tile, evaluate_tiles, translations_to_try

_BLOCK = 128  # faces, each of which is one thread's
_WARPS = 4
_MAX_STATEMENTS = 10_000
# Cotangents that XLA writes by one kernel: those of a gas, but not the nine of one with a magnetic field.
_FEW = 4


def map_on_gpus(
    function: AtFace,
    arrays: Sequence[Array],
    num_cells: Sequence[int],
    context: PyTree,
    interpret: bool = False,
) -> tuple[list[Array], list[Array]]:
    """`map_stencil` for platform `cuda`: by one kernel, and another one where cells get parts of several faces.

    Sums have one order. Products and sums are fused.

    **Arguments and results:** those of `map_stencil`.

    - `interpret`: evaluate the kernel by XLA, on any platform: for tests.

    **Errors:** `NotTranslatableError` where `function` has operations that kernels have not, for numbers of
    several types, and for more than 32 bits count: then nothing was done.
    """
    if not interpret:
        require_compiler()
    dtype = arrays[0].dtype
    outer, length, inner = arrays[0].shape
    faces = length - (num_cells[0] - 1)
    if min(outer, faces, inner) < 1 or any(x.dtype != dtype for x in arrays):
        raise NotTranslatableError("no faces, or numbers of several types")
    kinds = translations_to_try(_MAX_STATEMENTS)
    translated = translate_stencil(kinds, function, num_cells, dtype, context)
    _, translation, outs, sums = translated
    n = outer * faces * inner
    num_blocks, num_sums = -(-n // _BLOCK), sum(s.elements.size for s in sums)
    num_parts = max((len(parts) for parts in outs), default=1)
    if max(sum(x.size for x in arrays), num_parts * n, num_blocks * num_sums) >= 2**31 - 2**12:
        raise NotTranslatableError("places beyond 32 bits")
    out = [jax.ShapeDtypeStruct((len(parts) * n,), dtype) for parts in outs]
    if num_sums:
        out.append(jax.ShapeDtypeStruct((num_blocks * num_sums,), dtype))
    evaluate = evaluate_in_steps if interpret else evaluate_by_instructions
    stacks, places = _stack_alike(arrays, num_cells)
    kernel = functools.partial(_map_block, translated, n, places, evaluate)
    # From cell to cell, from line to line of faces, and from array to array of each stack: in memory, so that
    # one kernel is compiled for faces across every axis.
    strides = [inner, faces * inner, *(x[0].size for x in stacks)]
    operands = [jnp.asarray(strides, jnp.int32), *stacks, *translation.constants]
    results = launch("map_stencil", kernel, out, operands, num_blocks, _WARPS, interpret)
    of_cells = [
        _add_to_cells(x.reshape(len(parts), outer, faces, inner))
        for x, parts in zip(results[: len(outs)], outs, strict=True)
    ]
    if not sums:
        return of_cells, []
    totals = jnp.zeros(0, dtype)
    if num_sums:
        totals = jnp.sum(results[-1].reshape(num_blocks, num_sums), axis=0)
    cuts = np.cumsum([s.elements.size for s in sums])[:-1]
    shapes = [s.elements.shape for s in sums]
    of_all = [x.reshape(s) for x, s in zip(jnp.split(totals, cuts), shapes, strict=True)]
    return of_cells, of_all


def _stack_alike(
    arrays: Sequence[Array], num_cells: Sequence[int]
) -> tuple[list[Array], list[tuple[int, int]]]:
    """Arrays of one shape as one, which one kernel writes; and where each is: in which, in which place.

    A few arrays of one cell are as they are: cotangents of fluxes, which one kernel has written anyway.
    """
    are_few = num_cells.count(1) <= _FEW
    alike: dict[Any, list[Array]] = {}
    places = []
    for k, (x, cells) in enumerate(zip(arrays, num_cells, strict=True)):
        key = k if cells == 1 and are_few else x.shape
        group = alike.setdefault(key, [])
        places.append((list(alike).index(key), len(group)))
        group.append(x)
    return [jnp.stack(group) for group in alike.values()], places


def _add_to_cells(parts: Array) -> Array:
    """`[cells outer n inner]` of each face in each of its cells → `[outer, n + cells − 1, inner]`, added up."""
    last = parts.shape[0] - 1
    moved = [jnp.pad(part, ((0, 0), (j, last - j), (0, 0))) for j, part in enumerate(parts)]
    return functools.reduce(jnp.add, moved)


def _map_block(
    translated: TranslatedStencil,
    n: int,
    places: Sequence[tuple[int, int]],
    evaluate: Evaluate,
    *references: Any,
) -> None:
    """The kernel: one block of faces."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    cells, translation, outs, sums = translated
    assert isinstance(translation, TileTranslation)
    terms = [name for s in sums for name in s.elements.flat]
    num_stacks = 1 + max(stack for stack, _ in places)
    (strides,), stacks, constants, results, totals = split(
        references, [1, num_stacks, len(translation.constants), len(outs), int(bool(terms))]
    )
    look_up = look_up_in(translation, constants)
    written = [symbol.elements.item() for parts in outs for symbol in parts]
    tiles = known_numbers(translation, {*written, *terms}, look_up)
    evaluate_tiles(translation.row_statements, tiles, look_up)
    block = pallas.program_id(0)
    face_or_beyond = block * np.int32(_BLOCK) + jnp.arange(_BLOCK, dtype=jnp.int32)
    # Faces behind the last one compute what it does, and write nothing.
    inside, face = face_or_beyond < np.int32(n), jnp.minimum(face_or_beyond, np.int32(n - 1))
    inner, of_line, *sizes = (triton.load(strides.at[jnp.int32(k)]) for k in range(2 + num_stacks))
    line = lax.div(face, broadcast_tile(of_line, face.shape))
    for (stack, k), names in zip(places, cells, strict=True):
        # In a line there are cells − 1 more cells than faces.
        first = face + line * (np.int32(len(names) - 1) * inner) + np.int32(k) * sizes[stack]
        for j, name in enumerate(names):
            tiles[name] = triton.load(stacks[stack].at[first + np.int32(j) * inner])
    kept = [*written, *terms]
    statements = fuse_products(translation.statements, evaluate, kept)
    statements = join_formulas(statements, evaluate, kept)
    evaluate_tiles(statements, tiles, look_up)
    for reference, parts in zip(results, outs, strict=True):
        for j, symbol in enumerate(parts):
            value = broadcast_tile(tiles[symbol.elements.item()], face.shape)
            triton.store(reference.at[face_or_beyond + np.int32(j * n)], value, mask=inside)
    for k, name in enumerate(terms):
        value = broadcast_tile(tiles[name], face.shape)
        place = block * np.int32(len(terms)) + np.int32(k)
        triton.store(totals[0].at[place], jnp.sum(jnp.where(inside, value, 0)))
