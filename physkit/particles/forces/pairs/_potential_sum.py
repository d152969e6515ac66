"""Several pair potentials in one pass over the pairs."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import static

from ..potentials import AbstractPairPotential
from ._truncation import AbstractTruncated


class PotentialSum(AbstractPairPotential):
    """A potential between charges, and others within the same cutoff: one list, and one pass over the pairs.

    - `coulomb`: energy per product of charges, with a plain cutoff.
    - `others`: `Pairwise` forces, of which only potentials and truncations count here; `term_names`: theirs.
    """

    charged: ClassVar[bool] = True

    coulomb: AbstractPairPotential
    others: tuple[Any, ...]
    term_names: tuple[str | None, ...] = static(default=(), repr=False, metadata={"label": True})

    @property
    def parts(self) -> tuple[AbstractPairPotential, ...]:
        """All potentials."""
        return self.coulomb, *(other.potential for other in self.others)

    @property
    def species(self) -> int | None:
        return max((p.species for p in self.parts if p.species is not None), default=None)

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        """That of two unit charges."""
        return sum((p.energy(r) for p in self.parts), jnp.zeros_like(r))

    def in_charge_unit(self, unit: Float[Array, ""]) -> "PotentialSum | None":
        scaled = self.coulomb.in_charge_unit(unit)
        return None if scaled is None else PotentialSum(scaled, self.others, self.term_names)


class TruncatedSum(AbstractTruncated):
    """The parts of a `PotentialSum`, each with its own truncation; without charges as that of unit charges."""

    potential: AbstractPairPotential
    parts: tuple[AbstractTruncated, ...]

    def term(
        self, is_energy: bool, r2: Float[Array, "..."], charges: Float[Array, "..."] | None
    ) -> Float[Array, "..."]:
        first, *rest = (
            part.term(is_energy, r2, charges if part.potential.charged else None)
            for part in self.parts
        )
        return sum(rest, first)

    def energy(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.term(True, r2, jnp.ones_like(r2))

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.term(False, r2, jnp.ones_like(r2))

    def between(self, i: Int[Array, "..."], j: Int[Array, "..."]) -> "TruncatedSum":
        return TruncatedSum(self.potential, tuple(part.between(i, j) for part in self.parts))
