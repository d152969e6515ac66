"""Particles over devices: which rows each holds, how they migrate, and sums over the whole domain."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import (
    AbstractExactComponent,
    AbstractSlottedComponent,
    DeclarationError,
    Fault,
    PyTree,
    replace_fields,
    replicate,
)
from physkit.geometry import AbstractSpace

from ._abstract_constraints import AbstractConstraints
from .decomposition._migration import migrate, migrate_back
from .decomposition._migration_margin import widen_margin
from .decomposition._ownership import Ownership, Rows
from .decomposition._partition import empty_slots, grow_slots, partition, unpartition


class AbstractShardedParticles(AbstractExactComponent, AbstractSlottedComponent):
    """What particles and rigid bodies are over devices; on a single device almost nothing of it acts."""

    position: eqx.AbstractVar[Float[Array, "n d"]]
    velocity: eqx.AbstractVar[Float[Array, "n d"]]
    space: eqx.AbstractVar[AbstractSpace]
    # The arrays with a row for each particle, which move with it between devices.
    row_names: eqx.AbstractClassVar[tuple[str, ...]]
    ownership: eqx.AbstractVar[Ownership | None]
    constraints: eqx.AbstractVar[AbstractConstraints | None]

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
    def migration_margin(self) -> float:
        """How far particles may be outside of their device's slab, in widths of it; 0 on a single device."""
        return 0.0 if self.ownership is None else self.ownership.migration_margin

    # --- over the whole domain, on one device or many ----------------------------------------------

    @property
    def is_distributed(self) -> bool:
        """Whether these are one device's particles of a domain that is sharded over several."""
        return self.ownership is not None

    @property
    def is_everywhere(self) -> bool:
        """Whether over devices each has all of these, in place of those in its part of the domain."""
        return False

    @property
    def part_reach(self) -> float | None:
        """How far parts of one of these are from it, a length; None where a trace hides it."""
        return 0.0

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

    def shard(self, devices: tuple[int, ...]) -> "AbstractShardedParticles":
        rows, ownership = self._rows, None
        if math.prod(devices) > 1 and not self.is_everywhere:
            rows, ownership = partition(rows, self.space, devices, self.part_reach)
        else:
            rows = jax.tree.map(lambda x: replicate(x, devices), rows)
        others = self.space, self.fixed_point
        space, fixed_point = jax.tree.map(lambda x: replicate(x, devices), others)
        sharded = self._with_rows(rows, ownership, space, fixed_point)
        num_slots = None if ownership is None else ownership.num_slots
        return sharded._map_constraints(lambda c: c.shard(devices, num_slots))

    def unshard(self, devices: tuple[int, ...]) -> "AbstractShardedParticles":
        del devices

        def first(tree: PyTree) -> PyTree:
            # The space and, without ownership, all rows are the same on every device.
            return jax.tree.map(lambda x: x[0], tree)

        fixed_point = None if self.fixed_point is None else self.fixed_point.share_faults()
        space, fixed_point = first((self.space, fixed_point))
        own = self.ownership
        rows = first(self._rows) if own is None else unpartition(self._rows, own)
        whole = self._with_rows(rows, None, space, fixed_point)
        return whole._map_constraints(lambda c: c.unshard())

    def needs_migration(self) -> Bool[Array, ""] | None:
        if self.ownership is None:
            return None
        return self.ownership.needs_migration(self.position, self.space)

    def migrate(self) -> "AbstractShardedParticles":
        return self._migrate(None)[0]

    @property
    def is_migrating(self) -> bool:
        return self.ownership is not None

    def migrate_with(
        self, other: "AbstractShardedParticles"
    ) -> tuple["AbstractShardedParticles", "AbstractShardedParticles"]:
        """`migrate`; and `other`, the cotangents of these particles, moved to the same rows."""
        migrated, rows = self._migrate(other._rows)
        return migrated, _without_fixed_point(other, rows)

    def restore_rows(
        self, begin: "AbstractShardedParticles", other: "AbstractShardedParticles"
    ) -> tuple["AbstractShardedParticles", "AbstractShardedParticles", Bool[Array, ""]]:
        """These and `other` in the rows of `begin`, and whether all of its particles are here."""
        assert self.ownership is not None
        assert begin.ownership is not None
        home = begin._rows, begin.ownership
        rows, along, all_found = migrate_back(
            self._rows, self.ownership, home, begin.space, other._rows
        )
        restored = self._with_rows(rows, begin.ownership, self.space, self.fixed_point)
        return restored, _without_fixed_point(other, along), all_found

    def grow_to_fit(
        self, measured: "AbstractShardedParticles"
    ) -> tuple["AbstractShardedParticles", list[str]]:
        if self.ownership is None or measured.ownership is None:
            return self, []
        rows, ownership, events = grow_slots(self._rows, self.ownership, measured.ownership)
        grown = self._with_rows(rows, ownership, self.space, self.fixed_point)
        if self.constraints is None or measured.constraints is None:
            return grown, events
        constraints, more = self.constraints.grow_to_fit(measured.constraints, ownership.num_slots)
        return replace_fields(grown, {"constraints": constraints}), events + more

    def widen_migration_margin(
        self, dt: Float[Array, ""] | float, has_halo: bool
    ) -> "AbstractShardedParticles":
        """These particles, in device layout, with a margin that takes the fastest several steps to cross.

        - `has_halo`: whether some force needs a halo, which a wide margin makes large.
        """
        if self.ownership is None:
            return self
        wider = widen_margin(self.ownership, self.velocity, self.space, dt, has_halo)
        return replace_fields(self, {"ownership": wider})

    @property
    def _rows(self) -> Rows:
        """All arrays with a row for each particle, by name, fixed-point numbers included."""
        rows = {name: getattr(self, name) for name in self.row_names}
        fixed_point = None if self.fixed_point is None else self.fixed_point.rows
        return rows | {"fixed_point": fixed_point}

    def _with_rows(
        self,
        rows: Rows,
        ownership: Ownership | None,
        space: AbstractSpace,
        fixed_point: Any,
    ) -> "AbstractShardedParticles":
        """A copy with other rows; `fixed_point` gives the ranges of fixed-point numbers, but not their rows."""
        if fixed_point is not None:
            fixed_point = fixed_point.with_rows(rows["fixed_point"])
        changed = {"space": space, "fixed_point": fixed_point, "ownership": ownership}
        return replace_fields(self, {**rows, **changed})

    def _migrate(self, along: Rows | None) -> tuple["AbstractShardedParticles", Rows | None]:
        if self.ownership is None:
            return self, along
        rows, ownership, along = migrate(self._rows, self.ownership, self.space, along)
        fixed_point = self.fixed_point
        if fixed_point is not None:
            # `migrate` has poisoned the floats with NaN; integers have none, and need the fault.
            fixed_point = fixed_point.poison_where(Fault.NOT_FINITE, ownership.is_broken)
        migrated = self._with_rows(rows, ownership, self.space, fixed_point)
        return migrated._map_constraints(lambda c: c.invalidate()), along

    def _map_constraints(
        self, change: Callable[[AbstractConstraints], AbstractConstraints]
    ) -> "AbstractShardedParticles":
        """A copy with other constraints, where there are any."""
        if self.constraints is None:
            return self
        return replace_fields(self, {"constraints": change(self.constraints)})

    # --- slots: what the run-time layer asks (`AbstractSlottedComponent`) --------------------------

    @property
    def max_slots(self) -> int:
        return 0 if self.ownership is None else 2 * self.ownership.num_particles + 8

    @property
    def num_required_slots(self) -> int | None:
        return (
            None if self.ownership is None else int(np.max(np.asarray(self.ownership.num_present)))
        )

    def require_slots(self, count: int) -> "AbstractShardedParticles":
        if self.ownership is None:
            return self
        present = np.full_like(np.asarray(self.ownership.num_present), count)
        ownership = replace_fields(self.ownership, {"num_present": present})
        return replace_fields(self, {"ownership": ownership})

    def resize_slots(self, count: int) -> "AbstractShardedParticles":
        assert self.ownership is not None
        rows, ownership = empty_slots(self._rows, self.ownership, count)
        resized = self._with_rows(rows, ownership, self.space, self.fixed_point)
        return resized._map_constraints(lambda c: c.resize_slots(count))


def _without_fixed_point(
    cotangents: AbstractShardedParticles, rows: Rows
) -> AbstractShardedParticles:
    """`cotangents` with these rows, but without fixed-point numbers: integers have no cotangents."""
    return replace_fields(cotangents, {k: x for k, x in rows.items() if k != "fixed_point"})
