"""Springs on the angle between two bonds."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, ShapeError, param, safe_arctan2, safe_norm, static

from ..._particles import Particles
from .._force import AbstractForce
from ._bonds import parameter_per_row
from ._sharded_tuples import ShardedTuples, local_tuples
from ._tuples import Tuples

Arms = tuple[Float[Array, "m d"], Float[Array, "m d"]]


class HarmonicAngles(AbstractForce):
    """Springs on the angle θ that two bonds make at the particle in their middle.

        U = ½ Σ k (θ − θ₀)²

    **Arguments:**

    - `triples`: `[m 3]` whole numbers: places of end, middle and other end.
    - `stiffness`: k, energy / radian²; a scalar, or `[m]` by angle.
    - `angle`: θ₀, radians from 0 to π; a scalar, or `[m]` by angle.
    - `of`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for other shapes and in one dimension; `ParameterError` for places
    that do not exist, or one named twice in a row.

    **Notes:** bonds by nearest image. The force is the gradient of the energy; each particle reads
    its own angles from a table, and nothing scatters. Over devices, the three must be of the same
    slab or of two that are next to each other. At θ = 0 or π with another θ₀, and where two of
    the three coincide, its direction is undefined; it is then 0, and so is its own derivative.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 1.3.3.
    """

    conserves_momentum: ClassVar[bool] = True

    corners: Tuples
    stiffness: Float[Array, "..."] = param()
    angle: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self, triples: Any, stiffness: Any = 1.0, angle: Any = 0.0, component: str | None = None
    ):
        self.corners = Tuples.of(triples, 3, "angles")
        self.stiffness = parameter_per_row(stiffness, self.corners.places.shape[0], "stiffness")
        self.angle = parameter_per_row(angle, self.corners.places.shape[0], "angle")
        self.component = component

    def init(self, state: Any) -> ShardedTuples | None:
        here = self._here(self.particles(state), None)
        return here if isinstance(here, ShardedTuples) else None

    def __call__(self, clock: Clock, state: Any, cache: ShardedTuples | None = None):
        del clock
        particles = self.particles(state)
        here = self._here(particles, cache)
        end, other = self._slopes(here, self._arms(particles, here))
        force = here.on_each(jnp.stack([-end, end + other, -other]), particles)
        return force, here if isinstance(here, ShardedTuples) else None

    def force(self, clock: Clock, state: Any) -> Float[Array, "n d"]:
        return self(clock, state)[0]

    def energy(
        self, clock: Clock, state: Any, cache: ShardedTuples | None = None
    ) -> Float[Array, ""]:
        del clock
        particles = self.particles(state)
        here = self._here(particles, cache)
        each = self._energies(here, *self._arms(particles, here))
        return particles.space.sum(jnp.sum(here.mask_empty(each)))

    def virial(
        self, clock: Clock, state: Any, cache: ShardedTuples | None = None
    ) -> Float[Array, "d d"]:
        del clock
        particles = self.particles(state)
        here = self._here(particles, cache)
        arms = self._arms(particles, here)
        slopes = self._slopes(here, arms)
        product = lambda a, s: jnp.matmul(a.T, here.mask_empty(s), precision="highest")
        return -particles.space.sum(sum(map(product, arms, slopes)))

    def _here(self, particles: Particles, cache: ShardedTuples | None) -> Tuples | ShardedTuples:
        self.corners.check(particles, "angles")
        if particles.dimension == 1:
            raise ShapeError("there are no angles in one dimension")
        return local_tuples(self.corners, particles, cache)

    def _arms(self, particles: Particles, here: Tuples | ShardedTuples) -> Arms:
        end, middle, other = here.members(particles)
        displacement = particles.space.displacement
        return displacement(end, middle), displacement(other, middle)

    def _slopes(self, here: Tuples | ShardedTuples, arms: Arms) -> Arms:
        """∂U/∂a, ∂U/∂b."""
        return jax.grad(lambda a, b: jnp.sum(self._energies(here, a, b)), (0, 1))(*arms)

    def _energies(
        self, here: Tuples | ShardedTuples, a: Float[Array, "m d"], b: Float[Array, "m d"]
    ) -> Float[Array, " m"]:
        # arctan2 of sine and cosine is accurate at every angle; arccos is not near 0 and π.
        theta = safe_arctan2(_cross_size(a, b), jnp.sum(a * b, axis=1))
        return 0.5 * here.parameters(self.stiffness) * (theta - here.parameters(self.angle)) ** 2


def _cross_size(a: Float[Array, "m d"], b: Float[Array, "m d"]) -> Float[Array, " m"]:
    if a.shape[1] == 3:
        return safe_norm(jnp.cross(a, b))
    return jnp.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
