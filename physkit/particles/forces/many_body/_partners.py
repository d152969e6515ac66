"""What particles read of their listed neighbors: gathers whose transposes are gathers, too.

Arrays of listed pairs are `[k c …]`: particles along the last axis of numbers, so that sums over neighbors add
vectors of particles, which processors do at once.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import linear_call
from physkit.geometry import AbstractSpace

from ...neighbors import ListedPairs

Components = tuple[Float[Array, "k c"], ...]  # of a vector for every pair, an array per axis
Arrays = tuple[Float[Array, "..."], ...]  # [m …] by particle, or [k c …] by listed pair


def displacements(
    x: tuple[Float[Array, " m"], ...], space: AbstractSpace, pairs: ListedPairs
) -> Components:
    """x_j − x_i by the nearest image for all listed pairs, by rows; 0 for empty entries.

    - `x`: of all particles that `pairs` names, copies of other devices' included.
    """
    return space.minimum_image(_gather(x, pairs, from_own=True))


def of_neighbors(x: Arrays, pairs: ListedPairs) -> Arrays:
    """x_j for all listed pairs, by rows, of arrays `[m …]`; 0 for empty entries."""
    return _gather(x, pairs, from_own=False)


def of_rows(x: Array, pairs: ListedPairs) -> Array:
    """x_i by rows, of an array that no derivative goes through."""
    count = num_rows(pairs)
    return x.at[_particle_of_row(pairs)[:count]].get(mode="promise_in_bounds", unique_indices=True)


def num_rows(pairs: ListedPairs) -> int:
    """How many rows are summed: those of this device's own particles."""
    return pairs.index.shape[0] if pairs.num_local is None else pairs.num_local


def by_particle(rows: Float[Array, "c ..."], pairs: ListedPairs) -> Float[Array, "c ..."]:
    """Rows in the order of particles."""
    return _permute(rows, pairs, to_particles=True)


def by_row(x: Float[Array, "c ..."], pairs: ListedPairs) -> Float[Array, "c ..."]:
    """This device's particles in the order of rows."""
    return _permute(x, pairs, to_particles=False)


def _gather(x: Arrays, pairs: ListedPairs, from_own: bool) -> Arrays:
    assert pairs.reverse is not None
    count = num_rows(pairs)
    # Neither this nor its derivatives scatter: the transpose reads each pair from its other end.
    return linear_call(_Partners(from_own, count), _BothEnds(from_own), pairs, x)


def _permute(x: Array, pairs: ListedPairs, to_particles: bool) -> Array:
    return linear_call(_Permute(to_particles), _Permute(not to_particles), pairs, x)


def _particle_of_row(pairs: ListedPairs) -> Int[Array, " m"]:
    return pairs.order if pairs.particle_of_row is None else pairs.particle_of_row


@dataclass(frozen=True)
class _Permute:
    to_particles: bool

    def __call__(self, pairs: ListedPairs, x: Float[Array, "c ..."]) -> Float[Array, "c ..."]:
        places = pairs.row_of_particle if self.to_particles else _particle_of_row(pairs)
        return x.at[places[: len(x)]].get(mode="promise_in_bounds", unique_indices=True)


@dataclass(frozen=True)
class _Partners:
    """x_j, or x_j − x_i, of every listed pair of the first `count` rows."""

    from_own: bool
    count: int

    def __call__(self, pairs: ListedPairs, x: Arrays) -> Arrays:
        index = _transpose(pairs.index[: self.count])
        particles = _particle_of_row(pairs)[: self.count]

        def of_leaf(x: Float[Array, "m ..."]) -> Float[Array, "k c ..."]:
            read = {"mode": "promise_in_bounds", "unique_indices": True}
            places = x.at[pairs.order].get(**read)
            partners = jnp.take(places, index, axis=0, mode="clip")
            if self.from_own:
                partners = partners - x.at[particles].get(**read)[None]
            return jnp.where(_like(index < len(x), partners), partners, 0)

        return tuple(map(of_leaf, x))


@dataclass(frozen=True)
class _BothEnds:
    """The transpose: what particle i gets from pairs in its own row and in those of its neighbors."""

    from_own: bool

    def __call__(self, pairs: ListedPairs, y: Arrays) -> Arrays:
        m = pairs.index.shape[0]
        # Optimization barrier: the compiler would compute all of `y` again for each gather from it.
        y = jax.lax.optimization_barrier(y)
        index, rows = _transpose(pairs.index), pairs.row_of_place
        present = index < m
        partners = jnp.where(present, index, 0)
        if rows is not None:
            partners = rows.at[partners].get(mode="promise_in_bounds")
        other_end = _transpose(pairs.reverse) * m + partners

        def of_leaf(y: Float[Array, "k c ..."]) -> Float[Array, "m ..."]:
            # The rows of copies are not summed here, but on the device that owns them.
            y = jnp.pad(y, [(0, 0), (0, m - y.shape[1]), *[(0, 0)] * (y.ndim - 2)])
            flat = y.reshape(-1, *y.shape[2:])
            others = flat.at[other_end].get(mode="promise_in_bounds")
            others = others - y if self.from_own else others
            total = jnp.sum(jnp.where(_like(present, others), others, 0), axis=0)
            return total.at[pairs.row_of_particle].get(
                mode="promise_in_bounds", unique_indices=True
            )

        return tuple(map(of_leaf, y))


def _transpose(x: Int[Array, "c k"]) -> Int[Array, "k c"]:
    # Barrier: the compiler would read columns, number by number, in every pass.
    return jax.lax.optimization_barrier(x.T)


def _like(mask: Array, x: Array) -> Array:
    return mask.reshape(*mask.shape, *(1,) * (x.ndim - 2))
