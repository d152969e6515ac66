"""Space without bounds."""

import jax.numpy as jnp

from physkit.core import static
from physkit.parallel import AbstractComm, SerialComm

from ._space import AbstractSpace, Components


class Free(AbstractSpace):
    """Unbounded space of any dimension: displacements are differences, and nothing is wrapped.

    Over devices it has no parts: what is in it is on all of them.
    """

    comm: AbstractComm = static(default=SerialComm())

    def with_comm(self, comm: AbstractComm) -> "Free":
        del comm
        return self  # sums over devices would count what is on each of them once per device

    def periodic_axes(self, dimension: int) -> tuple[bool, ...]:
        return (False,) * dimension

    def cell(self, dimension: int):
        del dimension

    def minimum_image(self, difference: Components) -> Components:
        return difference

    def wrap_with_image(self, x):
        return x, jnp.zeros(x.shape, jnp.int32)

    @property
    def volume(self):
        return jnp.asarray(jnp.inf)

    def max_cutoff(self, dimension: int):
        del dimension
        return jnp.asarray(jnp.inf)

    def is_degenerate(self):
        return jnp.array(False)
