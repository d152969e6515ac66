"""A neighbor search by native code."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import PyTree

from ._c_source import c_constants, c_lines, c_source
from ._compiler import load_handler
from ._formulas import NotTranslatableError, c_type
from ._translate import Symbolic, Translation


class NearCells(NamedTuple):
    """The cells around each cell of a grid, for one axis, `[m c]`: ranks of neighbors by cells along the axis.

    - `index`: which one it is. `crossings`: how often a periodic box is crossed on the way there.
    - `is_outside`: whether it is beyond an open end, and does not exist.
    """

    index: Int[Array, "m c"] | np.ndarray
    crossings: Int[Array, "m c"] | np.ndarray
    is_outside: Bool[Array, "m c"] | np.ndarray


class FoundNeighbors(NamedTuple):
    """What a search returns.

    - `index`: `[n k]`, for each row the places of the neighbors in `order`; n where there is none.
    - `order`: `[n]`, particles sorted by cell.
    - `row_of_particle`, `particle_of_row`: `[n]`; rows are in `order`, those of local particles first.
    - `num_neighbors`: `[n]`, of each row, also beyond k. `max_occupancy`: the most particles in a cell.
    """

    index: Int[Array, "n k"]
    order: Int[Array, " n"]
    row_of_particle: Int[Array, " n"]
    particle_of_row: Int[Array, " n"]
    num_neighbors: Int[Array, " n"]
    max_occupancy: Int[Array, ""]


def search_neighbors(
    is_near: Callable[[PyTree, PyTree, PyTree], Array],
    position: Float[Array, "n d"],
    cell: Int[Array, " n"],
    vectors: Float[Array, "d d"],
    near_cells: Sequence[NearCells],
    context: PyTree,
    capacity: int,
    num_local: int,
) -> FoundNeighbors:
    """For each particle those in the cells around it that are near, on CPUs only.

    **Arguments:**

    - `is_near(a, b, context)`: gets positions by component, `[1 1]` each; whether b is a neighbor of a.
    - `cell`: each particle's, by number; that of a cell behind the last one for particles without neighbors.
    - `vectors`: between periodic images, as rows, in units of `crossings`.
    - `capacity`: most neighbors of a row. `num_local`: how many first particles have the first rows.

    **Errors:** `NotTranslatableError`, as of `sum_over_partners`.
    """
    n, d = position.shape
    one = tuple(jax.ShapeDtypeStruct((1, 1), position.dtype) for _ in range(d))
    traced = jax.make_jaxpr(is_near)(one, one, context)
    symbols = [
        Symbolic(np.full((1, 1), f"{letter}{k}", object), np.dtype(position.dtype))
        for letter in "ij"
        for k in range(d)
    ]
    translation = Translation(symbols[d:])
    (near,) = translation.call(traced.jaxpr, traced.consts, [*symbols, *jax.tree.leaves(context)])
    name = load_handler(_source(translation, near, d, position.dtype), "search_neighbors", False)
    if name is None:
        raise NotTranslatableError("there is no compiled code")
    by_particle, number = jax.ShapeDtypeStruct((n,), jnp.int32), jax.ShapeDtypeStruct((), jnp.int32)
    index = jax.ShapeDtypeStruct((n, capacity), jnp.int32)
    call = jax.ffi.ffi_call(name, [index, *[by_particle] * 4, number], vmap_method="broadcast_all")
    tables = [jnp.asarray(table, jnp.int32) for axis in near_cells for table in axis]
    components = [position[:, k] for k in range(d)]
    arguments = (cell.astype(jnp.int32), *components, vectors, *tables, jnp.int32(num_local))
    # Integers have no derivatives, of which JAX cannot know here.
    return FoundNeighbors(*call(*jax.lax.stop_gradient((*arguments, *translation.constants))))


def _source(translation: Translation, near: Symbolic, d: int, dtype: np.dtype) -> str:
    if not isinstance(near, Symbolic) or near.dtype.kind != "b":
        raise NotTranslatableError("a search that does not depend on the pair")
    axes = range(d)
    code = {
        "num_axes": d,
        "most_near": 3**d,
        "num_constants": len(translation.constants),
        "number": c_type(dtype),
        "read_constants": c_lines(c_constants(translation.constants, "s->constants"), 1),
        "read_row": c_lines(
            [
                *(f"const number i{k} = s->sorted[{k}][offset + place];" for k in axes),
                *translation.row_statements,
            ],
            1,
        ),
        "read_candidates": c_lines(
            [f"const number *restrict c{k} = found->position + {k} * found->room;" for k in axes], 1
        ),
        "read_candidate": c_lines([f"const number j{k} = c{k}[c];" for k in axes], 2),
        "terms": c_lines(translation.statements, 2),
        "is_near": near.elements.item(),
    }
    return c_source("search_neighbors.c", code)
