"""The contract of many-body potentials."""

import abc

from jaxtyping import Array, Float

from physkit.core import DeclarationError, Module

from ._neighborhoods import Neighborhoods


class AbstractManyBodyPotential(Module):
    """The energy of a particle as a function of its neighbors. A new one needs `site_energies` and `cutoff`.

        class Cohesion(pk.AbstractManyBodyPotential):
            decay: Array = pk.param(1.0)
            cutoff = 3.0

            def site_energies(self, near):
                density = near.sum(jnp.exp(-self.decay * near.distance) * (3.0 - near.distance) ** 2)
                return -jnp.sqrt(density + 1e-6)

    The energy must go to 0 smoothly at the cutoff. It must not depend on the order of the neighbors.

    Where a particle must know what its neighbors know of theirs (message passing), say how many times in
    `num_passes`, and write `features`.
    """

    @property
    @abc.abstractmethod
    def cutoff(self) -> float | Float[Array, ""]:
        """The distance at which neighbors stop to matter, length; it may depend on parameters."""

    @property
    def num_species(self) -> int | None:
        """How many species it has tables for; None if it does not ask for species."""
        return None

    @property
    def species_names(self) -> tuple[str, ...] | None:
        """The elements that its tables are of, by species; None where nobody has named them."""
        return None

    @property
    def uses_pairs_of_neighbors(self) -> bool:
        """Whether it computes arrays `[k k c]`; blocks are then smaller."""
        return True

    @property
    def num_passes(self) -> int:
        """How often `features` are computed from those of the neighbors before `site_energies`."""
        return 0

    def features(self, near: Neighborhoods, number: int) -> Float[Array, "c f"]:
        """What neighbors see of each particle after pass `number`, from 0: the next one's `near.features`."""
        raise DeclarationError(
            f"{type(self).__name__} has num_passes = {self.num_passes}: write features(near, number)"
        )

    @abc.abstractmethod
    def site_energies(self, near: Neighborhoods) -> Float[Array, " c"]:
        """The energy of each particle of a block; the sum over all particles is the energy."""
