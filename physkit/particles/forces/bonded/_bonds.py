"""Springs between given pairs of particles."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, ShapeError, as_parameter, param, safe_divide, safe_norm, static

from ..._particles import Particles
from .._force import AbstractForce
from ._sharded_tuples import ShardedTuples, local_tuples
from ._tuples import Tuples


class HarmonicBonds(AbstractForce):
    """Springs between given pairs of particles.

        U = ½ Σ k (r − r₀)²

    The two ends vibrate with √(k/μ), μ their reduced mass.

    **Arguments:**

    - `pairs`: `[m 2]` whole numbers: the places of the two ends in the particle arrays.
    - `stiffness`: k, energy / length²; a scalar, or `[m]` by bond.
    - `length`: r₀ ≥ 0, length; a scalar, or `[m]` by bond.
    - `of`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for other shapes; `ParameterError` for places that do not exist, or a
    particle bonded to itself.

    **Good values:** dt below a tenth of the shortest period 2π √(μ/k).

    **Notes:** ends are joined by the nearest image: a bond must stay shorter than the image limit
    of the box. Each particle reads its own bonds from a table, so that neither the force nor its
    derivatives scatter; the table is made from the numbers in `pairs`, which must not be traced. Over
    devices, bonded particles must be of the same slab or of two that are next to each other.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 1.3.3.
    """

    conserves_momentum: ClassVar[bool] = True

    ends: Tuples
    stiffness: Float[Array, "..."] = param()
    length: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self, pairs: Any, stiffness: Any = 1.0, length: Any = 0.0, component: str | None = None
    ):
        self.ends = Tuples.of(pairs, 2, "bonds")
        self.stiffness = parameter_per_row(stiffness, self.ends.places.shape[0], "stiffness")
        self.length = parameter_per_row(length, self.ends.places.shape[0], "length")
        self.component = component

    def init(self, state: Any) -> ShardedTuples | None:
        particles = self.particles(state)
        self.ends.check(particles, "bonds")
        here = local_tuples(self.ends, particles, None)
        return here if isinstance(here, ShardedTuples) else None

    def __call__(self, clock: Clock, state: Any, cache: ShardedTuples | None = None):
        del clock
        particles = self.particles(state)
        here = self._here(particles, cache)
        d = self._vectors(particles, here)
        pull = self._pull(here, safe_norm(d))[:, None] * d
        force = here.on_each(jnp.stack([pull, -pull]), particles)
        return force, here if isinstance(here, ShardedTuples) else None

    def force(self, clock: Clock, state: Any) -> Float[Array, "n d"]:
        return self(clock, state)[0]

    def energy(
        self, clock: Clock, state: Any, cache: ShardedTuples | None = None
    ) -> Float[Array, ""]:
        del clock
        particles = self.particles(state)
        here = self._here(particles, cache)
        stretch = safe_norm(self._vectors(particles, here)) - here.parameters(self.length)
        each = 0.5 * here.parameters(self.stiffness) * stretch**2
        return particles.space.sum(jnp.sum(here.mask_empty(each)))

    def virial(
        self, clock: Clock, state: Any, cache: ShardedTuples | None = None
    ) -> Float[Array, "d d"]:
        del clock
        particles = self.particles(state)
        here = self._here(particles, cache)
        d = self._vectors(particles, here)
        pull = here.mask_empty(self._pull(here, safe_norm(d))[:, None] * d)
        return particles.space.sum(jnp.matmul(d.T, pull, precision="highest"))

    def _pull(self, here: Tuples | ShardedTuples, r: Float[Array, " m"]) -> Float[Array, " m"]:
        stiffness, length = here.parameters(self.stiffness), here.parameters(self.length)
        return safe_divide(stiffness * (length - r), r)

    def _here(self, particles: Particles, cache: ShardedTuples | None) -> Tuples | ShardedTuples:
        self.ends.check(particles, "bonds")
        return local_tuples(self.ends, particles, cache)

    def _vectors(self, particles: Particles, here: Tuples | ShardedTuples) -> Float[Array, "m d"]:
        first, second = here.members(particles)
        return particles.space.displacement(first, second)


def parameter_per_row(value: Any, m: int, name: str) -> Float[Array, "..."]:
    """A parameter that is one for all rows, or `[m]`."""
    array = as_parameter(value)
    if getattr(array, "ndim", 0) and array.shape != (m,):
        raise ShapeError(f"{name} must be a scalar or have shape ({m},); got {array.shape}")
    return array
