"""What meets at the faces of cells, and the fluxes of its waves: by XLA, and by native code in one pass."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from physkit.core import PyTree, ratio, split_arrays
from physkit.geometry import Grid
from physkit.native import MapStencil, NotTranslatableError, map_on_gpus, native_or_xla

from ..stencils._locality import is_local, trial_shape
from ..stencils._map_faces import map_faces
from ._reconstruction import AbstractReconstruction, edges_to_faces
from ._riemann_solvers import AbstractRiemannSolver, RiemannLaw, Variables
from ._variables import (
    FieldComponent,
    component_fields,
    count_carried,
    padded_variables,
    unstack,
)


@runtime_checkable
class SolvedLaw(RiemannLaw, Protocol):
    """A law with its schemes; `AbstractConservationLaw` says what each means."""

    riemann: AbstractRiemannSolver
    reconstruction: AbstractReconstruction

    def is_admissible(self, values: Variables) -> Bool[Array, "..."] | None: ...

    def limit_fluxes(
        self,
        grid: Grid,
        below: Variables,
        above: Variables,
        fluxes: Variables,
        axis: int,
        dt: Array | None,
    ) -> Variables: ...


# Grid and length of a step, for laws that limit their fluxes.
Limits: TypeAlias = tuple[Grid, Array | None] | None


def fluxes_by_xla(
    law: SolvedLaw,
    padded: Variables,
    carried: int,
    ranges: list[Array] | None,
    axis: int,
    limits: Limits = None,
) -> Variables:
    """The fluxes of waves through all faces across `axis`, and what the mass takes along."""
    left, right = _faces_of_padded(law, padded, carried, ranges, axis)
    fluxes = with_carried(law, law.riemann.flux, left, right, carried, axis)
    width = law.reconstruction.width
    if law.reconstruction.of_points:
        in_cells = _fluxes_in_cells(law, padded, carried, axis)
        fluxes = _correct_fluxes(law, fluxes, cells_around_faces(in_cells, width, axis))
    if limits is None:
        return fluxes
    return limit_fluxes(law, fluxes, cells_around_faces(padded, width, axis), axis, limits)


def fluxes_in_one_pass(
    by: MapStencil,
    law: SolvedLaw,
    padded: Variables,
    carried: int,
    ranges: list[Array] | None,
    axis: int,
    limits: Limits = None,
) -> Variables:
    """The same by native code, or by a kernel of a GPU.

    **Errors:** `NotTranslatableError` for laws and schemes with operations that are not translated.
    """
    counts = [2 * law.reconstruction.width] * len(padded)
    context = law, ranges, limits, carried, axis
    return map_faces(_fluxes_of_cells, padded, counts, context, axis, by)


def fluxes_by_kernels(law: SolvedLaw, padded: Variables, *rest: Any) -> Variables:
    """The same, of the same arguments, by one kernel on NVIDIA's GPUs where it is translated."""

    def by_xla(*padded: Array) -> Variables:
        return fluxes_by_xla(law, padded, *rest)

    def by_kernel(*padded: Array) -> Variables:
        try:
            return fluxes_in_one_pass(map_on_gpus, law, padded, *rest)
        except NotTranslatableError:
            return by_xla(*padded)

    return native_or_xla(by_xla, by_xla, *padded, cuda=by_kernel)


def _fluxes_of_cells(cells: Sequence[Sequence[Array]], context: PyTree) -> Variables:
    """The fluxes through faces from the cells around them, and from law, ranges and limits."""
    law, ranges, limits, carried, axis = context
    left, right = sides_of_faces(law, cells, carried, ranges)
    fluxes = with_carried(law, law.riemann.flux, left, right, carried, axis)
    if law.reconstruction.of_points:
        points = zip(*cells, strict=True)
        in_cells = [_fluxes_in_cells(law, x, carried, axis) for x in points]
        fluxes = _correct_fluxes(law, fluxes, list(zip(*in_cells, strict=True)))
    return fluxes if limits is None else limit_fluxes(law, fluxes, cells, axis, limits)


