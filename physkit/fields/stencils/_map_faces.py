"""Functions of the cells around each face, in one pass over all faces."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    PyTree,
    StaticPart,
    custom_jvp,
    is_none,
    linear_call,
    nonzero_tangents,
    partition_by_tangent,
    split_arrays,
)
from physkit.native import MapStencil, NotTranslatableError

Arrays = tuple[Array, ...]
# For each array its cells around a face, and what all faces depend on → numbers of the face.
AtFaces = Callable[[list[list[Array]], PyTree], Arrays]


class _Stencil(NamedTuple):
    """A function of cells, how many it has of each array around a face, and what goes over all faces."""

    function: Callable[..., PyTree]
    num_cells: tuple[int, ...]
    map: MapStencil


@dataclass(frozen=True)
class _OfArrays:
    """A function of cells and context, of which all but the arrays is known."""

    function: AtFaces
    static: StaticPart

    def __call__(self, cells: list[list[Array]], arrays: PyTree) -> Arrays:
        return self.function(cells, self.static.combine(arrays))


@dataclass(frozen=True)
class _EachAtFace:
    """Results of a function, each of which belongs to the face."""

    function: Callable[..., Arrays]

    def __call__(
        self, cells: list[list[Array]], context: PyTree
    ) -> tuple[list[list[Array]], list[Array]]:
        return [[x] for x in self.function(cells, context)], []


_MOST_CONTEXT = 64  # numbers of an array: each has a derivative of its own


def map_faces(
    function: AtFaces,
    arrays: Sequence[Array],
    num_cells: Sequence[int],
    context: PyTree,
    axis: int,
    by: MapStencil,
) -> Arrays:
    """`function` of the cells around each of n faces across `axis`, by native code or a kernel of a GPU.

    XLA makes a pass over all cells for nearly every operation of a stencil, and many more for its derivative.
    Native code and kernels make one, and one for derivatives of either mode.

    **Arguments:**

    - `function(cells, context)`: of `cells[k][j]`, the values of array k in cell j of those around a face. It
      treats every face by itself, and closes over no array. One of a module, equal every time, is traced and
      translated once in a program, whatever the axis and the stage of a step.
    - `arrays`: n + cells − 1 long along `axis`, otherwise alike; `num_cells`: of each array around a face.
    - `context`: a pytree, of whose arrays each has a few numbers.
    - `by`: `map_stencil` for CPUs, `map_on_gpus` for NVIDIA's GPUs.

    **Errors:** `NotTranslatableError` where `function` has operations that are not translated, or there is no
    compiler: then it is for the caller to do without.
    """
    context, static = split_arrays(context)
    if any(x.size > _MOST_CONTEXT for x in jax.tree.leaves(context)):
        raise NotTranslatableError("a context of many numbers")
    shape = arrays[0].shape
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    flat = tuple(x.reshape(outer, x.shape[axis], inner) for x in arrays)
    out = _map(_Stencil(_OfArrays(function, static), tuple(num_cells), by), flat, context)
    return tuple(x.reshape(*shape[:axis], x.shape[1], *shape[axis + 1 :]) for x in out)


@partial(custom_jvp, nondiff_argnums=(0,))
def _map(stencil: _Stencil, arrays: Arrays, context: PyTree) -> Arrays:
    at_face = _EachAtFace(stencil.function)
    out, _ = _map_by(stencil.map, at_face, stencil.num_cells, arrays, context)
    return tuple(out)


def _map_by(
    by: MapStencil, at_face: Callable, num_cells: tuple[int, ...], arrays: Arrays, context: PyTree
) -> tuple[list[Array], list[Array]]:
    """`by`, as a program in the program, which is traced and lowered once where it is the same."""
    try:
        hash(at_face)
    except TypeError:
        return by(at_face, arrays, num_cells, context)
    return _map_compiled(by, at_face, num_cells, arrays, context)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _map_compiled(by, at_face, num_cells, arrays, context):
    return by(at_face, arrays, num_cells, context)


@partial(_map.defjvp, symbolic_zeros=True)
def _(stencil: _Stencil, primals: PyTree, tangents: PyTree) -> tuple[Arrays, Arrays]:
    dots = nonzero_tangents(tangents)
    out = _map(stencil, *primals)
    maps = _Tangent(stencil), _Cotangent(stencil, dots)
    return out, linear_call(*maps, primals, dots, result=out)


class _Tangent:
    """Tangents of the faces from those of arrays and context, with None for those that are zero."""

    def __init__(self, stencil: _Stencil) -> None:
        self.stencil = stencil

    def __call__(self, primals: PyTree, dots: PyTree) -> Arrays:
        (arrays, context), (array_dots, context_dots) = primals, dots
        stencil, arrays = _with_dots(self.stencil, arrays, array_dots)
        both = context, context_dots
        try:
            return _map(stencil, arrays, both)
        except NotTranslatableError:
            return _by_xla(stencil, arrays, both)


def _with_dots(stencil: _Stencil, arrays: Arrays, dots: Sequence[Any]) -> tuple[_Stencil, Arrays]:
    """The tangents of a function of cells, as a function of those cells and of their tangents.

    **Returns:** the function, and the arrays: `arrays`, and those of `dots` that are not None. Its context is a
    pair: that of the given function, and the tangents of that.
    """
    function, counts, by = stencil
    moving = tuple(k for k, dot in enumerate(dots) if dot is not None)
    both_counts = (*counts, *(counts[k] for k in moving))
    tangents = _TangentsOfCells(function, counts, moving)
    return _Stencil(tangents, both_counts, by), (*arrays, *(dots[k] for k in moving))


@dataclass(frozen=True)
class _TangentsOfCells:
    """The tangents of a function, of the cells and behind them the tangents of those arrays that move."""

    function: Callable[..., PyTree]
    num_cells: tuple[int, ...]
    moving: tuple[int, ...]

    def __call__(self, cells: list[list[Array]], both: PyTree) -> PyTree:
        function, counts, moving = self.function, self.num_cells, self.moving
        cell_dots = [[None] * count for count in counts]
        for k, values in zip(moving, cells[len(counts) :], strict=True):
            cell_dots[k] = values
        own, own_dots = (cells[: len(counts)], both[0]), (cell_dots, both[1])
        varying, fixed = partition_by_tangent(own, own_dots)
        return jax.jvp(partial(_of_varying, function, fixed), (varying,), (own_dots,))[1]


class _Cotangent:
    """Cotangents of arrays and context from those of the faces, where there is a tangent."""

    def __init__(self, stencil: _Stencil, dots: PyTree) -> None:
        self.stencil = stencil
        self.moves, self.context_moves = jax.tree.map(
            lambda dot: None if dot is None else True, dots, is_leaf=is_none
        )

    def __call__(self, primals: PyTree, cotangents: Arrays) -> PyTree:
        return _pull_back(self, *primals, cotangents)

    def with_cotangents(self, cotangents: Arrays) -> _Stencil:
        """What is added in the cells around a face, of these and of one cotangent for each result."""
        function, counts, by = self.stencil
        at_face = _CotangentsOfCells(function, counts, self.moves, StaticPart(self.context_moves))
        return _Stencil(at_face, (*counts, *(1 for _ in cotangents)), by)

    def unflatten(self, of_arrays: list[Array], of_context: list[Array]) -> PyTree:
        """Results of `map_stencil` as cotangents, with None where nothing moves."""
        rest = iter(of_arrays)
        back = tuple(None if move is None else next(rest) for move in self.moves)
        return back, jax.tree.unflatten(jax.tree.structure(self.context_moves), of_context)


@dataclass(frozen=True)
class _CotangentsOfCells:
    """What is added in the cells around a face and to the context's, of these and behind them its cotangents.

    - `moves`, `context_moves`: by array, and of the context: where there is a tangent.
    """

    function: Callable[..., PyTree]
    num_cells: tuple[int, ...]
    moves: tuple[bool | None, ...]
    context_moves: StaticPart

    def __call__(
        self, cells: list[list[Array]], context: PyTree
    ) -> tuple[list[list[Array]], list[Array]]:
        counts = self.num_cells
        moves = [[move] * count for move, count in zip(self.moves, counts, strict=True)]
        inputs = cells[: len(counts)], context
        all_moves = moves, self.context_moves.tree
        varying, fixed = partition_by_tangent(inputs, all_moves)
        _, back = jax.vjp(partial(_of_varying, self.function, fixed), varying)
        ((cells_back, context_back),) = back(tuple(c for (c,) in cells[len(counts) :]))
        return [x for x in cells_back if x[0] is not None], jax.tree.leaves(context_back)


@partial(custom_jvp, nondiff_argnums=(0,))
def _pull_back(maps: _Cotangent, arrays: Arrays, context: PyTree, cotangents: Arrays) -> PyTree:
    at_face, counts, by = maps.with_cotangents(cotangents)
    try:
        results = _map_by(by, at_face, counts, (*arrays, *cotangents), context)
    except NotTranslatableError:
        return _pull_back_by_xla(maps, arrays, context, cotangents)
    return maps.unflatten(*results)


@partial(_pull_back.defjvp, symbolic_zeros=True)
def _(maps: _Cotangent, primals: PyTree, tangents: PyTree) -> tuple[PyTree, PyTree]:
    dots = nonzero_tangents(tangents)
    out = _pull_back(maps, *primals)
    if not jax.tree.leaves(dots):
        return out, jax.tree.map(jnp.zeros_like, out)
    return out, linear_call(
        _BackTangent(maps), _BackCotangent(maps, dots), primals, dots, result=out
    )


class _BackTangent:
    """Tangents of cotangents, from those of arrays, context and the faces' cotangents."""

    def __init__(self, maps: _Cotangent) -> None:
        self.maps = maps

    def __call__(self, primals: PyTree, dots: PyTree) -> PyTree:
        return _push_back(self.maps, primals, dots)


