"""Momentum, angular momentum and centre of mass."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, ShapeError, static
from physkit.particles import Particles

from ._observer import AbstractQuantity
from ._select import components
from ._snapshot import Snapshot


class Momentum(AbstractQuantity):
    """Total momentum, Σ m v; constant where all forces are between particles.

    **Arguments:**

    - `of`: one component; all particle components if left out.

    **Returns:** `[d]`, mass · length / time.
    """

    of: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " d"]:
        return _total([_weighted(p, p.velocity) for p in components(snapshot, self.of)])


class CenterOfMass(AbstractQuantity):
    """Centre of mass of the unfolded paths, Σ m r / Σ m: it does not jump when particles cross the cell.

    **Arguments:**

    - `of`: one component; all particle components if left out.

    **Returns:** `[d]`, length.
    """

    of: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " d"]:
        parts = components(snapshot, self.of)
        mass = _total([p.space.sum(jnp.sum(p.mass)) for p in parts])
        return _total([_weighted(p, p.unwrapped) for p in parts]) / mass


class AngularMomentum(AbstractQuantity):
    """Angular momentum, L = Σ m (r − o) × v, of the unfolded paths.

    Constant in free space under central forces; a periodic cell does not conserve it.

    **Arguments:**

    - `of`: one component; all particle components if left out.
    - `about`: `"origin"`, or `"center"` for the centre of mass.

    **Returns:** `[3]`; a scalar in two dimensions; mass · length² / time.

    **Errors:** `ShapeError` in one dimension, where there is none.
    """

    of: str | None = static(default=None)
    about: str = static(default="origin")

    def __check_init__(self):
        if self.about not in ("origin", "center"):
            raise ObserverError(f'about must be "origin" or "center"; got {self.about!r}')

    def __call__(self, snapshot: Snapshot) -> Float[Array, "..."]:
        parts = components(snapshot, self.of)
        if parts[0].dimension == 1:
            raise ShapeError("there is no angular momentum in one dimension")
        own = [_angular(p) for p in parts]
        if self.about == "origin":
            return _total(own)
        center, momentum = CenterOfMass(self.of)(snapshot), Momentum(self.of)(snapshot)
        return _total(own) - _cross(center, momentum)


def _angular(particles: Particles) -> Float[Array, "..."]:
    moments = _cross(particles.unwrapped, particles.mass[:, None] * particles.velocity)
    return particles.space.sum(jnp.sum(moments, axis=0))


def _cross(a: Float[Array, "*n d"], b: Float[Array, "*n d"]) -> Float[Array, "..."]:
    if a.shape[-1] == 2:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return jnp.cross(a, b)


def _weighted(particles: Particles, vectors: Float[Array, "n d"]) -> Float[Array, " d"]:
    return particles.space.sum(particles.mass @ vectors)


def _total(parts: list[Array]) -> Array:
    return sum(parts[1:], parts[0])
