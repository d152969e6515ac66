"""Angles: energies of the angle between two bonds, and of the distance of their far ends."""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    ShapeError,
    explain_call,
    param,
    require_nonnegative,
    safe_arctan2,
    safe_norm,
    static,
)

from ..._arguments import Numbers
from ..._particles import Particles
from ._bonded import AbstractBonded, Differences, Vectors, unit_vectors
from ._bonds import HarmonicBonds
from ._local_tuples import LocalTuples
from ._start_checks import require_apart, require_radians
from ._tuples import Tuples, as_places


class AbstractAngles(AbstractBonded):
    """A force on angles: `energies` of the vectors from the middle of each triple to its two ends."""

    tuple_name: ClassVar[str] = "angles"

    @property
    def differences(self) -> Differences:
        return ((0, 1), (2, 1))

    def require_valid(self, particles: Particles) -> None:
        super().require_valid(particles)
        if particles.dimension == 1:
            raise ShapeError("there are no angles in one dimension")

    def check_start(self, vectors: Float[np.ndarray, "v m d"], particles: Particles) -> None:
        del particles
        require_apart(vectors, self.tuples, self.tuple_name)


class HarmonicAngles(AbstractAngles):
    """Springs on the angle θ that two bonds make at the particle in their middle.

        U = ½ Σ k (θ − θ₀)²

    **Arguments:**

    - `triples`: `[m 3]` whole numbers: places of end, middle and other end.
    - `stiffness`: k, energy / radian²; a scalar, or `[m]` by angle.
    - `angle`: θ₀, radians from 0 to π; a scalar, or `[m]` by angle.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for other shapes and in one dimension; `ParameterError` for places
    that do not exist, or one named twice in a row, and for two neighbors on one spot at the start.

    **Notes:** bonds take the nearest image. The force is the gradient of the energy; each particle reads
    its angles from a table, and nothing scatters. Over devices, the three particles must be in the same
    slab or in two that are next to each other. At θ = 0 or π with another θ₀, and where two of the three
    coincide, the direction of the force is undefined; the force is then 0, and so is its derivative.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 1.3.3.
    """

    tuples: Tuples
    stiffness: Float[Array, "..."] = param()
    angle: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self,
        triples: Numbers,
        stiffness: Numbers = 1.0,
        angle: Numbers = 0.0,
        component: str | None = None,
    ):
        self._set(triples, {"stiffness": stiffness, "angle": angle}, component)
        require_nonnegative(self, "stiffness")
        require_radians(self, "angle", 0.0, math.pi, "from 0 to π")

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        cosine, sine = _cosine_and_sine(vectors)
        # arctan2 is accurate at every angle; arccos is not near 0 and π.
        bend = safe_arctan2(sine, cosine) - local.parameters(self.angle)
        return 0.5 * local.parameters(self.stiffness) * bend**2


class CosineAngles(AbstractAngles):
    """Bending that is smooth at every angle, for stiff chains.

        U = Σ k [1 − cos(θ − θ₀)]

    Near θ₀ a spring of stiffness k. With θ₀ = π, which is the default, U = Σ k (1 + cos θ).

    **Arguments:**

    - `triples`: `[m 3]` whole numbers: places of end, middle and other end.
    - `stiffness`: k, energy; a scalar, or `[m]` by angle.
    - `angle`: θ₀, radians from 0 to π; a scalar, or `[m]` by angle.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** as `HarmonicAngles`.

    **Good values:** a chain of bonds of length b has the persistence length b k/(k_B T) where k ≫ k_B T.

    **Reference:** Everaers et al., Science 303, 823 (2004), for semiflexible Kremer–Grest chains.
    """

    tuples: Tuples
    stiffness: Float[Array, "..."] = param()
    angle: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self,
        triples: Numbers,
        stiffness: Numbers = 1.0,
        angle: Numbers = math.pi,
        component: str | None = None,
    ):
        self._set(triples, {"stiffness": stiffness, "angle": angle}, component)
        require_nonnegative(self, "stiffness")
        require_radians(self, "angle", 0.0, math.pi, "from 0 to π")

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        cosine, sine = _cosine_and_sine(vectors)
        angle = local.parameters(self.angle)
        bend = 1 - cosine * jnp.cos(angle) - sine * jnp.sin(angle)
        return local.parameters(self.stiffness) * bend


class CosineSquaredAngles(AbstractAngles):
    """Springs on the cosine of the angle that two bonds make.

        U = ½ Σ k (cos θ − cos θ₀)²

    Near θ₀ a spring of stiffness k sin²θ₀ on the angle.

    **Arguments** and errors: as `CosineAngles`; `angle` must be given.

    **Reference:** van Gunsteren et al., Biomolecular Simulation: the GROMOS96 Manual (1996), eq. 2.5.3.2.
    """

    tuples: Tuples
    stiffness: Float[Array, "..."] = param()
    angle: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self, triples: Numbers, stiffness: Numbers, angle: Numbers, component: str | None = None
    ):
        self._set(triples, {"stiffness": stiffness, "angle": angle}, component)
        require_nonnegative(self, "stiffness")
        require_radians(self, "angle", 0.0, math.pi, "from 0 to π")

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        cosine, _ = _cosine_and_sine(vectors)
        bend = cosine - jnp.cos(local.parameters(self.angle))
        return 0.5 * local.parameters(self.stiffness) * bend**2


@explain_call
def urey_bradley(
    triples: Numbers, stiffness: Numbers, length: Numbers, component: str | None = None
) -> HarmonicBonds:
    """Springs between the two far ends of angles, which CHARMM adds to the springs on the angles.

        U = ½ Σ k (r₁₃ − s₀)²

    **Arguments:**

    - `triples`: `[m 3]`, as in `HarmonicAngles`.
    - `stiffness`: k, energy / length². `length`: s₀. Each a scalar, or `[m]` by angle.

    **Returns:** `HarmonicBonds` between the first and the third of each triple.

    **Reference:** Brooks et al., J. Comput. Chem. 30, 1545 (2009), eq. 1.
    """
    ends = as_places(triples, 3, "angles")[:, (0, 2)]
    return HarmonicBonds(ends, stiffness, length, component)


def _cosine_and_sine(vectors: Vectors) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """cos θ and sin θ ≥ 0 of the angle between two vectors; 0 where one of them is 0."""
    a, b = unit_vectors(vectors)
    return jnp.sum(a * b, axis=1), _cross_norm(a, b)


def _cross_norm(a: Float[Array, "m d"], b: Float[Array, "m d"]) -> Float[Array, " m"]:
    if a.shape[1] == 3:
        return safe_norm(jnp.cross(a, b))
    return jnp.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
