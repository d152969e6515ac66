"""The halo: copies of the particles on neighboring devices that are near this device's slab."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, PyTree, data, nonzero_indices
from physkit.geometry import Slab

from ._ownership import Ownership


class Halo(Module):
    """Which of this device's rows are sent to the devices above and below.

    Chosen when a neighbor list is built; after that only the arrays are exchanged.

    **Arguments:**

    - `above`, `below`: `[m]`, the rows sent to either; entries that are not used hold the number of rows.
    - `required`: the capacity that this halo needs: the larger count of particles to send to one side.
    """

    above: Int[Array, "*b m"] = data()
    below: Int[Array, "*b m"] = data()
    required: Int[Array, "*b"] = data()

    @property
    def capacity(self) -> int:
        """How many rows can be sent to one side."""
        return self.above.shape[-1]

    @staticmethod
    def of(
        position: Float[Array, "n d"],
        ownership: Ownership,
        slab: Slab,
        reach: Float[Array, ""],
        capacity: int,
    ) -> "Halo":
        """The halo of particles within `reach` of a face of the slab, or beyond it."""
        x = slab.unwrap_along_axis(jax.lax.stop_gradient(position))
        outside_above, outside_below = slab.distance_outside(x)
        # The first and the last slab of a box with walls have nobody to send to on one side.
        near_above = ownership.mask & (outside_above > -reach) & ~slab.is_last
        near_below = ownership.mask & (outside_below > -reach) & ~slab.is_first
        near = near_above, near_below
        rows = [nonzero_indices(which, capacity) for which in near]
        required = jnp.maximum(*(jnp.sum(which, dtype=jnp.int32) for which in near))
        return Halo(*rows, required)

    def exchange(self, slab: Slab, arrays: PyTree) -> PyTree:
        """This device's rows of `arrays`, then those received from below and from above: `[n + 2m …]`."""
        leaves, tree = jax.tree.flatten(arrays)
        out = list(leaves)
        # One message a side for all arrays of one dtype and shape: messages cost more than bytes. In the order
        # of the leaves: a set has another order in each process, whose messages would not match.
        for kind in dict.fromkeys((x.dtype, x.shape[1:]) for x in leaves):
            members = [i for i, x in enumerate(leaves) if (x.dtype, x.shape[1:]) == kind]
            stacked = jnp.stack([leaves[i] for i in members])  # (arrays, particles, …)
            # What goes up arrives from below. Entries that are not used are clipped to the last row: they
            # travel, but no list names the rows that they arrive in.
            from_below = slab.ring_shift(stacked.at[:, self.above].get(mode="clip"), 1)
            from_above = slab.ring_shift(stacked.at[:, self.below].get(mode="clip"), -1)
            extended = jnp.concatenate([stacked, from_below, from_above], axis=1)
            for k, i in enumerate(members):
                out[i] = extended[k]
        return jax.tree.unflatten(tree, out)

    def extended_positions(
        self, position: Float[Array, "n d"], ownership: Ownership, slab: Slab
    ) -> tuple[Float[Array, "m d"], Bool[Array, " m"]]:
        """Positions, unwrapped along the cut axis, of local and received rows; and which hold a particle."""
        axis, m, n = slab.axis, self.capacity, ownership.num_slots
        position = jax.lax.stop_gradient(position)
        position = position.at[:, axis].set(slab.unwrap_along_axis(position))
        is_sent_above = slab.ring_shift(self.above < n, 1) & slab.has_neighbor(1)
        is_sent_below = slab.ring_shift(self.below < n, -1) & slab.has_neighbor(-1)
        mask = jnp.concatenate([ownership.mask, is_sent_above, is_sent_below])
        # Across the end of a periodic box, copies arrive a box length away from this slab.
        no_offset = jnp.zeros(n, position.dtype)
        offsets = (jnp.broadcast_to(slab.image_offset(by), (m,)) for by in (1, -1))
        extended = self.exchange(slab, position)
        extended = extended.at[:, axis].add(jnp.concatenate([no_offset, *offsets]))
        # Put empty rows at the mean position: anywhere else they could widen the extent that cells cover.
        is_present = mask[:, None]
        count = jnp.maximum(jnp.sum(mask), 1).astype(position.dtype)
        center = jnp.sum(jnp.where(is_present, extended, 0), axis=0) / count
        return jnp.where(is_present, extended, center[None]), mask
