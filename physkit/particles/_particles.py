"""Point particles: the component for molecular dynamics, gravity and plasmas."""

from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
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
    cast_floats,
    data,
    replace_fields,
    replicate,
    round_before_add,
    static,
    with_tangent_of,
)
from physkit.geometry import AbstractSpace, Free

from ._arguments import Numbers, as_argument, as_float_array, as_integers, as_species, check_numbers
from ._fixed_point_particles import FixedPointParticles
from ._row_shapes import require_rows
from .decomposition._migration import migrate, migrate_back
from .decomposition._migration_margin import widen_margin
from .decomposition._ownership import Ownership, Rows
from .decomposition._partition import empty_slots, grow_slots, partition, unpartition

# The arrays with a row for each particle, which move with it between devices.
_ROWS = ("position", "velocity", "mass", "image", "id", "charge", "species", "frozen")


class ParticleIncrement(Module):
    """A change, or rate of change, of particles; None for what does not change."""

    position: Float[Array, "n d"] | None = data(None)
    velocity: Float[Array, "n d"] | None = data(None)


class Particles(AbstractExactComponent, AbstractSlottedComponent):
    """`n` point particles in `d` = 1, 2 or 3 dimensions, with the space they live in.

    **Arguments:**

    - `position`: `[n d]`, length. Wrapped into the cell as particles move; `image` counts the cells
      crossed, so that `unwrapped` is the continuous path.
    - `velocity`: `[n d]`, length / time; at rest if left out.
    - `mass`: `[n]`, or one for all; positive; 1 if left out.
    - `space`: `Free()` if left out.
    - `charge`: `[n]` or one for all; optional.
    - `species`: `[n]` integers from 0, rows of per-species tables, or names such as `["Na", "Cl", …]`, which
      are numbered as they come; optional. `species_names` are the names, by number.
    - `id`: `[n]` distinct integers, for noise and the order of frames; 0 … n−1 if left out.
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
    species_names: tuple[str, ...] | None = static(default=None)
    fixed_point: FixedPointParticles | None = None  # exact positions and velocities, for Reversible
    ownership: Ownership | None = None  # over devices: which of all particles these are
    evolving_leaves: ClassVar[tuple[str, ...]] = ("position", "velocity")
    kicked_leaves: ClassVar[tuple[str, ...]] = ("velocity",)
    slot_mask_path: ClassVar[str] = ".ownership.mask"

    def __init__(
        self,
        position: Numbers,
        velocity: Numbers | None = None,
        mass: Numbers = 1.0,
        space: AbstractSpace | None = None,
        *,
        charge: Numbers | None = None,
        species: Numbers | None = None,
        species_names: Sequence[str] | None = None,
        id: Numbers | None = None,
        frozen: Numbers | None = None,
        image: Numbers | None = None,
    ):
        position = as_float_array(position)
        if position.ndim != 2 or not 1 <= position.shape[1] <= 3:
            on_line = ": for particles on a line, positions[:, None]"
            hints = {1: on_line, 2: ": rows are particles, so give its transpose"}
            shape = f"{position.shape}{hints.get(position.ndim, '')}"
            raise ShapeError(f"position must be [n d] with d = 1, 2 or 3; got shape {shape}")
        n, dtype = position.shape[0], position.dtype
        space = Free() if space is None else space
        space.periodic_axes(position.shape[1])  # raises for a space of another dimension
        self.space = cast_floats(space, dtype)
        velocity = 0.0 if velocity is None else velocity
        self.position = position
        self.velocity = as_argument(velocity, position.shape, dtype, "velocity")
        self.mass = as_argument(mass, (n,), dtype, "mass")
        self.charge = None if charge is None else as_argument(charge, (n,), dtype, "charge")
        self.species, self.species_names = as_species(species, species_names, n)
        self.id = as_integers(np.arange(n) if id is None else id, n, "id")
        self.frozen = None if frozen is None else as_argument(frozen, (n,), bool, "frozen")
        self.image = as_argument(0 if image is None else image, position.shape, jnp.int32, "image")
        self.fixed_point, self.ownership = None, None
        check_numbers(self.mass, self.id, self.species)

    @property
    def num_slots(self) -> int:
        """Number of rows of the arrays; on a single device, the number of particles."""
        return self.position.shape[-2]

    @property
    def num_particles(self) -> int:
        """Number of particles in the whole domain."""
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
        """Positions as if they had never been wrapped, length."""
        return self.space.unwrap(self.position, self.image)

    def unwrap(self) -> "Particles":
        """These particles at their unwrapped positions."""
        return self.replace(position=self.unwrapped)

    def difference(self, other: "Particles") -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
        """The displacement from `other` to these particles by the minimum image, and that of velocities."""
        displacement = self.space.displacement(self.position, other.position)
        return displacement, self.velocity - other.velocity

    def shift(self, delta: ParticleIncrement) -> "Particles":
        """Particles moved by `delta.position` and wrapped, with velocities changed by `delta.velocity`."""
        require_rows(delta.position, self.position, "a change of position")
        require_rows(delta.velocity, self.position, "a change of velocity")
        out, exact = self, self.fixed_point
        # The compiler may fuse a product into the sum, in vector registers but not in the rest of an array
        # that fills none: the last bit would then depend on a particle's place in the array.
        delta = jax.tree.map(round_before_add, delta)
        if delta.position is not None:
            step = self._zero_immobile(delta.position)
            moved, crossed = self.space.wrap_with_image(self.position + step)
            if exact is not None:
                # Values from the exact integers, derivatives from the floating-point sum.
                exact, crossed = exact.drift(step)
                moved = with_tangent_of(exact.positions, moved)
            out = replace_fields(out, {"position": moved, "image": self.image + crossed})
        if delta.velocity is not None:
            change = self._zero_immobile(delta.velocity)
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
        """A copy with some arrays or the space replaced. The new values are not checked."""
        if {"position", "velocity", "image", "space"} & set(leaves):
            leaves = {"fixed_point": None, **leaves}  # the present one belongs to the old numbers
        return replace_fields(self, leaves)

    def to_fixed_point(
        self, dt: ArrayLike, range_factor: float, after: "Particles | None" = None
    ) -> "Particles":
        """These particles rounded to fixed-point numbers, to which `shift` adds exactly.

        Derivatives pass through. In open space the range of positions is `range_factor` times the largest
        distance from the origin now.
        """
        del after

        def largest(x: Array) -> Array:
            return self.space.max(jnp.max(self.mask_empty(x)))

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
        """How far particles may be outside of their device's slab, in widths of it; 0 on a single device."""
        return 0.0 if self.ownership is None else self.ownership.migration_margin

    # --- over the whole domain, on one device or many ----------------------------------------------

    @property
    def is_distributed(self) -> bool:
        """Whether these are one device's particles of a domain that is sharded over several."""
        return self.ownership is not None

    def require_single_device(self, what: str, instead: str | None = None) -> None:
        """**Errors:** `DeclarationError` for particles that are sharded over devices."""
        if self.is_distributed:
            advice = f"; write {instead}" if instead else ": run it on one device"
            raise DeclarationError(f"{what} cannot be sharded over devices{advice}")

    def mask_empty(self, x: Array) -> Array:
        """`x`, `[n …]`, with 0 where a row holds no particle."""
        return x if self.ownership is None else self.ownership.where_present(x)

    def sum(self, x: Array) -> Array:
        """The sum of `x`, `[n …]`, over all particles of the whole domain."""
        return self.space.sum(jnp.sum(self.mask_empty(x), axis=0))

    def local_rows(self, x: Array) -> Array:
        """The rows of these particles, from `x` with a row for every particle of the whole domain."""
        if self.ownership is None or x.shape[0] != self.ownership.num_particles:
            return x
        return self.ownership.local_rows(x)

    def all_rows(self, x: Array) -> Array:
        """The rows of `x`, `[n …]`, of all devices, in the order that the particles were given in."""
        return x if self.ownership is None else self.ownership.all_rows(x, self.space)

    def equal_shard(self, x: Array) -> Array:
        """This device's equal part of `all_rows(x)`, whichever particles it holds; padded with zeros."""
        return x if self.ownership is None else self.ownership.equal_shard(x, self.space)

    # --- between devices ---------------------------------------------------------------------------

    def shard(self, devices: tuple[int, ...]) -> "Particles":
        rows, ownership = self._rows, None
        if np.prod(devices) > 1:
            rows, ownership = partition(rows, self.space, devices)
        else:
            rows = jax.tree.map(lambda x: replicate(x, devices), rows)
        others = self.space, self.fixed_point
        space, fixed_point = jax.tree.map(lambda x: replicate(x, devices), others)
        return self._with_rows(rows, ownership, space, fixed_point)

    def unshard(self, devices: tuple[int, ...]) -> "Particles":
        del devices

        def first(tree: PyTree) -> PyTree:
            # The space and, without ownership, all rows are the same on every device.
            return jax.tree.map(lambda x: x[0], tree)

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
        """`migrate`; and `other`, the cotangents of these particles, moved to the same rows."""
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
        """These particles with a margin that takes the fastest several steps to cross."""
        if self.ownership is None:
            return self
        wider = widen_margin(self.ownership, self.velocity, self.space, dt, has_halo)
        return replace_fields(self, {"ownership": wider})

    @property
    def _rows(self) -> Rows:
        """All arrays with a row for each particle, by name, fixed-point numbers included."""
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
        """A copy with other rows; `fixed_point` gives the ranges of fixed-point numbers, but not their rows."""
        if fixed_point is not None:
            fixed_point = fixed_point.with_rows(rows["fixed_point"])
        return replace_fields(
            self, {**rows, "space": space, "fixed_point": fixed_point, "ownership": ownership}
        )

    def _migrate(self, along: Rows | None) -> tuple["Particles", Rows | None]:
        if self.ownership is None:
            return self, along
        rows, ownership, along = migrate(self._rows, self.ownership, self.space, along)
        fixed_point = self.fixed_point
        if fixed_point is not None:
            # `migrate` has poisoned the floats with NaN; integers have none, and need the fault.
            fixed_point = fixed_point.poison_where(Fault.NOT_FINITE, ownership.is_broken)
        return self._with_rows(rows, ownership, self.space, fixed_point), along

    # --- slots: what the run-time layer asks (`AbstractSlottedComponent`) --------------------------

    @property
    def max_slots(self) -> int:
        return 0 if self.ownership is None else 2 * self.ownership.num_particles + 8

    @property
    def num_required_slots(self) -> int | None:
        owned = self.ownership
        return None if owned is None else int(np.max(np.asarray(owned.num_present)))

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
        mass = jnp.where(jnp.any(self.mass <= 0), int(Fault.MASS), 0)
        space = jnp.where(self.space.is_degenerate(), int(Fault.SPACE), 0)
        return (mass + space).astype(jnp.int32)

    def _zero_immobile(self, change: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """`change`, 0 for frozen particles and in empty slots."""
        change = self.mask_empty(change)
        return change if self.frozen is None else jnp.where(self.frozen[:, None], 0, change)


def _without_fixed_point(cotangents: Particles, rows: Rows) -> Particles:
    """`cotangents` with these rows, but without fixed-point numbers: integers have no cotangents."""
    return replace_fields(cotangents, {k: x for k, x in rows.items() if k != "fixed_point"})
