"""Neighbor lists that know when they are out of date."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import CapacityError, Fault, Faults, cond_for_batch, data, static
from physkit.geometry import AbstractSpace

from .._capacity_rules import capacity_for_maximum, round_up_to_eight
from .._particles import Particles
from ._cells import NEEDS_COARSER_CELLS, Cells, is_concrete, plan_cells
from ._cutoff import exceeds_max_cutoff, fit_skin
from ._displacement import displacement_since
from ._neighbors import AbstractNeighbors
from ._pairs import ListedPairs
from ._search import search

SMALL_SYSTEM = (
    1024  # so few particles may all be each other's neighbors when nothing is known of them
)


class NeighborList(AbstractNeighbors):
    """All pairs closer than cutoff + skin, valid until something has moved half the skin.

    Full (every pair from both its ends), in an order of its own that keeps neighbors close in
    memory: the user's order never changes. Made by `neighbor_list`, kept up to date by `update`.

    **Arguments:**

    - `pairs`: what sums run over. `cells`: what the search sorts into.
    - `position`, `space`: as they were when the list was built.
    - `num_rebuilds`: how often it was rebuilt.
    - `faults`: a cutoff beyond the image limit, a particle that moved too far in one step.
    - `excluded`: particles left out of each particle's row.
    """

    pairs: ListedPairs
    cells: Cells
    position: Float[Array, "*b n d"] = data()
    space: AbstractSpace
    num_rebuilds: Int[Array, "*b"] = data()
    faults: Faults
    excluded: Int[Array, "*b n e"] | None = data()
    cutoff: float = static()
    skin: float = static()

    @property
    def is_complete(self) -> Bool[Array, "*b"]:
        cutoff_fits = (self.faults.bits & int(Fault.CUTOFF)) == 0
        return cutoff_fits & ~_overflows(self.pairs) & ~_overflows(self.cells)

    def update(self, particles: Particles) -> "NeighborList":
        """This list, or a new one if a pair that it leaves out may have come within the cutoff.

        Under `vmap` the whole batch rebuilds when one member must; members that are no longer finite
        have no vote.
        """
        position = jax.lax.stop_gradient(particles.position)
        space = jax.tree.map(jax.lax.stop_gradient, particles.space)
        moved = displacement_since(
            self.position, self.space, position, space, self.cutoff, self.skin
        )
        radius = self.cutoff + self.skin
        too_far = exceeds_max_cutoff(space, position.shape[1], radius)
        faults = self.faults.set_if(Fault.DISPLACEMENT, moved.is_leap)
        faults = faults.set_if(Fault.CUTOFF, too_far)
        stale = (self.pairs.stale | self.cells.stale) & jnp.isfinite(moved.largest)

        def rebuild():
            capacity, required = self.pairs.capacity, self.pairs.required
            new = _build(position, space, self.excluded, self.cells, required, radius, capacity)
            return *new, position, space, self.num_rebuilds + 1

        def keep():
            return self.pairs, self.cells, self.position, self.space, self.num_rebuilds

        current = cond_for_batch(moved.is_outdated | stale, rebuild, keep)
        return NeighborList(*current, faults, self.excluded, self.cutoff, self.skin)


def neighbor_list(
    particles: Particles,
    cutoff: float,
    skin: float | None = None,
    capacity: int | None = None,
    excluded: Int[Array, "n e"] | None = None,
) -> NeighborList:
    """A list of all pairs of `particles` closer than `cutoff` + `skin`.

    Where numbers are visible, the capacity is a tenth more neighbors than there are. Inside a trace they
    are not, and a small system gets the capacity for all pairs.

    **Arguments:**

    - `skin`: length; 0.12 of the cutoff if left out, less if the box allows no more.
    - `capacity`: most neighbors of a particle.
    - `excluded`: `[n e]`, particles that are left out of each particle's row; n for none.

    **Errors:** `CutoffError` when cutoff + skin is beyond the space's `max_cutoff`; `CapacityError`
    inside a trace with more than 1024 particles and no `capacity`.
    """
    n, d = particles.position.shape
    position, space = particles.position, particles.space
    most, visible = max(n - 1, 1), is_concrete((position, space, excluded))
    skin = fit_skin(space, d, cutoff, skin)
    if capacity is not None:
        slots = min(max(int(capacity), 1), most)
    elif visible:
        mean = _mean_neighbors(position, space, cutoff + skin)
        slots = min(most, round_up_to_eight(1.5 * mean + 8))
    elif n <= SMALL_SYSTEM:
        slots = most
    else:
        raise CapacityError(
            f"how many neighbors {n} particles have cannot be seen inside a trace: call "
            "pk.init(simulation, state) outside and pass its carry on, or give capacity=…"
        )
    if not visible:
        cells = plan_cells(position, space, cutoff + skin)
        position, space = jax.tree.map(jax.lax.stop_gradient, (position, space))
        return _new_list(position, space, excluded, cells, slots, cutoff, skin)
    with jax.ensure_compile_time_eval():
        cells = plan_cells(position, space, cutoff + skin)
        made = _new_list_compiled(position, space, excluded, cells, slots, cutoff, skin)
        required = int(made.pairs.required)
        if capacity is not None:
            return made
        fit = min(most, capacity_for_maximum(required, mean))
        if required > slots:
            return _new_list_compiled(position, space, excluded, cells, fit, cutoff, skin)
        return eqx.tree_at(lambda made: made.pairs, made, made.pairs.resize(fit))


def _new_list(
    position: Float[Array, "n d"],
    space: AbstractSpace,
    excluded: Int[Array, "n e"] | None,
    cells: Cells,
    capacity: int,
    cutoff: float,
    skin: float,
) -> NeighborList:
    none = jnp.int32(0)
    built = _build(position, space, excluded, cells, none, cutoff + skin, capacity)
    too_far = exceeds_max_cutoff(space, position.shape[1], cutoff + skin)
    faults = Faults.none().set_if(Fault.CUTOFF, too_far)
    return NeighborList(*built, position, space, none, faults, excluded, cutoff, skin)


_new_list_compiled = eqx.filter_jit(_new_list)


def _build(
    position: Float[Array, "n d"],
    space: AbstractSpace,
    excluded: Int[Array, "n e"] | None,
    cells: Cells,
    required: Int[Array, ""],
    radius: float,
    capacity: int,
) -> tuple[ListedPairs, Cells]:
    """Rows of at most `capacity` neighbors within `radius`, and the cells they were found with."""
    found = search(position, space, radius, cells, capacity)
    index = found.index
    if excluded is not None:
        row = jnp.append(found.row_of_particle, jnp.int32(len(position)))
        never = row[excluded[found.order]]
        is_excluded = jnp.any(index[:, :, None] == never[:, None, :], axis=-1)
        index = jnp.where(is_excluded, len(position), index)
    required = jnp.maximum(required, found.max_neighbors)
    occupied = jnp.where(found.is_too_narrow, NEEDS_COARSER_CELLS, found.max_occupancy)
    no = jnp.array(False)
    return (
        ListedPairs(index, found.order, found.row_of_particle, required, no),
        Cells(cells.shape, cells.slots, jnp.maximum(cells.required, occupied), no),
    )


def _overflows(node: ListedPairs | Cells) -> Bool[Array, "*b"]:
    return node.required > node.capacity


def _mean_neighbors(position: Array, space: AbstractSpace, radius: float) -> float:
    """Neighbors within `radius` that a particle has on average if they fill their space evenly."""
    n, d = position.shape
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d] * radius**d
    with jax.ensure_compile_time_eval():
        volume = float(space.volume)
    if not np.isfinite(volume):
        volume = float(np.prod(np.ptp(np.asarray(position, float), axis=0) + radius))
    return min(1.0, ball / volume) * n if volume > 0 else float(n)
