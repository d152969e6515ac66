"""A neighbor list as networks of other packages want it: the edges of a graph."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data

from ..._particles import Particles
from ...neighbors import ListedPairs
from ..pairs._pair_cache import PairCache
from ._partners import by_particle, displacements


class Edges(Module):
    """All pairs closer than the cutoff, each from both its ends, and places for more.

    - `receivers`, `senders`: particles i and j, `[e]`. `vectors`: x_j − x_i by the nearest image, `[e d]`.
    - `present`: `[e]`, which edges there are. The others lead from a particle to itself and are as long as the
      cutoff, where every smooth energy ends; leave them out of what does not end there.
    - `index`: `[n k]`, the same pairs as a table: the neighbors of each particle, n where there is none. It
      holds those in the skin of the list, too. jax-md calls it `idx`.

    As many as `index` has places: k is the capacity of the list.
    """

    receivers: Int[Array, " e"] = data()
    senders: Int[Array, " e"] = data()
    vectors: Float[Array, "e d"] = data()
    present: Bool[Array, " e"] = data()
    index: Int[Array, "n k"] = data()

    @staticmethod
    def of(particles: Particles, cache: PairCache, cutoff: float) -> "Edges":
        """The edges between particles where they are now, of an up-to-date list."""
        pairs = cache.pairs
        assert isinstance(pairs, ListedPairs)
        n, d = particles.position.shape
        x = tuple(particles.position[:, a] for a in range(d))
        components = tuple(y.T for y in displacements(x, particles.space, pairs))
        r2 = sum(y * y for y in components)
        listed = pairs.index < n
        present = listed & (r2 < cutoff**2)
        ends = jnp.zeros(d, particles.position.dtype).at[0].set(cutoff)
        vectors = jnp.where(present[..., None], jnp.stack(components, axis=-1), ends)
        partners = jnp.where(listed, jnp.take(pairs.order, pairs.index, mode="clip"), n)
        vectors = by_particle(vectors, pairs)
        present, partners = present[pairs.row_of_particle], partners[pairs.row_of_particle]
        receivers = jnp.broadcast_to(jnp.arange(n, dtype=partners.dtype)[:, None], partners.shape)
        senders = jnp.where(present, partners, receivers)
        flat = receivers.reshape(-1), senders.reshape(-1), vectors.reshape(-1, d)
        return Edges(*flat, present.reshape(-1), partners)
