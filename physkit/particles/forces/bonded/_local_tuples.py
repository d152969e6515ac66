"""Tuples with the particles that they name, as energies of bonds and angles see them."""

from dataclasses import dataclass

from jaxtyping import Array, Bool, Float, Int

from physkit.core import ParameterError

from ..._particles import Particles
from ._sharded_tuples import ShardedTuples
from ._tuples import Tuples


@dataclass(frozen=True)
class LocalTuples:
    """The tuples that this device computes: all of them, or over devices those of its own particles."""

    tables: Tuples | ShardedTuples
    particles: Particles

    def parameters(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """A parameter of these tuples, from one for all tuples or one for each."""
        return self.tables.local_parameters(x)

    def integers(self, x: Int[Array, " m"]) -> Int[Array, " l"]:
        """Whole numbers of these tuples, from those of all."""
        return self.tables.local_integers(x)

    def vectors(self, differences: tuple[tuple[int, int], ...]) -> tuple[Float[Array, "l d"], ...]:
        """x_a − x_b by the nearest image, for each (a, b)."""
        members = self.tables.members(self.particles.position, self.particles)
        displacement = self.particles.space.displacement
        return tuple(displacement(members[a], members[b]) for a, b in differences)

    def charges(self) -> Float[Array, "k l"]:
        """Charges of the first, second, … members.

        **Errors:** `ParameterError` for particles without charge.
        """
        charge = self.particles.charge
        if charge is None:
            raise ParameterError("this force acts between charges: give Particles(…, charge=…)")
        return self.tables.members(charge[:, None], self.particles)[:, :, 0]

    def species(self) -> Int[Array, "k l"]:
        """Species of the first, second, … members.

        **Errors:** `ParameterError` for particles without species.
        """
        species = self.particles.species
        if species is None:
            raise ParameterError("this force has tables by species: give Particles(…, species=…)")
        return self.tables.member_integers(species, self.particles)

    @property
    def is_used(self) -> Bool[Array, " l"]:
        """Which of these are tuples at all; the rest fills arrays."""
        return self.tables.is_used

    def sum_forces(self, forces: Float[Array, "k l d"]) -> Float[Array, "n d"]:
        """The force on each particle, from the forces on the members of tuples."""
        return self.tables.sum_forces(forces, self.particles)

    def weight_by_ownership(self, x: Float[Array, "l ..."]) -> Float[Array, "l ..."]:
        """`x` by tuple, weighted so that a sum over all devices counts every tuple once."""
        return self.tables.weight_by_ownership(x)
