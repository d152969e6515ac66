"""Torsions: energies of the dihedral angle that four particles make, proper or improper."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    ParameterError,
    ShapeError,
    as_parameter,
    concrete_value,
    data,
    is_concrete,
    param,
    require_nonnegative,
    safe_arctan2,
    static,
)

from ..._arguments import Numbers
from ..._particles import Particles
from ._bonded import AbstractBonded, Differences, Vectors, unit_vectors
from ._local_tuples import LocalTuples
from ._start_checks import require_bent, require_radians
from ._tuples import Tuples

# Phases may be given as multiples of an angle, n φ₀; a larger one is in degrees.
_MAX_TURN = 8 * np.pi


class AbstractTorsions(AbstractBonded):
    """A force on the dihedral angle φ of four particles i, j, k, l in three dimensions.

    φ is the angle between the planes (i, j, k) and (j, k, l): 0 where i and l are on the same side (cis), π
    where they are opposite (trans), and positive where, along j → k, l is clockwise from i (IUPAC).
    """

    tuple_name: ClassVar[str] = "torsions"

    @property
    def differences(self) -> Differences:
        return ((0, 1), (1, 2), (3, 2))

    def require_valid(self, particles: Particles) -> None:
        super().require_valid(particles)
        require_three_dimensions(particles)

    def amplitude(self) -> Float[Array, "..."]:
        """How much the energy depends on φ, of all torsions or of each; where it is 0, φ may be undefined."""
        return jnp.ones(())

    def check_start(self, vectors: Float[np.ndarray, "v m d"], particles: Particles) -> None:
        del particles
        if is_concrete(self):
            is_felt = np.broadcast_to(np.asarray(self.amplitude()) != 0, vectors.shape[1:2])
            require_bent(vectors, is_felt, self.tuples, self.tuple_name)


class PeriodicTorsions(AbstractTorsions):
    """Cosines of multiples of the dihedral angle: rotations about bonds, proper and improper.

        U = Σ k [1 + cos(n φ − φ₀)]

    **Arguments:**

    - `quadruples`: `[m 4]` whole numbers: places of the four particles along the chain. One that has several
      multiplicities has a row for each.
    - `stiffness`: k, energy; a scalar, or `[m]` by torsion; of either sign.
    - `multiplicity`: n, whole numbers from 1; one, or `[m]`.
    - `phase`: φ₀, radians; a scalar, or `[m]` by torsion.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for other shapes and in fewer than three dimensions; `ParameterError` for places
    that do not exist, one named twice in a row, multiplicities that are no whole numbers, a phase
    beyond four turns (it is in degrees), and three neighbors on one line at the start, unless k is 0.

    **Good values:** k of some kJ/mol; n = 3 for a single bond between tetrahedral atoms, n = 2 and φ₀ = π for
    planar groups.

    **Notes:** bonds take the nearest image. Where three neighbors come to be on one line the dihedral angle is
    undefined; the force is then 0, and so is its derivative; near it the force diverges, as in any code.

    **Reference:** Blondel & Karplus, J. Comput. Chem. 17, 1132 (1996), for the angle without a singularity at
    0 and π; Cornell et al., J. Am. Chem. Soc. 117, 5179 (1995), eq. 1.
    """

    tuples: Tuples
    stiffness: Float[Array, "..."] = param()
    phase: Float[Array, "..."] = param()
    multiplicity: Float[Array, "..."] = data()
    component: str | None = static(default=None)

    def __init__(
        self,
        quadruples: Numbers,
        stiffness: Numbers,
        multiplicity: Numbers,
        phase: Numbers = 0.0,
        component: str | None = None,
    ):
        self._set(quadruples, {"stiffness": stiffness, "phase": phase}, component)
        require_radians(self, "phase", -_MAX_TURN, _MAX_TURN, "within four turns")
        self.multiplicity = self._by_tuple("multiplicity", _as_multiplicity(multiplicity))

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        phi = dihedral_angle(vectors)
        turns = local.parameters(self.multiplicity) * phi
        wave = jnp.cos(turns - local.parameters(self.phase))
        return local.parameters(self.stiffness) * (1 + wave)

    def amplitude(self) -> Float[Array, "..."]:
        return self.stiffness


class RyckaertBellemansTorsions(AbstractTorsions):
    """A polynomial in the cosine of the dihedral angle, as for alkanes.

        U = Σ Σ_{q=0}^{5} C_q cos^q ψ,   ψ = φ − π

    ψ is 0 in trans: the polymer convention of the original paper, of GROMACS and of OpenMM.

    **Arguments:**

    - `quadruples`: `[m 4]`, as in `PeriodicTorsions`.
    - `coefficients`: C₀ … C₅, energy; `[6]`, or `[m 6]` by torsion.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** as `PeriodicTorsions`.

    **Good values:** butane 9.28, 12.16, −13.12, −3.06, 26.24, −31.5 kJ/mol.

    **Reference:** Ryckaert & Bellemans, Chem. Phys. Lett. 30, 123 (1975), eq. 4.
    """

    tuples: Tuples
    coefficients: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(self, quadruples: Numbers, coefficients: Numbers, component: str | None = None):
        self._set(quadruples, {}, component)
        self.coefficients = as_parameter(coefficients)
        m = self.tuples.places.shape[0]
        if self.coefficients.shape not in ((6,), (m, 6)):
            raise ShapeError(
                f"coefficients must have shape (6,) or ({m}, 6), C₀ to C₅; got "
                f"{self.coefficients.shape}"
            )

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        cosine = -jnp.cos(dihedral_angle(vectors))
        total = jnp.zeros_like(cosine)
        for q in reversed(range(6)):  # Horner's rule
            # Columns of `[m 6]` are parameters by tuple; numbers of `[6]` are one for all.
            total = total * cosine + local.parameters(self.coefficients[..., q])
        return total

    def amplitude(self) -> Float[Array, "..."]:
        return jnp.sum(jnp.abs(self.coefficients[..., 1:]), axis=-1)


class HarmonicTorsions(AbstractTorsions):
    """Springs on the dihedral angle, which keep groups planar and centers chiral (improper torsions).

        U = ½ Σ k (φ − φ₀)²,   −π ≤ φ − φ₀ < π

    **Arguments:**

    - `quadruples`: `[m 4]`, as in `PeriodicTorsions`. Which of an improper's four is the central one is the
      force field's convention.
    - `stiffness`: k, energy / radian²; a scalar, or `[m]` by torsion.
    - `angle`: φ₀, radians; a scalar, or `[m]` by torsion.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** as `PeriodicTorsions`; `ParameterError` for negative stiffness.

    **Notes:** opposite to φ₀ the force jumps: the deviation is the shorter way around.

    **Reference:** Brooks et al., J. Comput. Chem. 30, 1545 (2009), eq. 1.
    """

    tuples: Tuples
    stiffness: Float[Array, "..."] = param()
    angle: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self,
        quadruples: Numbers,
        stiffness: Numbers,
        angle: Numbers = 0.0,
        component: str | None = None,
    ):
        self._set(quadruples, {"stiffness": stiffness, "angle": angle}, component)
        require_nonnegative(self, "stiffness")
        require_radians(self, "angle", -_MAX_TURN, _MAX_TURN, "within four turns")

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        turn = dihedral_angle(vectors) - local.parameters(self.angle)
        turn -= 2 * jnp.pi * jnp.floor(turn / (2 * jnp.pi) + 0.5)
        return 0.5 * local.parameters(self.stiffness) * turn**2

    def amplitude(self) -> Float[Array, "..."]:
        return self.stiffness


def require_three_dimensions(particles: Particles) -> None:
    """**Errors:** `ShapeError` where there are fewer, and no dihedral angles."""
    if particles.dimension != 3:
        raise ShapeError(f"torsions need three dimensions; there are {particles.dimension}")


def dihedral_angle(vectors: Vectors) -> Float[Array, " m"]:
    """φ from −π to π, from x_i − x_j, x_j − x_k and x_l − x_k; 0 where three of them are on one line."""
    first, axis, last = unit_vectors(vectors)
    a, b = jnp.cross(first, axis), jnp.cross(last, axis)
    # |a||b| sin φ and |a||b| cos φ: the angle is accurate everywhere, and no division can fail.
    return safe_arctan2(jnp.sum(jnp.cross(b, a) * axis, axis=1), jnp.sum(a * b, axis=1))


def _as_multiplicity(value: Numbers) -> Float[Array, "..."]:
    numbers = concrete_value(value)
    if numbers is None or not np.all(numbers == np.round(numbers)) or np.any(numbers < 1):
        raise ParameterError(f"multiplicity must be whole numbers from 1; got {value}")
    return as_parameter(np.asarray(numbers, float))
