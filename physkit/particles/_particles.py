"""Point particles: the component that molecular dynamics, gravity and plasmas share."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    AbstractExactComponent,
    Fault,
    Module,
    ParameterError,
    ShapeError,
    concrete_value,
    data,
    replace_fields,
    round_before_add,
    with_tangent_of,
)
from physkit.geometry import AbstractSpace, Free

from ._fixed_point_particles import FixedPointParticles
from .decomposition._ownership import (
    Ownership,
    grow_particles,
    migrate_back,
    migrate_particles,
    needs_migration,
    row_arrays,
    shard_particles,
    unshard_particles,
)


class ParticleIncrement(Module):
    """A change, or rate of change, of particles; None for what does not change."""

    position: Float[Array, "n d"] | None = data(None)
    velocity: Float[Array, "n d"] | None = data(None)


class Particles(AbstractExactComponent):
    """`n` point particles in `d` = 1, 2 or 3 dimensions, with the space they live in.

    **Arguments:**

    - `position`: `[n d]`, length. Folded into the cell as particles move; `image` counts the cells
      crossed, so that `unwrapped` is the path without folds.
    - `velocity`: `[n d]`, length / time; at rest if left out.
    - `mass`: `[n]`, or one for all; positive; 1 if left out.
    - `space`: `Free()` if left out.
    - `charge`: `[n]` or one for all; optional.
    - `species`: `[n]` integers from 0, rows of per-species tables; optional.
    - `id`: `[n]` distinct integers that noise is drawn by and frames are sorted by; 0 … n−1 if
      left out.
    - `frozen`: `[n]` bools; frozen particles exert forces and never move; optional.

    Position, velocity, mass and charge are differentiable.

    **Errors:** `ShapeError`, `ParameterError` (a mass that is not positive, species that are not
    integers), naming the argument.
    """

    position: Float[Array, "n d"] = data()
    velocity: Float[Array, "n d"] = data()
    mass: Float[Array, " n"] = data()
    image: Int[Array, "n d"] = data()
    id: Int[Array, " n"] = data()
    space: AbstractSpace
    charge: Float[Array, " n"] | None = data(None)
    species: Int[Array, " n"] | None = data(None)
    frozen: Bool[Array, " n"] | None = data(None)
    fixed_point: FixedPointParticles | None = None  # exact positions and velocities, for Reversible
    ownership: Ownership | None = None  # of several devices: which of all particles these are
    evolving_leaves: ClassVar[tuple[str, ...]] = ("position", "velocity")
    kicked_leaves: ClassVar[tuple[str, ...]] = ("velocity",)

    def __init__(
        self,
        position: Any,
        velocity: Any = None,
        mass: Any = 1.0,
        space: AbstractSpace | None = None,
        *,
        charge: Any = None,
        species: Any = None,
        id: Any = None,
        frozen: Any = None,
        image: Any = None,
    ):
        position = _float_array(position)
        if position.ndim != 2 or not 1 <= position.shape[1] <= 3:
            raise ShapeError(
                f"position must be [n d] with d = 1, 2 or 3; got shape {position.shape}"
            )
        n, dtype = position.shape[0], position.dtype
        space = Free() if space is None else space
        space.periodic_axes(position.shape[1])  # a space of another dimension says so here
        self.space = jax.tree.map(lambda x: jnp.asarray(x, dtype), space)
        velocity = jnp.zeros_like(position) if velocity is None else velocity
        self.position = position
        self.velocity = _array(velocity, position.shape, dtype, "velocity")
        self.mass = _array(mass, (n,), dtype, "mass")
        self.charge = None if charge is None else _array(charge, (n,), dtype, "charge")
        self.species = None if species is None else _integers(species, n, "species")
        self.id = jnp.arange(n, dtype=jnp.int32) if id is None else _integers(id, n, "id")
        self.frozen = None if frozen is None else _array(frozen, (n,), bool, "frozen")
        image = jnp.zeros(position.shape, jnp.int32) if image is None else image
        self.image = _array(image, position.shape, jnp.int32, "image")
        self.fixed_point, self.ownership = None, None
        _check_numbers(self)

    @property
    def num_slots(self) -> int:
        """Number of rows of the arrays: that of particles, on one device."""
        return self.position.shape[-2]

    @property
    def num_particles(self) -> int:
        """Number of particles in the whole domain; an energy over it is one per particle."""
        return self.num_slots if self.ownership is None else self.ownership.num_particles

    @property
    def mask(self) -> Bool[Array, " n"] | None:
        """Which rows hold a particle; None for all, as on one device."""
        return None if self.ownership is None else self.ownership.mask

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return self.position.shape[-1]

    @property
    def unwrapped(self) -> Float[Array, "n d"]:
        """Positions as if never folded back into the cell, length."""
        return self.space.unwrap(self.position, self.image)

    def unwrap(self) -> "Particles":
        """These particles at their unwrapped positions."""
        return self.replace(position=self.unwrapped)

    def difference(self, other: "Particles") -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
        """The displacement from `other` to these particles by the minimum image, and that of velocities."""
        displacement = self.space.displacement(self.position, other.position)
        return displacement, self.velocity - other.velocity

    def shift(self, delta: ParticleIncrement) -> "Particles":
        """Particles moved by `delta.position` and folded back, velocities changed by `delta.velocity`."""
        out, exact = self, self.fixed_point
        # Fused into the sum, a product would be rounded with it in vectors and by itself in what is
        # left over, and the last bit would depend on a particle's place in the array.
        delta = jax.tree.map(round_before_add, delta)
        if delta.position is not None:
            step = self._mobile(delta.position)
            moved, crossed = self.space.wrap_with_image(self.position + step)
            if exact is not None:
                exact, crossed = exact.drift(step)
                moved = with_tangent_of(exact.positions, moved)
            out = replace_fields(out, {"position": moved, "image": self.image + crossed})
        if delta.velocity is not None:
            change = self._mobile(delta.velocity)
            velocity = self.velocity + change
            if exact is not None:
                exact = exact.kick(change)
                velocity = with_tangent_of(exact.velocities, velocity)
            out = replace_fields(out, {"velocity": velocity})
        return out if exact is None else replace_fields(out, {"fixed_point": exact})

    def drift(self, dt: Float[Array, ""]) -> "Particles":
        """x + dt·v."""
        return self.shift(ParticleIncrement(position=dt * self.velocity))

    def kick(self, force: Float[Array, "n d"], dt: Float[Array, ""]) -> "Particles":
        """v + dt·F/m."""
        return self.shift(ParticleIncrement(velocity=dt * force / self.mass[:, None]))

    def replace(self, **leaves: Any) -> "Particles":
        """A copy with some arrays or the space replaced; what it says is not checked again."""
        if {"position", "velocity", "image", "space"} & set(leaves):
            leaves = {"fixed_point": None, **leaves}  # the one there is belongs to the old numbers
        return replace_fields(self, leaves)

    def to_fixed_point(
        self, dt: Any, range_factor: float, after: "Particles | None" = None
    ) -> "Particles":
        """These particles rounded to fixed-point numbers, to which `shift` adds exactly.

        Derivatives pass through. Open space has a range for positions `range_factor` times as far from the
        origin as any is now.
        """
        del after
        largest = lambda x: self.space.max(jnp.max(self.mask_empty(x)))
        exact = FixedPointParticles.from_floats(
            self.position, self.velocity, self.space, dt, range_factor, largest
        )
        position = with_tangent_of(exact.positions, self.position)
        velocity = with_tangent_of(exact.velocities, self.velocity)
        return replace_fields(
            self, {"position": position, "velocity": velocity, "fixed_point": exact}
        )

    def exact_bits(self) -> list[Any]:
        if self.fixed_point is None:
            raise ParameterError("these particles hold no fixed-point numbers")
        return [self.fixed_point.position, self.fixed_point.velocity.fixed_point, self.image]

    @property
    def migration_margin(self) -> float:
        """How far particles stray from their device's slab at most, in widths of it; 0 on one device."""
        return 0.0 if self.ownership is None else self.ownership.migration_margin

    # --- over the whole domain, and over devices --------------------------------------------------

    def mask_empty(self, x: Array) -> Array:
        """`x`, `[n …]`, with 0 where a row holds no particle."""
        if self.ownership is None:
            return x
        return jnp.where(self.ownership.mask.reshape(-1, *(1,) * (x.ndim - 1)), x, 0)

    def sum(self, x: Array) -> Array:
        """The sum of `x`, `[n …]`, over all particles of the whole domain."""
        return self.space.sum(jnp.sum(self.mask_empty(x), axis=0))

    def local_rows(self, x: Array) -> Array:
        """What of `x`, which has a row for every particle of the whole domain, belongs to these."""
        if self.ownership is None or x.shape[0] != self.ownership.num_particles:
            return x
        return x.at[self.ownership.global_index].get(mode="clip")

    def all_rows(self, x: Array) -> Array:
        """The rows of `x`, `[n …]`, of all devices, in the order that the particles were given in."""
        if self.ownership is None:
            return x
        empty = jnp.zeros((self.ownership.num_particles, *x.shape[1:]), x.dtype)
        mine = empty.at[self.ownership.global_index].set(x, mode="drop")
        return self.space.max(mine) if x.dtype == bool else self.space.sum(mine)

    def equal_shard(self, x: Array) -> Array:
        """Of `whole(x)` an equal part, the same particles at all times wherever they are; zeros behind."""
        if self.ownership is None:
            return x
        return self.ownership.equal_shard(self.all_rows(x), self.space.comm)

    def shard(self, devices: tuple[int, ...]) -> "Particles":
        return shard_particles(self, devices)

    def unshard(self, devices: tuple[int, ...]) -> "Particles":
        del devices
        return unshard_particles(self)

    def needs_migration(self) -> Bool[Array, ""] | None:
        return None if self.ownership is None else needs_migration(self)

    def migrate(self) -> "Particles":
        return self if self.ownership is None else migrate_particles(self)[0]

    @property
    def is_migrating(self) -> bool:
        return self.ownership is not None

    def migrate_with(self, other: "Particles") -> tuple["Particles", "Particles"]:
        """`settled`, and what `other` says of these particles (a cotangent of theirs) in their new rows."""
        rows = row_arrays(other)
        settled, rows = migrate_particles(self, rows)
        return settled, replace_fields(other, {k: x for k, x in rows.items() if k != "fixed_point"})

    def restore_rows(
        self, begin: "Particles", other: "Particles"
    ) -> tuple["Particles", "Particles", Bool[Array, ""]]:
        """These and `other` in the rows of `begin`, and whether all of its particles are here."""
        there, rows, found = migrate_back(self, begin, row_arrays(other))
        return (
            there,
            replace_fields(other, {k: x for k, x in rows.items() if k != "fixed_point"}),
            found,
        )

    def grow_to_fit(self, measured: "Particles") -> tuple["Particles", list[str]]:
        return grow_particles(self, measured)

    def faults(self) -> Int[Array, ""]:
        light = jnp.where(jnp.any(self.mass <= 0), int(Fault.MASS), 0)
        return (light + jnp.where(self.space.is_degenerate(), int(Fault.SPACE), 0)).astype(
            jnp.int32
        )

    def _mobile(self, change: Float[Array, "n d"]) -> Float[Array, "n d"]:
        if self.ownership is not None:
            change = self.mask_empty(change)
        return change if self.frozen is None else jnp.where(self.frozen[:, None], 0, change)


def _float_array(value: Any) -> Array:
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def _array(value: Any, shape: tuple[int, ...], dtype: Any, name: str) -> Array:
    array = jnp.asarray(value, dtype)
    if array.ndim and array.shape != shape:
        raise ShapeError(f"{name} must have shape {shape} like the positions; got {array.shape}")
    return jnp.broadcast_to(array, shape)


def _integers(value: Any, n: int, name: str) -> Int[Array, " n"]:
    if not jnp.issubdtype(jnp.asarray(value).dtype, jnp.integer):
        raise ParameterError(f"{name} must be integers; got {jnp.asarray(value).dtype}")
    return _array(value, (n,), jnp.int32, name)


def _check_numbers(p: Particles) -> None:
    mass, ids, species = concrete_value(p.mass), concrete_value(p.id), concrete_value(p.species)
    if mass is not None and not np.all(mass > 0):
        worst = int(np.argmin(mass))
        raise ParameterError(f"masses must be positive; mass[{worst}] = {mass[worst]}")
    if ids is not None and len(np.unique(ids)) != len(ids):
        raise ParameterError("ids must be distinct: noise and frames go by them")
    if species is not None and species.size and species.min() < 0:
        raise ParameterError(f"species count from 0; got {species.min()}")
