"""Slabs: the parts of a box along one axis, one per device, over which particles are sharded."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import DeclarationError, Module, PyTree, data, static
from physkit.parallel import AbstractComm

from ._box import Box
from ._space import AbstractSpace


def slab_axis(devices: tuple[int, ...]) -> int:
    """The axis along which a grid of devices has more than one: particles are sharded along it.

    **Errors:** `DeclarationError` where there are several such axes.
    """
    sharded_axes = [k for k, n in enumerate(devices) if n > 1]
    if len(sharded_axes) > 1:
        raise DeclarationError(
            f"particles are cut into slabs, along one axis; devices={devices} cuts {len(sharded_axes)}: "
            f"give, e.g., devices={(*(1,) * sharded_axes[0], math.prod(devices))}"
        )
    return sharded_axes[0] if sharded_axes else 0


def require_box(space: AbstractSpace) -> Box:
    """Return `space`, which must be a box: slabs need an extent, and sides at right angles.

    **Errors:** `DeclarationError` for any other space.
    """
    if not isinstance(space, Box):
        raise DeclarationError(
            f"particles in {type(space).__name__} cannot be sharded over devices, only those in a Box; "
            "for open space give their extent: Box(lengths, periodic=False)"
        )
    return space


class Slab(Module):
    """One device's slab of a box; all slabs are equally wide.

    Positions along the sharded axis are *unwrapped* about the slab where the box is periodic: particles that
    are near the slab, also across an end of the box, then have coordinates near those of the slab.

    **Arguments:**

    - `lower`, `width`, `length`: where the slab begins, its width, and the box's length along the axis.
    - `is_first`, `is_last`: whether the slab is at the lower or upper end of a box that is not periodic.
    - `axis`, `periodic`: the sharded axis, and whether the box is periodic along it.
    - `comm`: the communicator of the devices that hold the slabs.
    """

    lower: Float[Array, ""] = data()
    width: Float[Array, ""] = data()
    length: Float[Array, ""] = data()
    is_first: Bool[Array, ""] = data()
    is_last: Bool[Array, ""] = data()
    axis: int = static()
    periodic: bool = static()
    comm: AbstractComm = static()

    @staticmethod
    def of(space: AbstractSpace, axis: int) -> "Slab":
        """This device's slab of `space`, along `axis`."""
        box, comm = require_box(space), space.comm
        # Ownership is a decision without a derivative.
        length = jax.lax.stop_gradient(box.lengths[axis])
        count, index = comm.axis_size(axis), jnp.asarray(comm.axis_index(axis))
        width, periodic = length / count, box.periodic[axis]
        is_first, is_last = (index == 0) & (not periodic), (index == count - 1) & (not periodic)
        lower = index.astype(length.dtype) * width
        return Slab(lower, width, length, is_first, is_last, axis, periodic, comm)

    @property
    def center(self) -> Float[Array, ""]:
        """The middle of the slab."""
        return self.lower + self.width / 2

    def unwrap_along_axis(self, position: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Coordinates along the sharded axis; in a periodic box the images nearest to the slab's center."""
        x = position[:, self.axis]
        if not self.periodic:
            return x
        return x - self.length * jnp.round((x - self.center) / self.length)

    def distance_outside(
        self, x: Float[Array, " n"]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Distances of unwrapped coordinates past the upper and past the lower side; negative inside."""
        above, below = x - (self.lower + self.width), self.lower - x
        # The outermost slabs of a box that is not periodic own everything beyond its ends: no particle is
        # outside there.
        inside = -self.width
        return jnp.where(self.is_last, inside, above), jnp.where(self.is_first, inside, below)

    def ring_shift(self, tree: PyTree, by: int) -> PyTree:
        """The `tree` of the slab `by` places below; all slabs send theirs."""
        return self.comm.ring_shift(tree, self.axis, by)

    def ring_shift_packed(self, tree: PyTree, by: int) -> PyTree:
        """`ring_shift` of arrays `[m …]`, packed into one message per dtype: few messages cost less than many.

        Floats and numbers of 8 bytes keep their dtype; others (bools, small integers) travel as int32.
        """
        leaves, form = jax.tree.flatten(tree)
        out = list(leaves)

        def sent_dtype(x: Array) -> str:
            keeps = jnp.issubdtype(x.dtype, jnp.floating) or x.dtype.itemsize == 8
            return jnp.dtype(x.dtype if keeps else jnp.int32).name

        for dtype in sorted({sent_dtype(x) for x in leaves}):
            same_dtype = [i for i, x in enumerate(leaves) if sent_dtype(x) == dtype]
            # (m, columns), side by side.
            columns = [leaves[i].reshape(len(leaves[i]), -1).astype(dtype) for i in same_dtype]
            received = self.ring_shift(jnp.concatenate(columns, axis=1), by)
            ends = np.cumsum([x.shape[1] for x in columns])[:-1].tolist()
            for i, x in zip(same_dtype, jnp.split(received, ends, axis=1), strict=True):
                out[i] = x.reshape(leaves[i].shape).astype(leaves[i].dtype)
        return jax.tree.unflatten(form, out)

    def has_neighbor(self, by: int) -> Bool[Array, ""]:
        """Whether there is a slab `by` (1 or −1) places below; in a periodic box there always is."""
        return ~(self.is_first if by > 0 else self.is_last)

    def image_offset(self, by: int) -> Float[Array, ""]:
        """What to add to unwrapped coordinates that arrive from `by` (1 or −1) places below."""
        index, count = jnp.asarray(self.comm.axis_index(self.axis)), self.comm.axis_size(self.axis)
        # Only what comes across an end of the box is on another image.
        crosses = index == (0 if by > 0 else count - 1)
        return jnp.where(crosses & self.periodic, -by * self.length, jnp.zeros_like(self.length))

    def open_box(self, space: AbstractSpace) -> Box:
        """The box for unwrapped coordinates: not periodic along the sharded axis, and on one device."""
        box = require_box(space)
        return Box(box.lengths, tuple(a and k != self.axis for k, a in enumerate(box.periodic)))
