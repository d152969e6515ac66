"""Neighbor lists that know when they are out of date."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    CapacityError,
    CutoffError,
    Fault,
    Faults,
    Module,
    cond_for_batch,
    data,
    static,
)
from physkit.geometry import AbstractSpace, inverse_matrix

from .._particles import Particles
from ._cells import NEEDS_COARSER_CELLS, Cells, cell_vectors, is_concrete, plan_cells
from ._pairs import ListedPairs, add_headroom, round_up_to_eight
from ._search import search

SMALL_SYSTEM = (
    1024  # so few particles may all be each other's neighbors when nothing is known of them
)
DEFAULT_SKIN = 0.12  # of the cutoff


class NeighborList(Module):
    """All pairs closer than cutoff + skin, valid until something has moved half the skin.

    Full (every pair from both its ends), in an order of its own that keeps neighbors close in
    memory: the user's order never changes. Made by `neighbor_list`, kept up to date by `updated`.

    **Arguments:**

    - `pairs`: what sums run over. `cells`: what the search sorts into.
    - `position`, `space`: as they were when the list was built.
    - `rebuilds`: how often it was built anew.
    - `faults`: a cutoff beyond the image limit, a particle that leapt.
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
    def is_complete(self) -> Bool[Array, ""]:
        """Whether no pair is missing; where this is False, sums over the list must be poisoned."""
        cutoff = (self.faults.bits & int(Fault.CUTOFF)) == 0
        return cutoff & ~_overflows(self.pairs) & ~_overflows(self.cells)

    def update(self, particles: Particles) -> "NeighborList":
        """This list, or a new one if a pair that it leaves out may have come within the cutoff.

        Under `vmap` the whole batch builds anew when one member must; members that are no longer
        finite have no vote.
        """
        position = jax.lax.stop_gradient(particles.position)
        space = jax.tree.map(jax.lax.stop_gradient, particles.space)
        moved, stretch = displacement_and_strain(self.position, self.space, position, space)
        radius = self.cutoff + self.skin
        # What was further apart than `radius` is now further than radius·(1 − stretch) − 2·moved.
        old = 2 * moved > self.skin - stretch * radius
        leapt = moved > radius / 2
        too_far = exceeds_max_cutoff(space, position.shape[1], radius)
        faults = self.faults.set_if(Fault.DISPLACEMENT, leapt).set_if(Fault.CUTOFF, too_far)
        stale = (self.pairs.stale | self.cells.stale) & jnp.isfinite(moved)

        def built():
            capacity, required = self.pairs.capacity, self.pairs.required
            new = _build(position, space, self.excluded, self.cells, required, radius, capacity)
            return *new, position, space, self.num_rebuilds + 1

        def kept():
            return self.pairs, self.cells, self.position, self.space, self.num_rebuilds

        current = cond_for_batch(old | stale, built, kept)
        return NeighborList(*current, faults, self.excluded, self.cutoff, self.skin)


def neighbor_list(
    particles: Particles,
    cutoff: float,
    skin: float | None = None,
    capacity: int | None = None,
    excluded: Int[Array, "n e"] | None = None,
) -> NeighborList:
    """A list of all pairs of `particles` closer than `cutoff` + `skin`.

    Where it can see numbers it gives itself room for a tenth more neighbors than there are. Inside
    a trace it cannot, and takes room for everybody if there are few particles.

    **Arguments:**

    - `skin`: length; 0.12 of the cutoff if left out, less if the box allows no more.
    - `capacity`: room for so many neighbors of a particle.
    - `excluded`: `[n e]`, particles that are left out of each particle's row; n for none.

    **Errors:** `CutoffError` when cutoff + skin is beyond the space's `image_limit`; `CapacityError`
    inside a trace with more than 1024 particles and no `capacity`.
    """
    n, d = particles.position.shape
    position, space = particles.position, particles.space
    most, seen = max(n - 1, 1), is_concrete((position, space, excluded))
    skin = _fitting_skin(space, d, cutoff, skin)
    if capacity is not None:
        room = min(max(int(capacity), 1), most)
    elif seen:
        mean = _expected(position, space, cutoff + skin)
        room = min(most, round_up_to_eight(1.5 * mean + 8))
    elif n <= SMALL_SYSTEM:
        room = most
    else:
        raise CapacityError(
            f"how many neighbors {n} particles have cannot be seen inside a trace: call "
            "start(simulation, state) outside and pass its carry on, or give capacity=…"
        )
    if not seen:
        cells = plan_cells(position, space, cutoff + skin)
        position, space = jax.tree.map(jax.lax.stop_gradient, (position, space))
        return _first(position, space, excluded, cells, room, cutoff, skin)
    with jax.ensure_compile_time_eval():
        cells = plan_cells(position, space, cutoff + skin)
        made = _first_compiled(position, space, excluded, cells, room, cutoff, skin)
        need = int(made.pairs.required)
        if capacity is not None:
            return made
        fit = min(most, add_headroom(need, mean))
        if need > room:
            return _first_compiled(position, space, excluded, cells, fit, cutoff, skin)
        return eqx.tree_at(lambda made: made.pairs, made, made.pairs.resize(fit))


