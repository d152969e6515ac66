"""Neighbor lists that know when they are out of date."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    CapacityError,
    Fault,
    Faults,
    cond_for_batch,
    data,
    evaluate_now,
    is_concrete,
    static,
)
from physkit.geometry import AbstractSpace

from .._capacity_rules import capacity_for_maximum, round_up_by_an_eighth
from .._particles import Particles
from ._cells import NEEDS_COARSER_CELLS, Cells, plan_cells
from ._cutoff import allowed_skin, exceeds_max_cutoff, fit_skin, space_numbers
from ._displacement import displacement_since
from ._neighbors import AbstractNeighbors
from ._pairs import ListedPairs
from ._search import search

# Up to this many particles, a list that is made inside a trace has the capacity for all pairs.
SMALL_SYSTEM = 1024


class NeighborList(AbstractNeighbors):
    """All pairs closer than cutoff + skin, valid until some particle has moved half the skin.

    A full list: every pair from both its ends. Its rows have an order of their own that keeps neighbors close
    in memory; the user's order never changes. `neighbor_list` makes it, `update` keeps it up to date.

    **Arguments:**

    - `pairs`: the pairs that sums run over. `cells`: the cells that the search sorts particles into.
    - `position`, `space`: as they were when the list was built.
    - `num_rebuilds`: how often it was rebuilt.
    - `faults`: a cutoff beyond the image limit, a particle that moved too far in one step.
    - `excluded`: the particles left out of each particle's row.
    - `skin`: None for the default; less where the box, which may change, allows no more.
    """

    pairs: ListedPairs
    cells: Cells
    position: Float[Array, "*b n d"] = data()
    space: AbstractSpace
    num_rebuilds: Int[Array, "*b"] = data()
    faults: Faults
    excluded: Int[Array, "*b n e"] | None = data()
    cutoff: float = static()
    skin: float | None = static()

    @property
    def is_complete(self) -> Bool[Array, "*b"]:
        cutoff_fits = (self.faults.bits & int(Fault.CUTOFF)) == 0
        return cutoff_fits & ~_overflows(self.pairs) & ~_overflows(self.cells)

    def update(self, particles: Particles) -> "NeighborList":
        """This list, or a new one if a pair that it leaves out may have come within the cutoff.

        Under `vmap` the whole batch rebuilds when one member must; members that are no longer finite
        do not count.
        """
        # Which pairs are listed is a choice of which sums do not depend: no derivative goes through it.
        position = jax.lax.stop_gradient(particles.position)
        space = particles.space.detached()
        built_at, built_in = jax.lax.stop_gradient(self.position), self.space.detached()
        # Of the list, the skin that it was built with; of a new one, what the box allows now.
        skin = allowed_skin(built_in, position, self.cutoff, self.skin)
        moved = displacement_since(built_at, built_in, position, space, self.cutoff, skin)
        radius = self.cutoff + allowed_skin(space, position, self.cutoff, self.skin)
        too_far = exceeds_max_cutoff(space, position.shape[1], self.cutoff)
        faults = self.faults.set_if(Fault.DISPLACEMENT, moved.is_leap)
        faults = faults.set_if(Fault.CUTOFF, too_far)
        # Comparisons with NaN are false, but `stale` is not one: a member that diverged would stay stale and
        # let its whole batch rebuild in every step.
        stale = (self.pairs.stale | self.cells.stale) & jnp.isfinite(moved.largest)

        def rebuild():
            capacity, required = self.pairs.capacity, self.pairs.required
            build = _build_compiled if is_concrete((position, space)) else _build_traced
            with_reverse = self.pairs.reverse is not None
            new = build(
                position, space, self.excluded, self.cells, required, radius, capacity, with_reverse
            )
            return *new, position, space, self.num_rebuilds + 1

        def keep():
            return self.pairs, self.cells, built_at, built_in, self.num_rebuilds

        # A branch also under `vmap`, where `lax.cond` would become a select that searches in every step.
        current = cond_for_batch(moved.is_outdated | stale, rebuild, keep)
        return NeighborList(*current, faults, self.excluded, self.cutoff, self.skin)

    def fit_capacity(self) -> "NeighborList":
        """This new list with the capacity that its particles need, and some reserve (host only)."""
        n = self.position.shape[0]
        required, skin = int(self.pairs.required), self.skin
        assert skin is not None  # that of a box that can be seen
        mean = _mean_neighbors(self.position, self.space, self.cutoff + skin)
        fit = min(max(n - 1, 1), capacity_for_maximum(required, mean))
        if required > self.pairs.capacity:
            # The estimate from the mean density was too low: rows are cut short, so build them again.
            with_reverse = self.pairs.reverse is not None
            plan = ListPlan(skin, fit, self.cells.shape, self.cells.slots, with_reverse)
            return _planned_list_compiled(
                self.position, self.space, self.excluded, plan, self.cutoff
            )
        return eqx.tree_at(lambda fitted: fitted.pairs, self, self.pairs.resize(fit))


class ListPlan(NamedTuple):
    """What a new list is compiled for, chosen from numbers that its program does not see."""

    skin: float
    capacity: int
    cell_shape: tuple[int, ...]
    cell_slots: int
    with_reverse: bool = False


def plan_list(
    particles: Particles,
    cutoff: float,
    skin: float | None = None,
    capacity: int | None = None,
    least: int = 0,
    with_reverse: bool = False,
) -> ListPlan:
    """The plan of a list of `particles`, whose numbers are visible (host only).

    Arguments and errors as of `neighbor_list`.

    - `least`: at least this capacity, where none is given.
    - `with_reverse`: whether its pairs know their columns in each other's rows.
    """
    n, d = particles.position.shape
    position, space = particles.position, particles.space
    fitted = fit_skin(space, d, cutoff, skin)
    assert fitted is not None  # to a box that can be seen
    if capacity is None:
        mean = _mean_neighbors(position, space, cutoff + fitted)
        # A start of another density need be no other program; what is too much is fitted afterwards.
        capacity = max(round_up_by_an_eighth(1.5 * mean + 8), least)
    cells = plan_cells(position, space, cutoff + fitted)
    slots = min(max(int(capacity), 1), max(n - 1, 1))
    return ListPlan(fitted, slots, cells.shape, cells.slots, with_reverse)


def neighbor_list(
    particles: Particles,
    cutoff: float,
    skin: float | None = None,
    capacity: int | None = None,
    excluded: Int[Array, "n e"] | None = None,
    plan: ListPlan | None = None,
    with_reverse: bool = False,
) -> NeighborList:
    """A list of all pairs of `particles` closer than `cutoff` + `skin`.

    Where numbers are visible, the list is built once to count neighbors, and gets that capacity and some
    reserve. Inside a trace they are hidden, and a small system gets the capacity for all pairs.

    **Arguments:**

    - `skin`: length; 0.12 of the cutoff if left out, less if the box allows no more.
    - `capacity`: most neighbors of a particle.
    - `excluded`: `[n e]`, particles that are left out of each particle's row; n for none.
    - `plan`: for a trace: what `plan_list` has chosen outside of it, in the place of skin and capacity.
    - `with_reverse`: whether its pairs know their columns in each other's rows.

    **Errors:** `DeclarationError` for particles that are sharded over devices, whose lists `find_neighbors`
    makes; `CutoffError` when cutoff + skin is beyond the space's `max_cutoff`; `CapacityError`
    inside a trace with more than 1024 particles and no `capacity`.
    """
    particles.require_single_device("a neighbor_list", "find_neighbors(particles, cutoff)")
    n, d = particles.position.shape
    position, space = particles.position, particles.space
    max_neighbors, is_visible = max(n - 1, 1), is_concrete((position, space, excluded))
    if plan is None and is_visible:
        # The numbers may be constants that a trace closes over: evaluate now, so that counts can be read.
        with evaluate_now():
            plan = plan_list(particles, cutoff, skin, capacity, with_reverse=with_reverse)
            new_list = _planned_list_compiled(position, space, excluded, plan, cutoff)
            return new_list if capacity is not None else new_list.fit_capacity()
    if plan is not None:
        position, space = jax.lax.stop_gradient(position), space.detached()
        return _planned_list(position, space, excluded, plan, cutoff)
    skin = fit_skin(space, d, cutoff, skin)
    if capacity is not None:
        slots = min(max(int(capacity), 1), max_neighbors)
    elif n <= SMALL_SYSTEM:
        slots = max_neighbors
    else:
        raise CapacityError(
            f"how many neighbors {n} particles have cannot be seen inside a trace: call "
            "pk.init(simulation, state) outside and pass its carry on, or give capacity=…"
        )
    # A single cell for all particles: without numbers nothing better can be planned.
    cells = plan_cells(position, space, cutoff if skin is None else cutoff + skin)
    position, space = jax.lax.stop_gradient(position), space.detached()
    return _new_list(position, space, excluded, cells, slots, cutoff, skin, with_reverse)


def _planned_list(
    position: Float[Array, "n d"],
    space: AbstractSpace,
    excluded: Int[Array, "n e"] | None,
    plan: ListPlan,
    cutoff: float,
) -> NeighborList:
    cells = Cells.of(plan.cell_shape, plan.cell_slots)
    return _new_list(
        position, space, excluded, cells, plan.capacity, cutoff, plan.skin, plan.with_reverse
    )


_planned_list_compiled = eqx.filter_jit(_planned_list)


def _new_list(
    position: Float[Array, "n d"],
    space: AbstractSpace,
    excluded: Int[Array, "n e"] | None,
    cells: Cells,
    capacity: int,
    cutoff: float,
    skin: float | None,
    with_reverse: bool,
) -> NeighborList:
    zero, d = jnp.int32(0), position.shape[1]
    radius = cutoff + allowed_skin(space, position, cutoff, skin)
    built = _build_traced(position, space, excluded, cells, zero, radius, capacity, with_reverse)
    too_far = exceeds_max_cutoff(space, d, cutoff)
    faults = Faults.none().set_if(Fault.CUTOFF, too_far)
    return NeighborList(*built, position, space, zero, faults, excluded, cutoff, skin)


def _build(
    position: Float[Array, "n d"],
    space: AbstractSpace,
    excluded: Int[Array, "n e"] | None,
    cells: Cells,
    required: Int[Array, ""],
    radius: float | Float[Array, ""],
    capacity: int,
    with_reverse: bool,
) -> tuple[ListedPairs, Cells]:
    """Rows of at most `capacity` neighbors within `radius`, and the cells they were found with."""
    found = search(position, space, radius, cells, capacity)
    index = found.index
    if excluded is not None:
        # Entries of `index` are places in `found.order`, so particles are turned into places as well; n, for
        # no more partners, becomes n, which marks an empty entry in both.
        place = jnp.append(found.row_of_particle, jnp.int32(len(position)))
        excluded_places = place[excluded[found.order]]
        # (n, k, 1) against (n, 1, e)
        is_excluded = jnp.any(index[:, :, None] == excluded_places[:, None, :], axis=-1)
        # Excluded entries become empty in the middle of a row: sums mask each entry by itself.
        index = jnp.where(is_excluded, len(position), index)
    required = jnp.maximum(required, found.max_neighbors)
    occupied = jnp.where(found.is_too_narrow, NEEDS_COARSER_CELLS, found.max_occupancy)
    is_stale = jnp.array(False)
    pairs = ListedPairs(index, found.order, found.row_of_particle, required, is_stale)
    pairs = pairs.with_reverse() if with_reverse else pairs
    return pairs, Cells(cells.shape, cells.slots, jnp.maximum(cells.required, occupied), is_stale)


# For a search outside of a trace: operation by operation it would hold arrays of all cells.
_build_compiled = eqx.filter_jit(_build)
# Inside of a program: a part of it, traced once for all programs, which all build lists.
_build_traced = eqx.filter_jit(_build, inline=True)


def _overflows(node: ListedPairs | Cells) -> Bool[Array, "*b"]:
    return node.required > node.capacity


def _mean_neighbors(position: Array, space: AbstractSpace, radius: float) -> float:
    """Neighbors within `radius` that a particle has on average, if particles fill their space evenly."""
    n, d = position.shape
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d] * radius**d
    volume = space_numbers(space, d).volume
    if not np.isfinite(volume):
        # Open space: take the box that the particles fill, a `radius` longer along each axis.
        volume = float(np.prod(np.ptp(np.asarray(position, float), axis=0) + radius))
    return min(1.0, ball / volume) * n if volume > 0 else float(n)
