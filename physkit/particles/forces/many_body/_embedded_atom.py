"""The embedded-atom method: metals."""

import numpy as np
from jaxtyping import Array, Float

from physkit.core import ParameterError, ShapeError, ratio, static

from ..._arguments import Numbers
from ._neighborhoods import Neighborhoods
from ._potential import AbstractManyBodyPotential
from ._spline import UniformSplines


class EmbeddedAtom(AbstractManyBodyPotential):
    """Embedded-atom potential from tables: a pair part, and the energy of each atom in the density of others.

        U = ½ Σ_{i≠j} φ(r_ij) + Σᵢ F(ρᵢ),   ρᵢ = Σ_j ρ(r_ij)

    φ by the species of both, ρ by that of the neighbor, F by that of atom i. Between the values of the tables
    are cubic splines; F goes on straight beyond its last value.

    **Arguments:**

    - `embedding`: F at ρ = 0, Δρ, 2Δρ, …: `[s g]`, energy; `density_spacing`: Δρ.
    - `density`: ρ at r = 0, Δr, 2Δr, …: `[s k]`.
    - `pair`: r φ(r) at the same distances, `[s s k]`, energy · length, as in setfl files.
    - `distance_spacing`: Δr, length. `cutoff`: length.
    - `elements`: what the species are called; particles whose `species_names` are others are refused. Left
      out, species go by number, whatever they are called.

    `read_setfl` and `read_funcfl` make one of files.

    **Errors:** `ShapeError` for tables that do not fit one another; `ParameterError` for spacings that are not
    positive, and a pair part that is not symmetric.

    **Good values:** copper, Foiles' universal functions (u3): −3.54 eV per atom at a = 3.615 Å.

    **Reference:** Daw & Baskes, Phys. Rev. B 29, 6443 (1984), eq. 10.
    """

    embedding: UniformSplines
    density: UniformSplines
    pair: UniformSplines
    reach: float = static()
    elements: tuple[str, ...] | None = static()

    def __init__(
        self,
        embedding: Numbers,
        density: Numbers,
        pair: Numbers,
        *,
        density_spacing: float,
        distance_spacing: float,
        cutoff: float,
        elements: tuple[str, ...] | None = None,
    ):
        energies, densities, pairs = (np.asarray(x, float) for x in (embedding, density, pair))
        s = len(densities)
        if energies.ndim != 2 or densities.ndim != 2 or len(energies) != s:
            raise ShapeError(
                f"embedding and density must be [s g] and [s k]; got {energies.shape}, {densities.shape}"
            )
        if pairs.shape != (s, s, densities.shape[1]):
            raise ShapeError(
                f"pair must be [{s} {s} {densities.shape[1]}] like density; got {pairs.shape}"
            )
        if not np.array_equal(pairs, pairs.transpose(1, 0, 2)):
            raise ParameterError("pair must be symmetric: the pair ij is the pair ji")
        if not min(density_spacing, distance_spacing, cutoff) > 0:
            raise ParameterError("spacings and cutoff must be positive")
        self.embedding = UniformSplines.through(energies, 0.0, density_spacing)
        self.density = UniformSplines.through(densities, 0.0, distance_spacing)
        flat = pairs.reshape(s * s, -1)
        self.pair = UniformSplines.through(flat, 0.0, distance_spacing)
        self.reach = float(cutoff)
        self.elements = tuple(elements) if elements is not None else None
        if self.elements is not None and len(self.elements) != s:
            raise ShapeError(f"tables of {s} species, but elements {', '.join(self.elements)}")

    @property
    def num_species(self) -> int | None:
        count = len(self.density.coefficients)
        return count if count > 1 else None

    @property
    def species_names(self) -> tuple[str, ...] | None:
        return self.elements

    @property
    def cutoff(self) -> float:
        return self.reach

    @property
    def uses_pairs_of_neighbors(self) -> bool:
        return False

    def site_energies(self, near: Neighborhoods) -> Float[Array, " c"]:
        r, own, others, both = near.distance, 0, 0, 0
        if self.num_species is not None:
            own, others = near.species, near.neighbor_species
            assert own is not None  # `ManyBody` has checked it
            both = own[None] * self.num_species + others
        density, pairs = near.sums(self.density(r, others), ratio(self.pair(r, both), r))
        return self.embedding(density, own) + pairs / 2