def _first(position, space, excluded, cells, capacity, cutoff, skin) -> NeighborList:
    built = _build(position, space, excluded, cells, jnp.int32(0), cutoff + skin, capacity)
    beyond = exceeds_max_cutoff(space, position.shape[1], cutoff + skin)
    faults = Faults.none().set_if(Fault.CUTOFF, beyond)
    return NeighborList(*built, position, space, jnp.int32(0), faults, excluded, cutoff, skin)


_first_compiled = eqx.filter_jit(_first)


def _build(position, space, excluded, cells, required, radius, capacity):
    """Rows of at most `capacity` neighbors within `radius`, and the cells they were found with."""
    found = search(position, space, radius, cells, capacity)
    index = found.index
    if excluded is not None:
        place = jnp.append(found.place, jnp.int32(len(position)))
        never = place[excluded[found.order]]
        hit = jnp.any(index[:, :, None] == never[:, None, :], axis=-1)
        index = jnp.where(hit, len(position), index)
    required = jnp.maximum(required, found.neighbors)
    occupied = jnp.where(found.narrow, NEEDS_COARSER_CELLS, found.occupancy)
    no = jnp.array(False)
    return (
        ListedPairs(index, found.order, found.place, required, no),
        Cells(cells.shape, cells.slots, jnp.maximum(cells.required, occupied), no),
    )


def displacement_and_strain(old, old_space, position, space):
    """How far anything has moved beyond what the cell's change carries it, and that strain."""
    d = position.shape[1]
    (before, _), (now, _) = (cell_vectors(s, d, position.dtype) for s in (old_space, space))
    strain = jnp.matmul(inverse_matrix(before), now, precision="highest")
    carried = jnp.matmul(old, strain, precision="highest")
    moved = space.minimum_image(tuple(position[:, k] - carried[:, k] for k in range(d)))
    farthest = jnp.sqrt(jnp.max(sum(x * x for x in moved)))
    return farthest, jnp.sqrt(jnp.sum((strain - jnp.eye(d, dtype=strain.dtype)) ** 2))


def exceeds_max_cutoff(space: AbstractSpace, d: int, radius: float) -> Bool[Array, ""]:
    """Whether a pair closer than `radius` could have two images."""
    limit = space.max_cutoff(d)
    return radius > limit * (1 + 4 * float(jnp.finfo(limit.dtype).eps))


def require_max_cutoff(space: AbstractSpace, d: int, cutoff: float) -> float:
    """The image limit of a space whose numbers are visible, in `d` dimensions.

    **Errors:** `CutoffError` for a cutoff beyond it.
    """
    with jax.ensure_compile_time_eval():
        limit = float(space.max_cutoff(d))
    if cutoff > limit * (1 + 1e-6):
        raise CutoffError(
            f"the cutoff {cutoff:g} is beyond the image limit {limit:.6g} of this "
            f"{type(space).__name__}: a particle would meet two images of another; use a larger box or "
            "a shorter cutoff"
        )
    return limit


def _overflows(node: ListedPairs | Cells) -> Bool[Array, ""]:
    return node.required > node.capacity


def _fitting_skin(space: AbstractSpace, d: int, cutoff: float, skin: float | None) -> float:
    if not is_concrete(space):
        return DEFAULT_SKIN * cutoff if skin is None else skin
    limit, name = require_max_cutoff(space, d, cutoff), type(space).__name__
    if skin is None:
        return min(DEFAULT_SKIN * cutoff, max(0.0, (limit - cutoff) * (1 - 1e-6)))
    if cutoff + skin > limit * (1 + 1e-6):
        raise CutoffError(
            f"cutoff + skin = {cutoff + skin:g} is beyond the image limit {limit:.6g} of this "
            f"{name}; the cutoff fits, with a skin of at most {limit - cutoff:.6g}"
        )
    return skin


def _expected(position: Array, space: AbstractSpace, radius: float) -> float:
    """Neighbors within `radius` that a particle has on average if they fill their space evenly."""
    n, d = position.shape
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d] * radius**d
    with jax.ensure_compile_time_eval():
        volume = float(space.volume)
    if not np.isfinite(volume):
        volume = float(np.prod(np.ptp(np.asarray(position, float), axis=0) + radius))
    return min(1.0, ball / volume) * n if volume > 0 else float(n)