class _BackCotangent:
    """The transpose, by XLA."""

    def __init__(self, maps: _Cotangent, dots: PyTree) -> None:
        self.maps = maps
        self.moves = jax.tree.map(lambda dot: None if dot is None else True, dots, is_leaf=is_none)

    def __call__(self, primals: PyTree, cotangents: PyTree) -> PyTree:
        varying, fixed = partition_by_tangent(primals, self.moves)

        def function(varying: PyTree) -> PyTree:
            return _pull_back_by_xla(self.maps, *eqx.combine(varying, fixed))

        return jax.vjp(function, varying)[1](cotangents)[0]


@partial(custom_jvp, nondiff_argnums=(0,))
def _push_back(maps: _Cotangent, primals: PyTree, dots: PyTree) -> PyTree:
    """The tangents of `_pull_back`. Its own derivatives are XLA's."""
    (arrays, context, cotangents), (array_dots, context_dots, cotangent_dots) = primals, dots
    (at_face, counts, by), all_arrays = _with_dots(
        maps.with_cotangents(cotangents), (*arrays, *cotangents), (*array_dots, *cotangent_dots)
    )
    try:
        results = _map_by(by, at_face, counts, tuple(all_arrays), (context, context_dots))
    except NotTranslatableError:
        return _push_back_by_xla(maps, primals, dots)
    return maps.unflatten(*results)


