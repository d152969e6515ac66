"""Springs between given pairs of particles."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import (
    Clock,
    ParameterError,
    ShapeError,
    as_parameter,
    concrete,
    data,
    param,
    safe_divide,
    safe_norm,
    static,
)

from .._particles import Particles
from ._force import AbstractForce


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
    of the box. Each particle reads its own bonds from a table, so that the force never scatters;
    the table is made from the numbers in `pairs`, which must not be traced.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 1.3.3.
    """

    conserves_momentum: ClassVar[bool] = True

    pairs: Int[Array, "m 2"] = data()
    stiffness: Float[Array, "..."] = param()
    length: Float[Array, "..."] = param()
    bond: Int[Array, "n b"] = data()
    partner: Int[Array, "n b"] = data()
    of: str | None = static(default=None)

    def __init__(self, pairs: Any, stiffness: Any = 1.0, length: Any = 0.0, of: str | None = None):
        numbers = as_places(pairs, 2, "bonds")
        self.pairs = jnp.asarray(numbers)
        self.stiffness = per_row(stiffness, len(numbers), "stiffness")
        self.length = per_row(length, len(numbers), "length")
        self.bond, self.partner = map(jnp.asarray, _table(numbers))
        self.of = of

    def init(self, state: Any) -> None:
        check_places(self.partner.shape[0], self.particles(state), "bonds")

    def force(self, clock: Clock, state: Any) -> Float[Array, "n d"]:
        del clock
        particles = self.particles(state)
        check_places(self.partner.shape[0], particles, "bonds")
        bound = self.partner.shape[0]
        x = particles.position
        d = particles.space.displacement(x[:bound, None], x[self.partner])
        r = safe_norm(d)
        present = self.bond < self.pairs.shape[0]
        bond = jnp.minimum(self.bond, max(self.pairs.shape[0] - 1, 0))
        stiffness, length = (p[bond] if p.ndim else p for p in (self.stiffness, self.length))
        pull = jnp.where(present, safe_divide(stiffness * (length - r), r), 0)
        force = jnp.sum(pull[..., None] * d, axis=1)
        return jnp.pad(force, ((0, particles.count - bound), (0, 0)))

    def energy(self, clock: Clock, state: Any, cache: Any = None) -> Float[Array, ""]:
        del clock, cache
        particles = self.particles(state)
        stretch = safe_norm(self._vectors(particles)) - self.length
        return particles.space.sum(jnp.sum(0.5 * self.stiffness * stretch**2))

    def virial(self, clock: Clock, state: Any, cache: Any = None) -> Float[Array, "d d"]:
        del clock, cache
        particles = self.particles(state)
        d = self._vectors(particles)
        r = safe_norm(d)
        pull = safe_divide(self.stiffness * (self.length - r), r)
        return particles.space.sum(jnp.matmul(d.T, pull[:, None] * d, precision="highest"))

    def _vectors(self, particles: Particles) -> Float[Array, "m d"]:
        check_places(self.partner.shape[0], particles, "bonds")
        first, second = (particles.position[self.pairs[:, k]] for k in (0, 1))
        return particles.space.displacement(first, second)


def _table(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per particle the bonds that it has, and at whose other ends; as many slots as needed.

    An empty slot names a bond that does not exist, and the particle itself as its partner.
    """
    ends, others = pairs.T.ravel(), pairs[:, ::-1].T.ravel()
    bonds = np.tile(np.arange(len(pairs)), 2)
    count = int(ends.max(initial=-1)) + 1
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(count))
    slot = np.arange(len(ends)) - starts[ends[order]]
    slots = int(slot.max(initial=-1)) + 1
    bond = np.full((count, slots), len(pairs), np.int32)
    partner = np.tile(np.arange(count, dtype=np.int32)[:, None], (1, slots))
    bond[ends[order], slot] = bonds[order]
    partner[ends[order], slot] = others[order]
    return bond, partner


def as_places(value: Any, width: int, name: str) -> np.ndarray:
    """`value` as a host array `[m width]` of distinct places per row."""
    numbers = concrete(value)
    if numbers is None:
        raise ParameterError(f"{name} must be known numbers, not traced: build them outside of jit")
    if numbers.size == 0:
        numbers = np.zeros((0, width), np.int32)
    if numbers.ndim != 2 or numbers.shape[1] != width:
        raise ShapeError(f"{name} must be [m {width}]; got shape {numbers.shape}")
    if not np.issubdtype(numbers.dtype, np.integer) or numbers.min(initial=0) < 0:
        raise ParameterError(f"{name} are places in the particle arrays: whole numbers from 0")
    ordered = np.sort(numbers, axis=1)
    doubled = np.any(ordered[:, 1:] == ordered[:, :-1], axis=1)
    if np.any(doubled):
        worst = int(np.argmax(doubled))
        raise ParameterError(
            f"{name}[{worst}] = {numbers[worst].tolist()} joins a particle to itself"
        )
    return numbers.astype(np.int32)


def per_row(value: Any, m: int, name: str) -> Float[Array, "..."]:
    """A parameter that is one for all rows, or `[m]`."""
    array = as_parameter(value)
    if getattr(array, "ndim", 0) and array.shape != (m,):
        raise ShapeError(f"{name} must be a scalar or have shape ({m},); got {array.shape}")
    return array


def check_places(needed: int, particles: Particles, name: str) -> None:
    """Raise where places beyond the last particle are named."""
    if needed > particles.count:
        raise ParameterError(
            f"{name} name particle {needed - 1}, but there are only {particles.count} (from 0)"
        )