def _fluxes_in_cells(law: SolvedLaw, conserved: Variables, carried: int, axis: int) -> Variables:
    values = primitive_variables(law, conserved, carried)
    n = len(values) - carried
    fluxes = law.flux(values[:n], axis)
    return *fluxes, *(fluxes[0] * c for c in values[n:])


def _correct_fluxes(
    law: SolvedLaw, fluxes: Variables, around: Sequence[Sequence[Array]]
) -> Variables:
    """Fluxes at faces, which are point values, such that their differences are derivatives at points.

    `around`: the fluxes in the middles of the cells around each face, by variable, then by cell.
    """
    return add_fluxes(fluxes, tuple(law.reconstruction.correct_flux(*each) for each in around))


def limit_fluxes(
    law: SolvedLaw,
    fluxes: Variables,
    cells: Sequence[Sequence[Array]],
    axis: int,
    limits: tuple[Grid, Array | None],
) -> Variables:
    """Fluxes as far as a step may take them."""
    (grid, dt), middle = limits, len(cells[0]) // 2
    below, above = (tuple(x[middle + j] for x in cells) for j in (-1, 0))
    return law.limit_fluxes(grid, below, above, fluxes, axis, dt)


def add_fluxes(fluxes: Variables, others: Variables) -> Variables:
    """The sum of both, of which the second may be fewer."""
    # Molecules carry no scalars yet, and each law knows only its own.
    rest = fluxes[len(others) :]
    return *(f + g for f, g in zip(fluxes, others, strict=False)), *rest


def cells_around_faces(padded: Variables, width: int, axis: int) -> list[list[Array]]:
    """The 2·width cells around each face, by variable, then by cell."""
    count = padded[0].shape[axis] - (2 * width - 1)
    return [
        [jax.lax.slice_in_dim(x, j, j + count, axis=axis) for j in range(2 * width)] for x in padded
    ]


def waves_are_local(
    law: SolvedLaw,
    dimension: int,
    variables: Variables,
    carried: int,
    ranges: list[Array] | None,
    limits: Limits = None,
) -> bool:
    """Whether the flux through a face depends on the cells around it alone.

    A law of one's own may take the fastest wave of all cells, say. Then nothing may be done part by part.
    """
    context, static = split_arrays((law, ranges, limits))
    leaves, structure = jax.tree.flatten(context)
    shapes = tuple((x.shape, x.dtype) for x in leaves)
    dtypes = tuple(x.dtype for x in variables)
    ask = _waves_are_local if static.is_hashable else _waves_are_local.__wrapped__
    return ask(static, structure, shapes, dtypes, dimension, carried)


@functools.lru_cache(maxsize=256)
def _waves_are_local(static, structure, shapes, dtypes, dimension, carried) -> bool:
    context = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*s) for s in shapes])
    shape = trial_shape(dimension)
    count = 2 * static.tree[0].reconstruction.width
    cells = [[jax.ShapeDtypeStruct(shape, dtype)] * count for dtype in dtypes]

    def along(axis: int) -> Callable[..., Variables]:
        return lambda cells, context: _fluxes_of_cells(
            cells, (*static.combine(context), carried, axis)
        )

    try:
        return all(is_local(along(k), cells, context, shape=shape) for k in range(dimension))
    except (TypeError, ValueError):  # numbers of the law belong to the cells of one grid
        return False


def reconstruct_faces(
    law: SolvedLaw, component: FieldComponent, axis: int
) -> tuple[Variables, Variables]:
    """Primitive variables below and above every face across `axis`."""
    padded = padded_variables(component, law.reconstruction.width, axis)
    ranges = ranges_over_domain(law, component)
    return _faces_of_padded(law, padded, count_carried(component), ranges, axis)


def sides_of_faces(
    law: SolvedLaw,
    cells: Sequence[Sequence[Array]],
    carried: int,
    ranges: list[Array] | None,
) -> tuple[Variables, Variables]:
    """Primitive variables below and above faces, from the conserved ones of the cells around them.

    `cells`: by variable, then by cell.
    """
    points = [reconstructed_variables(law, point, carried) for point in zip(*cells, strict=True)]
    values = list(zip(*points, strict=True))
    _, below = _edges_of_cells(law, [x[:-1] for x in values], carried, ranges)
    above, _ = _edges_of_cells(law, [x[1:] for x in values], carried, ranges)
    return below, above


