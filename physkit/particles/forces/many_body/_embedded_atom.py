"""The embedded-atom method: metals."""

from pathlib import Path

import numpy as np
from jaxtyping import Array, Float

from physkit.core import DamagedFileError, ParameterError, ShapeError, static

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
    - `elements`: what the species are called.

    `read_setfl` makes one of a file.

    **Errors:** `ShapeError` for tables that do not fit one another; `ParameterError` for spacings that are not
    positive, and a pair part that is not symmetric.

    **Good values:** copper, Foiles' universal functions (u3): −3.54 eV per atom at a = 3.615 Å.

    **Reference:** Daw & Baskes, Phys. Rev. B 29, 6443 (1984), eq. 10.
    """

    embedding: UniformSplines
    density: UniformSplines
    pair: UniformSplines
    reach: float = static()
    elements: tuple[str, ...] = static()

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
        self.elements = tuple(elements or (f"species {k}" for k in range(s)))

    @property
    def num_species(self) -> int | None:
        return len(self.elements) if len(self.elements) > 1 else None

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
            both = own[:, None] * self.num_species + others
        density, pairs = near.sums(self.density(r, others), self.pair(r, both) / r)
        return self.embedding(density, own) + pairs / 2


def read_setfl(path: str | Path) -> EmbeddedAtom:
    """The potential of a setfl file (`eam/alloy` in LAMMPS), in its units: eV and Å.

    **Errors:** `DamagedFileError` for a file that is cut short, or is no setfl file.

    **Reference:** Daw, Foiles & Baskes, Mater. Sci. Rep. 9, 251 (1993); the LAMMPS manual, pair_style eam.
    """
    lines = Path(path).read_text(errors="replace").splitlines()
    try:
        count, *elements = lines[3].split()
        counts = lines[4].split()
        num_densities, num_distances = int(counts[0]), int(counts[2])
        density_spacing, distance_spacing, cutoff = (float(counts[k]) for k in (1, 3, 4))
        if int(count) != len(elements) or not 1 <= len(elements) <= 100:
            raise ValueError(f"{count} elements, of which {len(elements)} are named")
        numbers = [line.split() for line in lines[5:]]
        embedding, density, pair = _tables(numbers, len(elements), num_densities, num_distances)
    except (ValueError, IndexError) as error:
        raise DamagedFileError(f"{path} is no setfl file, or is cut short: {error}") from error
    return EmbeddedAtom(
        embedding, density, pair, density_spacing=density_spacing,
        distance_spacing=distance_spacing, cutoff=cutoff, elements=tuple(elements),
    )  # fmt: skip


def _tables(
    lines: list[list[str]], s: int, num_densities: int, num_distances: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embedding energies, densities and r φ from the lines after the header."""
    if not (4 <= num_densities <= 10**7 and 4 <= num_distances <= 10**7):
        raise ValueError(f"tables of {num_densities} and {num_distances} values")
    words, at = [word for line in lines for word in line], 0

    def take(size: int) -> np.ndarray:
        nonlocal at
        part = words[at : at + size]
        if len(part) < size:
            raise ValueError(f"{at + size} numbers wanted, {len(words)} found")
        at += size
        values = np.array([float(word.replace("D", "E").replace("d", "e")) for word in part])
        if not np.isfinite(values).all():
            raise ValueError("numbers that are not finite")
        return values

    embedding, density = [], []
    for _ in range(s):
        at += 4  # atomic number, mass, lattice constant, lattice
        embedding.append(take(num_densities))
        density.append(take(num_distances))
    pair = np.zeros((s, s, num_distances))
    for i in range(s):
        for j in range(i + 1):
            pair[i, j] = pair[j, i] = take(num_distances)
    return np.array(embedding), np.array(density), pair
