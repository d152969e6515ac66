"""`AbstractSpace`: images, extent and sums over a domain, as every space answers for them."""

import abc

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import DeclarationError, PyTree, matmul

from ._domain import AbstractDomain

Components = tuple[Array, ...]  # the components of a vector, one array each


class AbstractSpace(AbstractDomain):
    """Extent and periodicity of the space that particles live in, and its communicator.

    Lengths are in the user's unit; `d` is the number of axes. A space answers questions about images
    (`displacement`, `wrap`), about itself (`volume`, `cell`, `max_cutoff`) and about the whole domain (`sum`,
    `max`), so that physics never mentions devices.
    """

    @abc.abstractmethod
    def periodic_axes(self, dimension: int) -> tuple[bool, ...]:
        """Whether each axis is periodic."""

    @abc.abstractmethod
    def cell(self, dimension: int) -> Float[Array, "d d"] | None:
        """Lattice vectors as rows; those of open axes have no meaning. None if no axis is periodic."""

    def edge_lengths(self, dimension: int) -> Float[Array, " d"] | None:
        """Lengths of the lattice vectors where these lie along the axes of space; None where they need not.

        What a matrix of vectors is inverted for is then a division.
        """
        del dimension
        return None

    def basis(self, dimension: int) -> Float[Array, "d d"] | None:
        """Short lattice vectors of the same lattice, along which a neighbor search divides space into cells."""
        return self.cell(dimension)

    @abc.abstractmethod
    def minimum_image(self, difference: Components) -> Components:
        """The nearest image of a difference vector, given by its components, for inner loops.

        It is right for every pair closer than `max_cutoff`.
        """

    @abc.abstractmethod
    def wrap_with_image(
        self, x: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n d"], Int[Array, "n d"]]:
        """`x` wrapped into the cell, and the number of cells by which it was outside, per lattice vector."""

    @property
    @abc.abstractmethod
    def volume(self) -> Float[Array, ""]:
        """Length, area or volume of the cell, with open axes as long as the box says; infinite without one."""

    @abc.abstractmethod
    def max_cutoff(self, dimension: int) -> Float[Array, ""]:
        """The largest cutoff within which no pair has more than one image."""

    @abc.abstractmethod
    def is_degenerate(self) -> Bool[Array, ""]:
        """Whether the extent is not positive."""

    def displacement(
        self, a: Float[Array, "*#n d"], b: Float[Array, "*#n d"]
    ) -> Float[Array, "..."]:
        """The nearest image of a − b; shapes broadcast."""
        difference = a - b
        components = tuple(difference[..., k] for k in range(difference.shape[-1]))
        return jnp.stack(self.minimum_image(components), axis=-1)

    def wrap(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """`x` wrapped into the cell."""
        return self.wrap_with_image(x)[0]

    def unwrap(self, x: Float[Array, "n d"], image: Int[Array, "n d"]) -> Float[Array, "n d"]:
        """The inverse of `wrap_with_image`: positions as if they had never been wrapped."""
        cell = self.cell(x.shape[-1])
        if cell is None:
            return x
        # Accelerators would round the factors of float32 products to fewer bits by default.
        return x + matmul(image.astype(x.dtype), cell)

    def stretch(self, matrix: Float[Array, "d d"]) -> "AbstractSpace":
        """This space after x → M x; one whose axes stay at right angles takes the diagonal of M alone.

        **Errors:** `DeclarationError` for a space without a size.
        """
        del matrix
        raise DeclarationError(f"{type(self).__name__} has no size that could change")

    def detached(self) -> "AbstractSpace":
        """This space as a constant to derivatives, for what only chooses (which pairs are neighbors)."""
        return jax.tree.map(jax.lax.stop_gradient, self)

    def sum(self, x: PyTree) -> PyTree:
        """The sum over devices of `x`, which each has summed over its part of the domain."""
        return self.comm.psum(x)

    def max(self, x: PyTree) -> PyTree:
        """The largest of the devices' `x`."""
        return self.comm.pmax(x)
