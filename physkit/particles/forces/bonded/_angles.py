"""Springs on the angle between two bonds."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ShapeError, param, require_nonnegative, safe_arctan2, safe_norm, static
from physkit.geometry import AbstractSpace

from ..._arguments import Numbers
from ..._particles import Particles
from ._bonded import AbstractBonded, LocalTuples, Vectors, parameter_by_tuple
from ._tuples import Tuples


class HarmonicAngles(AbstractBonded):
    """Springs on the angle θ that two bonds make at the particle in their middle.

        U = ½ Σ k (θ − θ₀)²

    **Arguments:**

    - `triples`: `[m 3]` whole numbers: places of end, middle and other end.
    - `stiffness`: k, energy / radian²; a scalar, or `[m]` by angle.
    - `angle`: θ₀, radians from 0 to π; a scalar, or `[m]` by angle.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for other shapes and in one dimension; `ParameterError` for places
    that do not exist, or one named twice in a row.

    **Notes:** bonds take the nearest image. The force is the gradient of the energy; each particle reads
    its angles from a table, and nothing scatters. Over devices, the three particles must be in the same
    slab or in two that are next to each other. At θ = 0 or π with another θ₀, and where two of the three
    coincide, the direction of the force is undefined; the force is then 0, and so is its derivative.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 1.3.3.
    """

    tuple_name: ClassVar[str] = "angles"

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
        self.tuples = Tuples.of(triples, 3, self.tuple_name)
        self.stiffness = parameter_by_tuple(stiffness, self.tuples, "stiffness")
        self.angle = parameter_by_tuple(angle, self.tuples, "angle")
        self.component = component
        require_nonnegative(self, "stiffness")

    def vectors(self, space: AbstractSpace, members: Float[Array, "3 m d"]) -> Vectors:
        end, middle, other = members
        return space.displacement(end, middle), space.displacement(other, middle)

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        a, b = vectors
        # arctan2 of sine and cosine is accurate at every angle; arccos is not near 0 and π.
        theta = safe_arctan2(_cross_norm(a, b), jnp.sum(a * b, axis=1))
        bend = theta - local.local_parameters(self.angle)
        return 0.5 * local.local_parameters(self.stiffness) * bend**2

    def member_forces(self, forces: Vectors) -> Float[Array, "3 m d"]:
        end, other = forces
        return jnp.stack([end, -(end + other), other])

    def require_valid(self, particles: Particles) -> None:
        super().require_valid(particles)
        if particles.dimension == 1:
            raise ShapeError("there are no angles in one dimension")


def _cross_norm(a: Float[Array, "m d"], b: Float[Array, "m d"]) -> Float[Array, " m"]:
    if a.shape[1] == 3:
        return safe_norm(jnp.cross(a, b))
    return jnp.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
