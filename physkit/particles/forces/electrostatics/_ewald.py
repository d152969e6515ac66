"""Ewald's sum over waves, exactly."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import ParameterError, describe, static
from physkit.geometry import AbstractSpace

from ..._arguments import Numbers
from ..._particles import Particles
from .._force import Forces
from ..bonded._tuples import Tuples
from ..pairs._pairwise import Pairwise
from ..potentials import DampedCoulomb
from ._ewald_sum import AbstractEwaldSum, Resolution
from ._lattice_energy import Modes
from ._tolerance import wave_numbers
from ._wave_sums import Counts, mode_numbers, slopes_by_fraction, structure_factors


class Ewald(AbstractEwaldSum):
    """Coulomb forces between all periodic images of all charges, by Ewald's sum.

        U = k Σ_{i<j} qᵢ qⱼ erfc(α r)/r + (2π k/V) Σ_{m≠0} exp(−k_m²/4α²)/k_m² |Σ q exp(i k_m·x)|²
            − k (α/√π) Σ q² − k Σ_excluded qᵢ qⱼ erf(α r)/r − π k (Σ q)²/(2 V α²)

    For some thousand charges, and where errors must be small: the cost is of order n² at a fixed cutoff.
    `ParticleMeshEwald` is of order n log n. Adds to other forces: `Pairwise(LennardJones(), 9.0) + Ewald(9.0)`,
    or faster `Ewald(9.0, short_range=Pairwise(LennardJones(), 9.0))`.

    **Arguments:**

    - `cutoff`: of the first sum, length. Only the cost depends on it: a longer one needs fewer waves.
    - `tolerance`: the error of forces, as root mean square over all charges, in units of the force
      between two neighbors: k q² (N/V)^(2/3), with the mean q². It sets α and the waves, |k_m| < k_c:

          α r_c = x,   k_c = 2 α x,   x = √(ln 6/tolerance)

      for which the errors of both sums, by Kolafa and Perram's formulas, are half of it for every cutoff
      beyond the mean distance of charges.
    - `short_range`: other forces between the same pairs, `Pairwise(LennardJones(…), cutoff)` with this very
      cutoff; with names, `Pairwise(…).named("lennard_jones")`, or several as a sum. They share the list and the
      pass over the pairs, so that they cost a fifth of what they cost by themselves.
    - `coulomb_constant`: k = 1/(4π ε₀), energy · length / charge²: 1 in reduced units, 14.399645 eV Å/e²,
      138.935458 kJ/mol nm/e², 332.0637 kcal/mol Å/e².
    - `exclude`: `[m 2]`, pairs of particles that do not interact: bonded neighbors. Their other images do.
      Pairs that interact in part are excluded here, and added by `SpecialPairs(pairs, Coulomb(k), scale)`.
    - `background`: allow charges that do not add up to 0; a uniform charge neutralizes the cell.
    - `slab`: for a box that is open along one axis (`Box(lengths, (True, True, False))`): waves have
      images along it that are `slab` heights of the box apart, and a term of the dipole takes away what they
      do. 3 is usual. Particles should stay in the box.
    - `waves`: the largest mode number, or one along each axis, instead of those that `tolerance` sets;
      modes in the ellipsoid are taken. To be given where a trace hides the box.
    - `exact`: near pairs by exact sums; see `Pairwise`. `Reversible` needs it.
    - `skin`, `capacity`, `use_neighbor_list`, `component`: see `Pairwise`.

    **Errors:** `ParameterError` for particles without charge or with a net charge, for a space that is not
    periodic, for boxes that a trace hides; `ShapeError` for other than three dimensions; `CutoffError` for a
    cutoff beyond the image limit.

    **Notes:** conducting ("tin foil") boundary at infinity. How many waves there are is chosen at the start and
    stays while the box changes; where it grows by a fifth, so does the cut of the waves. Memory does not grow
    with the number of waves times that of charges, in derivatives neither. Members of a sweep with different
    boxes need `waves`.

    **Reference:** Ewald, Ann. Phys. 369, 253 (1921); Kolafa & Perram, Mol. Simul. 9, 351 (1992), for errors;
    Yeh & Berkowitz, J. Chem. Phys. 111, 3155 (1999), and Ballenegger, Arnold & Cerdà, J. Chem. Phys. 131,
    094107 (2009), for slabs and their net charge.
    """

    conserves_momentum: ClassVar[bool] = True
    ignores_velocities: ClassVar[bool] = True
    resolution_name: ClassVar[str] = "waves"

    near: Pairwise
    excluded: Tuples | None
    tolerance: float = static()
    background: bool = static()
    slab: float | None = static()
    waves: Resolution | None = static()
    component: str | None = static()

    def __init__(
        self,
        cutoff: float,
        tolerance: float = 1e-4,
        *,
        short_range: Pairwise | Forces | None = None,
        coulomb_constant: Numbers = 1.0,
        exclude: Numbers | None = None,
        background: bool = False,
        slab: float | None = None,
        waves: Numbers | None = None,
        exact: bool = False,
        skin: float | None = None,
        capacity: int | None = None,
        use_neighbor_list: bool | None = None,
        component: str | None = None,
    ):
        near = Pairwise(
            DampedCoulomb(0.0, coulomb_constant),
            cutoff,
            skin,
            "plain",
            exact=exact,
            exclude=exclude,
            capacity=capacity,
            use_neighbor_list=use_neighbor_list,
            component=component,
        )
        self._set(near, tolerance, exclude, background, slab, short_range)
        self.waves = _as_waves(waves)

    def choose_resolution(self, cell: np.ndarray, num_charges: int) -> Resolution:
        del num_charges
        return wave_numbers(cell, self.splitting, self.tolerance)

    def modes(self, resolution: Resolution, space: AbstractSpace, dtype: Any) -> Modes:
        del space
        numbers = mode_numbers(_counts(resolution))
        distance = sum((n / max(r, 1e-9)) ** 2 for n, r in zip(numbers, resolution, strict=True))
        # Of two modes with opposite signs one is here, apart from those with 0 along the last axis.
        weight = np.where((distance <= 1) & (distance > 0), np.where(numbers[2] > 0, 2, 1), 0)
        return Modes(numbers, jnp.asarray(weight, dtype))

    def structure_factors(
        self,
        fraction: Float[Array, "n 3"],
        charge: Float[Array, " n"],
        particles: Particles,
        resolution: Resolution,
    ) -> Float[Array, "2 p q r"]:
        return particles.space.sum(structure_factors(fraction, charge, _counts(resolution)))

    def slopes(
        self,
        weight: Float[Array, "2 p q r"],
        fraction: Float[Array, "n 3"],
        charge: Float[Array, " n"],
        particles: Particles,
        resolution: Resolution,
    ) -> Float[Array, "n 3"]:
        del particles
        return slopes_by_fraction(weight, fraction, charge, _counts(resolution))

    def sum_modes(self, x: Array, resolution: Resolution, space: AbstractSpace) -> Array:
        del resolution, space
        return x  # every device has all modes


def _counts(resolution: Resolution) -> Counts:
    a, b, c = (int(r) for r in resolution)
    return a, b, c


def _as_waves(waves: Numbers | None) -> Resolution | None:
    if waves is None:
        return None
    numbers = np.broadcast_to(np.asarray(waves, float), (3,)) if np.size(waves) in (1, 3) else None
    if numbers is None or not np.all(numbers >= 1):
        raise ParameterError(
            f"waves is the largest mode number, at least 1, for all axes or for each; got {describe(waves)}"
        )
    a, b, c = numbers.tolist()
    return a, b, c
