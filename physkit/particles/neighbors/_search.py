"""Find the neighbors of particles that are sorted into cells."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, PyTree, data
from physkit.geometry import AbstractSpace
from physkit.native import (
    FoundNeighbors,
    NotTranslatableError,
    native_or_xla,
    search_neighbors,
)

from ._cells import Cells, ParticlesInCells, assign_cells
from ._near_cells import find_near_cells, is_thin_grid, squared_limit
from ._search_by_masks import search_by_masks


class Found(Module):
    """What a search returns; `ListedPairs` explains index, order and rows."""

    index: Int[Array, "n k"] = data()
    order: Int[Array, " n"] = data()
    row_of_particle: Int[Array, " n"] = data()
    max_neighbors: Int[Array, ""] = data()  # of the particle that has most
    max_occupancy: Int[Array, ""] = data()  # of the cell that has most
    is_too_narrow: Bool[Array, ""] = data()  # cells narrower than the radius: pairs may be missing
    particle_of_row: Int[Array, " n"] | None = data(None)  # where local particles come first


def search(
    position: Float[Array, "n d"],
    space: AbstractSpace,
    radius: float | Float[Array, ""],
    cells: Cells,
    capacity: int,
    mask: Bool[Array, " n"] | None = None,
    num_local: int | None = None,
) -> Found:
    """All pairs closer than `radius`, each particle's neighbors in the order of their cells.

    By native code on CPUs, where there is a C compiler; by bit masks elsewhere. Both list the same.

    Particles outside of `mask` are in no cell and have no neighbors. With `num_local`, the rows of that
    many first particles come first.
    """
    particles = assign_cells(position, space, cells.shape, radius, mask)

    def by_masks(*arrays: PyTree) -> FoundNeighbors:
        return search_by_masks(*arrays, cells, capacity, mask is not None, num_local)

    def by_native_code(*arrays: PyTree) -> FoundNeighbors:
        try:
            return _search_natively(*arrays, cells, capacity, num_local)
        except NotTranslatableError:
            return by_masks(*arrays)

    found = native_or_xla(by_native_code, by_masks, particles, space, radius)
    return Found(
        found.index,
        found.order,
        found.row_of_particle,
        jnp.max(found.num_neighbors),
        found.max_occupancy,
        particles.is_too_narrow,
        None if num_local is None else found.particle_of_row,
    )


def _search_natively(
    particles: ParticlesInCells,
    space: AbstractSpace,
    radius: float | Float[Array, ""],
    cells: Cells,
    capacity: int,
    num_local: int | None,
) -> FoundNeighbors:
    n, d = particles.position.shape
    is_thin = is_thin_grid(cells.shape, space)
    near_cells = find_near_cells(cells.shape, space.periodic_axes(d))
    if is_thin:  # the minimum image takes the place of shifts
        near_cells = [axis._replace(crossings=0 * axis.crossings) for axis in near_cells]

    def is_near(a: PyTree, b: PyTree, context: PyTree) -> Array:
        space, limit = context
        difference = tuple(x - y for x, y in zip(a, b, strict=True))
        if is_thin:
            difference = space.minimum_image(difference)
        return sum(x * x for x in difference) < limit

    context = space, squared_limit(radius, particles.position.dtype)
    local = n if num_local is None else num_local
    return search_neighbors(
        is_near,
        particles.position,
        particles.number,
        particles.vectors,
        near_cells,
        context,
        capacity,
        local,
    )