@_push_back.defjvp
def _(maps: _Cotangent, primals: PyTree, tangents: PyTree) -> tuple[PyTree, PyTree]:
    _, dots = jax.jvp(partial(_push_back_by_xla, maps), primals, tangents)
    return _push_back(maps, *primals), dots


def _push_back_by_xla(maps: _Cotangent, primals: PyTree, dots: PyTree) -> PyTree:
    varying, fixed = partition_by_tangent(primals, dots)

    def function(varying: PyTree) -> PyTree:
        return _pull_back_by_xla(maps, *eqx.combine(varying, fixed))

    return jax.jvp(function, (varying,), (dots,))[1]


def _pull_back_by_xla(
    maps: _Cotangent, arrays: Arrays, context: PyTree, cotangents: Arrays
) -> PyTree:
    inputs = arrays, context
    varying, fixed = partition_by_tangent(inputs, (maps.moves, maps.context_moves))

    def function(varying: PyTree) -> Arrays:
        return _by_xla(maps.stencil, *eqx.combine(varying, fixed))

    return jax.vjp(function, varying)[1](cotangents)[0]


def _by_xla(stencil: _Stencil, arrays: Arrays, context: PyTree) -> Arrays:
    function, num_cells, _ = stencil
    n = arrays[0].shape[1] - (num_cells[0] - 1)
    cells = [
        [jax.lax.slice_in_dim(x, j, j + n, axis=1) for j in range(count)]
        for x, count in zip(arrays, num_cells, strict=True)
    ]
    shape = (arrays[0].shape[0], n, arrays[0].shape[2])
    return tuple(jnp.broadcast_to(x, shape) for x in function(cells, context))


def _of_varying(function: Callable[..., PyTree], fixed: PyTree, varying: PyTree) -> PyTree:
    return function(*eqx.combine(varying, fixed))
