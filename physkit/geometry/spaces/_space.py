"""What every space can answer."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, replace_fields
from physkit.parallel import AbstractComm

Components = tuple[Array, ...]


class AbstractSpace(Module):
    """Extent and periodicity of the space that particles live in, and the devices it is cut over.

    Lengths are in the user's unit; `d` is the number of axes. A space answers questions about
    images (`displacement`, `wrap`), about itself (`volume`, `cell`, `max_cutoff`) and about the
    whole domain (`sum`, `max`), so that physics never mentions devices.
    """

    comm: eqx.AbstractVar[AbstractComm]

    @abc.abstractmethod
    def periodic_axes(self, dimension: int) -> tuple[bool, ...]:
        """Which axes repeat."""

    @abc.abstractmethod
    def cell(self, dimension: int) -> Float[Array, "d d"] | None:
        """Lattice vectors as rows; entries of open axes mean nothing. None if no axis repeats."""

    def basis(self, dimension: int) -> Float[Array, "d d"] | None:
        """Lattice vectors, as short as there are, along which a neighbor search cuts its cells."""
        return self.cell(dimension)

    @abc.abstractmethod
    def minimum_image(self, difference: Components) -> Components:
        """Fold a difference vector, given by components, to its nearest image.

        Right for every pair closer than `max_cutoff`; this is what inner loops use.
        """

    @abc.abstractmethod
    def wrap_with_image(
        self, x: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n d"], Int[Array, "n d"]]:
        """`x` inside the cell, and how many cells it was outside along each lattice vector."""

    @property
    @abc.abstractmethod
    def volume(self) -> Float[Array, ""]:
        """Length, area or volume of the cell; infinite if an axis is open."""

    @abc.abstractmethod
    def max_cutoff(self, dimension: int) -> Float[Array, ""]:
        """The largest cutoff for which every pair has one nearest image only."""

    @abc.abstractmethod
    def is_degenerate(self) -> Bool[Array, ""]:
        """Whether the extent is not positive."""

    def displacement(
        self, a: Float[Array, "*#n d"], b: Float[Array, "*#n d"]
    ) -> Float[Array, "..."]:
        """a − b by the shortest way; shapes broadcast."""
        difference = a - b
        parts = tuple(difference[..., k] for k in range(difference.shape[-1]))
        return jnp.stack(self.minimum_image(parts), axis=-1)

    def wrap(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """`x` inside the cell."""
        return self.wrap_with_image(x)[0]

    def unwrap(self, x: Float[Array, "n d"], image: Int[Array, "n d"]) -> Float[Array, "n d"]:
        """Where particles would be had they never been folded back."""
        cell = self.cell(x.shape[-1])
        if cell is None:
            return x
        return x + jnp.matmul(image.astype(x.dtype), cell, precision="highest")

    def sum(self, x: Any) -> Any:
        """The sum of a device's `x` over the whole domain."""
        return self.comm.psum(x)

    def max(self, x: Any) -> Any:
        """The largest of the devices' `x`."""
        return self.comm.pmax(x)


def with_comm(tree: Any, comm: AbstractComm) -> Any:
    """`tree` with this communicator in every space: on the way into a program for many devices, and out."""
    is_space = lambda x: isinstance(x, AbstractSpace)
    placed = lambda x: replace_fields(x, {"comm": comm}) if is_space(x) else x
    return jax.tree.map(placed, tree, is_leaf=is_space)
