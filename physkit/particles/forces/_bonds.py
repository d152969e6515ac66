"""Springs between given pairs of particles."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, ShapeError, as_parameter, param, safe_divide, safe_norm, static

from .._particles import Particles
from ._force import AbstractForce, need_whole
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
    derivatives scatter; the table is made from the numbers in `pairs`, which must not be traced.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 1.3.3.
    """

    conserves_momentum: ClassVar[bool] = True

    ends: Tuples
    stiffness: Float[Array, "..."] = param()
    length: Float[Array, "..."] = param()
    of: str | None = static(default=None)

    def __init__(self, pairs: Any, stiffness: Any = 1.0, length: Any = 0.0, of: str | None = None):
        self.ends = Tuples.of(pairs, 2, "bonds")
        self.stiffness = per_row(stiffness, self.ends.places.shape[0], "stiffness")
        self.length = per_row(length, self.ends.places.shape[0], "length")
        self.of = of

    def init(self, state: Any) -> None:
        need_whole(
            self.particles(state), "HarmonicBonds, which may join particles of any two devices,"
        )
        self.ends.check(self.particles(state), "bonds")

    def force(self, clock: Clock, state: Any) -> Float[Array, "n d"]:
        del clock
        particles = self.particles(state)
        d = self._vectors(particles)
        pull = self._pull(safe_norm(d))[:, None] * d
        return self.ends.summed(jnp.stack([pull, -pull]), particles.rows)

    def energy(self, clock: Clock, state: Any, cache: Any = None) -> Float[Array, ""]:
        del clock, cache
        particles = self.particles(state)
        stretch = safe_norm(self._vectors(particles)) - self.length
        return particles.space.sum(jnp.sum(0.5 * self.stiffness * stretch**2))

    def virial(self, clock: Clock, state: Any, cache: Any = None) -> Float[Array, "d d"]:
        del clock, cache
        particles = self.particles(state)
        d = self._vectors(particles)
        pull = self._pull(safe_norm(d))[:, None] * d
        return particles.space.sum(jnp.matmul(d.T, pull, precision="highest"))

    def _pull(self, r: Float[Array, " m"]) -> Float[Array, " m"]:
        return safe_divide(self.stiffness * (self.length - r), r)

    def _vectors(self, particles: Particles) -> Float[Array, "m d"]:
        self.ends.check(particles, "bonds")
        first, second = self.ends.read(particles.position)
        return particles.space.displacement(first, second)


def per_row(value: Any, m: int, name: str) -> Float[Array, "..."]:
    """A parameter that is one for all rows, or `[m]`."""
    array = as_parameter(value)
    if getattr(array, "ndim", 0) and array.shape != (m,):
        raise ShapeError(f"{name} must be a scalar or have shape ({m},); got {array.shape}")
    return array