def with_carried(
    law: SolvedLaw,
    solver: Callable[..., Variables],
    left: Variables,
    right: Variables,
    carried: int,
    axis: int,
) -> Variables:
    """The fluxes of a solver, and what the mass takes along from upstream."""
    n = len(left) - carried
    fluxes = solver(law, left[:n], right[:n], axis)
    mass = 0.5 * fluxes[0]
    # At rest the derivative is that of the mean.
    taken = (
        mass * (a + b) - jnp.abs(mass) * (b - a) for a, b in zip(left[n:], right[n:], strict=True)
    )
    return *fluxes, *taken


def ranges_over_domain(law: SolvedLaw, component: FieldComponent) -> list[Array] | None:
    """The range of every variable over the domain, without its ghosts, for schemes that ask for it."""
    if not law.reconstruction.is_high_order:
        return None
    fields = component_fields(component)
    grid = next(iter(fields.values())).grid
    own = tuple(x for field in fields.values() for x in unstack(field, field.data))
    values = jax.lax.stop_gradient(reconstructed_variables(law, own, count_carried(component)))
    return [grid.max(x) + grid.max(-x) for x in values]


def reconstructed_variables(law: SolvedLaw, conserved: Variables, carried: int) -> Variables:
    """The variables that the law's scheme reconstructs."""
    uses_primitive = law.reconstruction.uses_primitive
    return primitive_variables(law, conserved, carried) if uses_primitive else conserved


def _faces_of_padded(
    law: SolvedLaw,
    padded: Variables,
    carried: int,
    ranges: list[Array] | None,
    axis: int,
) -> tuple[Variables, Variables]:
    scheme = law.reconstruction
    stencils = [scheme.stencil(x, axis) for x in reconstructed_variables(law, padded, carried)]
    low, high = _edges_of_cells(law, stencils, carried, ranges)
    pairs = [edges_to_faces(a, b, axis) for a, b in zip(low, high, strict=True)]
    return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)


def _edges_of_cells(
    law: SolvedLaw,
    stencils: Sequence[Sequence[Array]],
    carried: int,
    ranges: list[Array] | None,
) -> tuple[Variables, Variables]:
    """Primitive variables at the low and at the high edge of cells, from the cells around them."""
    scheme = law.reconstruction
    if ranges is None:
        edges = [scheme.edges(*cells) for cells in stencils]
    else:
        edges = [scheme.edges_of_scale(s, *x) for s, x in zip(ranges, stencils, strict=True)]
    low, high = (tuple(e[side] for e in edges) for side in (0, 1))
    # A stencil of 2·width − 1 cells: its middle is the cell itself.
    middle = tuple(cells[scheme.width - 1] for cells in stencils)
    if not scheme.uses_primitive:
        # Only the edges of what was reconstructed are made primitive.
        low, high, middle = (primitive_variables(law, x, carried) for x in (low, high, middle))
    if scheme.is_high_order:
        low, high = (_edge_or_cell(law, x, middle, carried) for x in (low, high))
    return low, high


def _edge_or_cell(law: SolvedLaw, values: Variables, middle: Variables, carried: int) -> Variables:
    """Primitive variables at an edge; those of the cell where the edge's are not admissible."""
    # A polynomial of high order may overshoot to a negative density or pressure; the average does not, so
    # that an edge, each by itself, falls back to first order and positivity is kept.
    admissible = law.is_admissible(values[: len(values) - carried])
    if admissible is None:
        return values
    return tuple(jnp.where(admissible, x, cell) for x, cell in zip(values, middle, strict=True))


def primitive_variables(law: SolvedLaw, conserved: Variables, carried: int) -> Variables:
    """Primitive variables; of what is carried the amount in a unit of mass."""
    n = len(conserved) - carried
    return *law.primitive(conserved[:n]), *(ratio(x, conserved[0]) for x in conserved[n:])
