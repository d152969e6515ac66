"""A pair potential between given pairs: the scaled interactions of neighbors along a molecule."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, safe_norm, static

from ..._arguments import Numbers
from ..._particles import Particles
from .._species import poison_unknown_species
from ..pairs._pair_kernels import (
    depends_on_species,
    require_pair_properties,
    with_charge_unit,
)
from ..potentials import AbstractPairPotential
from ..potentials._potential import with_symmetric_tables
from ._bonded import Vectors
from ._bonds import AbstractBonds
from ._local_tuples import LocalTuples
from ._tuples import Tuples


class SpecialPairs(AbstractBonds):
    """The same potential between given pairs of particles, scaled, without a cutoff: 1–4 interactions.

        U = Σ s U(r),   for charges s qᵢ qⱼ U(r)

    Beside `Pairwise(…, exclude=pairs)`, which leaves these pairs out.

    **Arguments:**

    - `pairs`: `[m 2]` whole numbers: the places of the two particles in the particle arrays.
    - `potential`: `LennardJones(…)`, `Coulomb(…)` or your own `AbstractPairPotential`; its charges and tables
      by species are those of the particles.
    - `scale`: s; a scalar, or `[m]` by pair.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ParameterError` for a potential whose charges or species the particles lack, and for places
    that do not exist.

    **Good values:** AMBER: 1/2 for Lennard-Jones and 1/1.2 for charges; OPLS: 1/2 for both; CHARMM: 1.

    **Reference:** Cornell et al., J. Am. Chem. Soc. 117, 5179 (1995); for special pairs as a concept, the
    LAMMPS manual, special_bonds.
    """

    tuples: Tuples
    potential: AbstractPairPotential
    scale: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self,
        pairs: Numbers,
        potential: AbstractPairPotential,
        scale: Numbers = 1.0,
        component: str | None = None,
    ):
        self.potential = potential
        self._set(pairs, {"scale": scale}, component)

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        potential, unit = with_charge_unit(self.potential, local.particles)
        scale = local.parameters(self.scale)
        if local.particles.species is not None and depends_on_species(potential):
            for species in local.species():
                scale = poison_unknown_species(scale, species, potential.species)
            potential = with_symmetric_tables(potential).between(*local.species())
        # Entries that fill arrays are at distance 0, where potentials are infinite.
        r = jnp.where(local.is_used, safe_norm(vectors[0]), 1)
        energy = scale * potential.energy(r)
        if not self.potential.charged:
            return energy
        first, second = local.charges() if unit is None else local.charges() / unit
        return energy * first * second

    def require_valid(self, particles: Particles) -> None:
        super().require_valid(particles)
        require_pair_properties(particles, self.potential)
