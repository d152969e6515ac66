"""Slabs: how a box is divided over devices for particles that move about in it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import DeclarationError, Module, data, static
from physkit.parallel import AbstractComm

from ._box import Box
from ._space import AbstractSpace


def slab_axis(devices: tuple[int, ...]) -> int:
    """The axis that particles are cut along over a grid of devices: the one with more than one of them.

    **Errors:** `DeclarationError` where there are several.
    """
    cut = [k for k, n in enumerate(devices) if n > 1]
    if len(cut) > 1:
        raise DeclarationError(
            f"particles are cut into slabs, along one axis; devices={devices} cuts {len(cut)}: give, "
            f"e.g., devices={(*(1,) * cut[0], _product(devices))}"
        )
    return cut[0] if cut else 0


def require_box(space: AbstractSpace) -> Box:
    """**Errors:** `DeclarationError` for a space that has no extent to be cut, or no straight sides."""
    if not isinstance(space, Box):
        raise DeclarationError(
            f"particles in {type(space).__name__} cannot be cut over devices, only those in a Box; "
            "where nothing repeats, Box(lengths, periodic=False) says how far they reach"
        )
    return space


class Slab(Module):
    """One device's slab of a box, as wide as those of all others.

    Positions *in line* are those along the cut axis without the fold at the ends of the box: those of
    particles that are near the slab lie next to one another.

    **Arguments:**

    - `lower`, `width`, `length`: where it begins, how wide it is, and the box's extent along its axis.
    - `is_first`, `is_last`: whether the box ends with it, and is not periodic.
    - `axis`, `periodic`: the sharded axis, and whether the box is periodic along it.
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
        """This device's slab."""
        box, comm = require_box(space), space.comm
        length = jax.lax.stop_gradient(box.lengths[axis])
        count, place = comm.axis_size(axis), jnp.asarray(comm.axis_index(axis))
        width, periodic = length / count, box.periodic[axis]
        first, last = (place == 0) & (not periodic), (place == count - 1) & (not periodic)
        lower = place.astype(length.dtype) * width
        return Slab(lower, width, length, first, last, axis, periodic, comm)

    @property
    def center(self) -> Float[Array, ""]:
        """The middle of the slab."""
        return self.lower + self.width / 2

    def unwrap_along_axis(self, position: Float[Array, "n d"]) -> Float[Array, " n"]:
        """Positions along the cut axis, counted on beyond the ends of a box that repeats."""
        x = position[:, self.axis]
        if not self.periodic:
            return x
        return x - self.length * jnp.round((x - self.center) / self.length)

    def distance_outside(
        self, x: Float[Array, " n"]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """How far positions in line are past the upper side and past the lower one; less than 0 inside."""
        above, below = x - (self.lower + self.width), self.lower - x
        nowhere = -self.width
        return jnp.where(self.is_last, nowhere, above), jnp.where(self.is_first, nowhere, below)

    def ring_shift(self, tree: Any, by: int) -> Any:
        """What arrives from the slab `by` places below, if all send their `tree`."""
        return self.comm.ring_shift(tree, self.axis, by)

    def ring_shift_packed(self, tree: Any, by: int) -> Any:
        """The same of arrays `[m …]`, in one message for all that are floats and one for the others."""
        leaves, form = jax.tree.flatten(tree)
        out = list(leaves)

        def sent_dtype(x: Array) -> str:
            keeps = jnp.issubdtype(x.dtype, jnp.floating) or x.dtype.itemsize == 8
            return jnp.dtype(x.dtype if keeps else jnp.int32).name

        for dtype in sorted({sent_dtype(x) for x in leaves}):
            those = [i for i, x in enumerate(leaves) if sent_dtype(x) == dtype]
            columns = [leaves[i].reshape(len(leaves[i]), -1).astype(dtype) for i in those]
            received = self.ring_shift(jnp.concatenate(columns, axis=1), by)
            ends = np.cumsum([x.shape[1] for x in columns])[:-1].tolist()
            for i, x in zip(those, jnp.split(received, ends, axis=1), strict=True):
                out[i] = x.reshape(leaves[i].shape).astype(leaves[i].dtype)
        return jax.tree.unflatten(form, out)

    def has_neighbor(self, by: int) -> Bool[Array, ""]:
        """Whether there is a slab `by` (1 or −1) places below, across the end of a box that repeats, too."""
        return ~(self.is_first if by > 0 else self.is_last)

    def image_offset(self, by: int) -> Float[Array, ""]:
        """What positions in line that arrive from `by` places below are to be moved by, to lie in line."""
        here, count = jnp.asarray(self.comm.axis_index(self.axis)), self.comm.axis_size(self.axis)
        crosses = here == (0 if by > 0 else count - 1)
        return jnp.where(crosses & self.periodic, -by * self.length, jnp.zeros_like(self.length))

    def open_box(self, space: AbstractSpace) -> Box:
        """The box in line: it does not repeat along the cut axis any more, and knows no devices."""
        box = require_box(space)
        return Box(box.lengths, tuple(a and k != self.axis for k, a in enumerate(box.periodic)))


def _product(devices: tuple[int, ...]) -> int:
    total = 1
    for n in devices:
        total *= n
    return total
