"""Point particles: the component that molecular dynamics, gravity and plasmas share."""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    AbstractExactComponent,
    AbstractSlottedComponent,
    DeclarationError,
    Fault,
    Module,
    ParameterError,
    PyTree,
    ShapeError,
    concrete_value,
    data,
    replace_fields,
    replicate,
    round_before_add,
    with_tangent_of,
)
from physkit.geometry import AbstractSpace, Free

from ._arguments import as_argument, as_float_array, as_integers
from ._fixed_point_particles import FixedPointParticles
from .decomposition._migration import migrate, migrate_back
from .decomposition._migration_margin import widen_margin
from .decomposition._ownership import Ownership, Rows
from .decomposition._partition import empty_slots, grow_slots, partition, unpartition

# What a row of particles is made of, besides which particle it is.
_ROWS = ("position", "velocity", "mass", "image", "id", "charge", "species", "frozen")


class ParticleIncrement(Module):
    """A change, or rate of change, of particles; None for what does not change."""

    position: Float[Array, "n d"] | None = data(None)
    velocity: Float[Array, "n d"] | None = data(None)


class Particles(AbstractExactComponent, AbstractSlottedComponent):
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
    ownership: Ownership | None = None  # over devices: which of all particles these are
    evolving_leaves: ClassVar[tuple[str, ...]] = ("position", "velocity")
    kicked_leaves: ClassVar[tuple[str, ...]] = ("velocity",)
    slot_mask_path: ClassVar[str] = ".ownership.mask"

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
        position = as_float_array(position)
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
        self.velocity = as_argument(velocity, position.shape, dtype, "velocity")
        self.mass = as_argument(mass, (n,), dtype, "mass")
        self.charge = None if charge is None else as_argument(charge, (n,), dtype, "charge")
        self.species = None if species is None else as_integers(species, n, "species")
        self.id = jnp.arange(n, dtype=jnp.int32) if id is None else as_integers(id, n, "id")
        self.frozen = None if frozen is None else as_argument(frozen, (n,), bool, "frozen")
        image = jnp.zeros(position.shape, jnp.int32) if image is None else image
        self.image = as_argument(image, position.shape, jnp.int32, "image")
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

    def exact_bits(self) -> list[PyTree]:
        if self.fixed_point is None:
            raise ParameterError("these particles hold no fixed-point numbers")
        return [self.fixed_point.position, self.fixed_point.velocity.fixed_point, self.image]

    @property
    def migration_margin(self) -> float:
        """How far particles may be outside of their device's slab, in widths of it; 0 on one device."""
        return 0.0 if self.ownership is None else self.ownership.migration_margin

    # --- over the whole domain, on one device or many ----------------------------------------------

    @property
    def is_distributed(self) -> bool:
        """Whether these are one device's particles of a domain that is cut over several."""
        return self.ownership is not None

    def require_single_device(self, what: str, instead: str | None = None) -> None:
        """**Errors:** `DeclarationError` for particles that are cut over devices."""
        if self.is_distributed:
            advice = f"; write {instead}" if instead else ": run it on one device"
            raise DeclarationError(f"{what} cannot be cut over devices{advice}")

    def mask_empty(self, x: Array) -> Array:
        """`x`, `[n …]`, with 0 where a row holds no particle."""
        return x if self.ownership is None else self.ownership.where_present(x)

    def sum(self, x: Array) -> Array:
        """The sum of `x`, `[n …]`, over all particles of the whole domain."""
        return self.space.sum(jnp.sum(self.mask_empty(x), axis=0))

    def local_rows(self, x: Array) -> Array:
        """The rows of these particles, of `x` with a row for every particle of the whole domain."""
        if self.ownership is None or x.shape[0] != self.ownership.num_particles:
            return x
        return self.ownership.local_rows(x)

    def all_rows(self, x: Array) -> Array:
        """The rows of `x`, `[n …]`, of all devices, in the order that the particles were given in."""
        return x if self.ownership is None else self.ownership.all_rows(x, self.space)

    def equal_shard(self, x: Array) -> Array:
        """Of `all_rows(x)` the same equal part at all times, wherever particles are; zeros behind."""
        return x if self.ownership is None else self.ownership.equal_shard(x, self.space)

    # --- between devices ---------------------------------------------------------------------------

    def shard(self, devices: tuple[int, ...]) -> "Particles":
        rows, ownership = self._rows, None
        if math.prod(devices) > 1:
            rows, ownership = partition(rows, self.space, devices)
        else:
            rows = jax.tree.map(lambda x: replicate(x, devices), rows)
        others = self.space, self.fixed_point
        space, fixed_point = jax.tree.map(lambda x: replicate(x, devices), others)
        return self._with_rows(rows, ownership, space, fixed_point)

    def unshard(self, devices: tuple[int, ...]) -> "Particles":
        del devices
        first = lambda tree: jax.tree.map(lambda x: x[0], tree)
        fixed_point = None if self.fixed_point is None else self.fixed_point.share_faults()
        space, fixed_point = first((self.space, fixed_point))
        if self.ownership is None:
            return self._with_rows(first(self._rows), None, space, fixed_point)
        rows = unpartition(self._rows, self.ownership)
        return self._with_rows(rows, None, space, fixed_point)

    def needs_migration(self) -> Bool[Array, ""] | None:
        if self.ownership is None:
            return None
        return self.ownership.needs_migration(self.position, self.space)

    def migrate(self) -> "Particles":
        return self._migrate(None)[0]

    @property
    def is_migrating(self) -> bool:
        return self.ownership is not None

    def migrate_with(self, other: "Particles") -> tuple["Particles", "Particles"]:
        """`migrate`, and `other`, cotangents of these particles, in the rows that they have then."""
        migrated, rows = self._migrate(other._rows)
        return migrated, _without_fixed_point(other, rows)

    def restore_rows(
        self, begin: "Particles", other: "Particles"
    ) -> tuple["Particles", "Particles", Bool[Array, ""]]:
        """These and `other` in the rows of `begin`, and whether all of its particles are here."""
        assert self.ownership is not None
        assert begin.ownership is not None
        home = begin._rows, begin.ownership
        rows, along, all_found = migrate_back(
            self._rows, self.ownership, home, begin.space, other._rows
        )
        restored = self._with_rows(rows, begin.ownership, self.space, self.fixed_point)
        return restored, _without_fixed_point(other, along), all_found

    def grow_to_fit(self, measured: "Particles") -> tuple["Particles", list[str]]:
        if self.ownership is None or measured.ownership is None:
            return self, []
        rows, ownership, events = grow_slots(self._rows, self.ownership, measured.ownership)
        return self._with_rows(rows, ownership, self.space, self.fixed_point), events

    def widen_migration_margin(self, dt: Float[Array, ""] | float, has_halo: bool) -> "Particles":
        """These particles, in device layout, with a margin that the fastest does not cross in some steps.

        - `has_halo`: some force needs copies of particles near a slab, which a wide margin makes many.
        """
        if self.ownership is None:
            return self
        wider = widen_margin(self.ownership, self.velocity, self.space, dt, has_halo)
        return replace_fields(self, {"ownership": wider})

    @property
    def _rows(self) -> Rows:
        """All arrays with a row for each particle, by name; fixed-point numbers, too."""
        rows = {name: getattr(self, name) for name in _ROWS}
        fixed_point = None if self.fixed_point is None else self.fixed_point.rows
        return rows | {"fixed_point": fixed_point}

    def _with_rows(
        self,
        rows: Rows,
        ownership: Ownership | None,
        space: AbstractSpace,
        fixed_point: FixedPointParticles | None,
    ) -> "Particles":
        """A copy with other rows, where `fixed_point` is what fixed-point numbers have besides rows."""
        if fixed_point is not None:
            fixed_point = fixed_point.with_rows(rows["fixed_point"])
        changed = {"space": space, "fixed_point": fixed_point, "ownership": ownership}
        return replace_fields(self, {**rows, **changed})

    def _migrate(self, along: Rows | None) -> tuple["Particles", Rows | None]:
        if self.ownership is None:
            return self, along
        rows, ownership, along = migrate(self._rows, self.ownership, self.space, along)
        fixed_point = self.fixed_point
        if fixed_point is not None:
            fixed_point = fixed_point.poison_where(Fault.NOT_FINITE, ownership.is_broken)
        return self._with_rows(rows, ownership, self.space, fixed_point), along

    # --- slots: what the run-time layer asks (`AbstractSlottedComponent`) --------------------------

    @property
    def max_slots(self) -> int:
        return 0 if self.ownership is None else 2 * self.ownership.num_particles + 8

    @property
    def num_required_slots(self) -> int | None:
        return (
            None if self.ownership is None else int(np.max(np.asarray(self.ownership.num_present)))
        )

    def require_slots(self, count: int) -> "Particles":
        if self.ownership is None:
            return self
        present = np.full_like(np.asarray(self.ownership.num_present), count)
        ownership = replace_fields(self.ownership, {"num_present": present})
        return replace_fields(self, {"ownership": ownership})

    def resize_slots(self, count: int) -> "Particles":
        assert self.ownership is not None
        rows, ownership = empty_slots(self._rows, self.ownership, count)
        return self._with_rows(rows, ownership, self.space, self.fixed_point)

    def faults(self) -> Int[Array, ""]:
        light = jnp.where(jnp.any(self.mass <= 0), int(Fault.MASS), 0)
        return (light + jnp.where(self.space.is_degenerate(), int(Fault.SPACE), 0)).astype(
            jnp.int32
        )

    def _mobile(self, change: Float[Array, "n d"]) -> Float[Array, "n d"]:
        change = self.mask_empty(change)
        return change if self.frozen is None else jnp.where(self.frozen[:, None], 0, change)


def _without_fixed_point(cotangents: Particles, rows: Rows) -> Particles:
    """`cotangents` with these rows: integers have none."""
    return replace_fields(cotangents, {k: x for k, x in rows.items() if k != "fixed_point"})


def _check_numbers(p: Particles) -> None:
    mass, ids, species = concrete_value(p.mass), concrete_value(p.id), concrete_value(p.species)
    if mass is not None and not np.all(mass > 0):
        worst = int(np.argmin(mass))
        raise ParameterError(f"masses must be positive; mass[{worst}] = {mass[worst]}")
    if ids is not None and len(np.unique(ids)) != len(ids):
        raise ParameterError("ids must be distinct: noise and frames go by them")
    if species is not None and species.size and species.min() < 0:
        raise ParameterError(f"species count from 0; got {species.min()}")
