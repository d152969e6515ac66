"""Which particles of the devices next to this one are near its slab, and what they are now."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data, nonzero_indices
from physkit.geometry import Slab

from .._particles import Particles


class Halo(Module):
    """Rows of this device's particles that the devices above and below are told of.

    Chosen when a list is built; after that only what changes is sent.

    **Arguments:**

    - `above`, `below`: `[m]` rows; their number where there are no more.
    - `required`: how many there were to send to one side.
    """

    above: Int[Array, "*b m"] = data()
    below: Int[Array, "*b m"] = data()
    required: Int[Array, "*b"] = data()

    @property
    def capacity(self) -> int:
        """How many can be sent to one side."""
        return self.above.shape[-1]

    @staticmethod
    def of(particles: Particles, slab: Slab, reach: Float[Array, ""], capacity: int) -> "Halo":
        """Those within `reach` of a side of the slab, or beyond it."""
        alive = particles.mask
        assert alive is not None
        past, short = slab.distance_outside(
            slab.unwrap_along_axis(jax.lax.stop_gradient(particles.position))
        )
        near = alive & (past > -reach) & ~slab.last, alive & (short > -reach) & ~slab.first
        rows = [nonzero_indices(which, capacity) for which in near]
        most = jnp.maximum(*(jnp.sum(which, dtype=jnp.int32) for which in near))
        return Halo(*rows, most)

    def joined(self, slab: Slab, arrays: Any) -> Any:
        """Own rows of `arrays`, and behind them those of the devices below and above: `[n + 2m …]`."""
        leaves, tree = jax.tree.flatten(arrays)
        out: list[Any] = list(leaves)
        # One message a side for all arrays of a kind.
        for kind in {(x.dtype, x.shape[1:]) for x in leaves}:
            places = [i for i, x in enumerate(leaves) if (x.dtype, x.shape[1:]) == kind]
            stacked = jnp.stack([leaves[i] for i in places])
            read = lambda rows, stacked=stacked: stacked.at[:, rows].get(mode="clip")
            below, above = (
                slab.ring_shift(read(self.above), 1),
                slab.ring_shift(read(self.below), -1),
            )
            whole = jnp.concatenate([stacked, below, above], axis=1)
            for k, i in enumerate(places):
                out[i] = whole[k]
        return jax.tree.unflatten(tree, out)

    def unwrap_along_axis(
        self, slab: Slab, particles: Particles
    ) -> tuple[Float[Array, "n d"], Array]:
        """Positions in line of own particles and those told of, and which rows hold one."""
        alive, axis = particles.mask, slab.axis
        assert alive is not None
        position = jax.lax.stop_gradient(particles.position)
        position = position.at[:, axis].set(slab.unwrap_along_axis(position))
        m, n = self.capacity, particles.num_slots
        there = jnp.concatenate(
            [
                alive,
                slab.ring_shift(self.above < n, 1) & slab.has_neighbor(1),
                slab.ring_shift(self.below < n, -1) & slab.has_neighbor(-1),
            ]
        )
        carried = jnp.concatenate(
            [
                jnp.zeros(n, position.dtype),
                jnp.broadcast_to(slab.image_offset(1), (m,)),
                jnp.broadcast_to(slab.image_offset(-1), (m,)),
            ]
        )
        whole = self.joined(slab, position)
        whole = whole.at[:, axis].add(carried)
        # Empty rows lie among the others, so that they do not widen what cells are made for.
        shown: Bool[Array, "n 1"] = there[:, None]
        held = jnp.maximum(jnp.sum(there), 1).astype(position.dtype)
        middle = jnp.sum(jnp.where(shown, whole, 0), axis=0) / held
        return jnp.where(shown, whole, middle[None]), there
