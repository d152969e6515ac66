"""The constraints that particles carry: parts that bind small clusters, and what they share."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import (
    DeclarationError,
    Fault,
    Faults,
    ParameterError,
    cast_floats,
    describe,
    matmul,
    poison_where,
    power_of_two_above,
    ratio,
    recomputed,
    replace_fields,
    replicate,
    safe_divide,
)

from .._abstract_constraints import AbstractConstraint, AbstractConstraints
from .._particles import Particles
from ..forces.bonded._sharded_tuples import ShardedTuples, empty_tuples_for, local_tuples
from ..forces.bonded._tuples import Tuples
from ._cluster_solver import (
    Clusters,
    bond_vectors,
    member_changes,
    position_multipliers,
    sum_written_out,
    velocity_multipliers,
)
from ._clusters import ClusterGroup
from ._geometry_checks import check_clusters, require_disjoint, require_mobile


@eqx.filter_jit
def _lengths_by_group(constraint: "AbstractClusterConstraint") -> list[Float[Array, "k c"]]:
    # One program, not one for each operation.
    return [constraint.group_lengths(group, group.tuples) for group in constraint.groups]


class AbstractClusterConstraint(AbstractConstraint):
    """Fixed distances within clusters, which share no particle with one another.

    - `groups`: the clusters, by topology.
    - `max_iterations`: the most Newton steps before a drift counts as failed.
    """

    groups: eqx.AbstractVar[tuple[ClusterGroup, ...]]
    max_iterations: eqx.AbstractVar[int]

    @abc.abstractmethod
    def group_lengths(
        self, group: ClusterGroup, tables: Tuples | ShardedTuples
    ) -> Float[Array, "k c"]:
        """The lengths of the bonds of a group, `[k c]` or `[k 1]`."""

    def velocity_changes(
        self, clusters: Clusters, dt: Float[Array, ""]
    ) -> tuple[Float[Array, "a c d"], Float[Array, " c"]]:
        """The changes of the members' velocities, and the relative errors of lengths after a drift by `dt`."""
        multipliers, errors = position_multipliers(clusters, dt, self.max_iterations)
        return member_changes(clusters, safe_divide(multipliers, dt)), errors

    def require_valid(self, particles: Particles) -> None:
        """**Errors:** of the constraint, for particles that it does not fit."""
        for group, lengths in zip(self.groups, _lengths_by_group(self), strict=True):
            group.tuples.require_inside(particles, type(self).__name__)
            require_mobile(group, particles)
            check_clusters(group, lengths, particles)

    def attach(self, particles: Particles) -> AbstractConstraints:
        return Constraints.of(self).attach(particles)

    def __add__(self, other: object) -> "Constraints":
        return Constraints.of(self, other)


class Constraints(AbstractConstraints):
    """A sum of constraints, as particles carry it.

    - `parts`: constraints that share no particles. `tables`: over devices, for each group of each part, the
      clusters of this device's particles.
    - `faults`: whether a drift has failed to meet the constraints.
    """

    parts: tuple[AbstractClusterConstraint, ...]
    tables: tuple[ShardedTuples | None, ...]
    faults: Faults

    @staticmethod
    def of(*constraints: object) -> "Constraints":
        """Constraints, and sums of them, as one flat sum."""
        parts: list[AbstractClusterConstraint] = []
        for constraint in constraints:
            if isinstance(constraint, Constraints):
                parts.extend(constraint.parts)
            elif isinstance(constraint, AbstractClusterConstraint):
                parts.append(constraint)
            else:
                raise DeclarationError(
                    f"expected constraints, got {describe(constraint)}; e.g. "
                    "DistanceConstraints(pairs, lengths) + RigidWater(molecules)"
                )
        groups = sum(len(part.groups) for part in parts)
        return Constraints(tuple(parts), (None,) * groups, Faults.none())

    def __add__(self, other: object) -> "Constraints":
        return Constraints.of(self, other)

    @property
    def num_constraints(self) -> int:
        return sum(group.rows.shape[-2] * len(group.bonds) for _, group, _ in self._groups)

    def num_centers(self, particles: Particles) -> int:
        shapes = [group.tuples.places.shape[-2:] for _, group, _ in self._groups]
        return particles.num_particles - sum(count * (members - 1) for count, members in shapes)

    def attach(self, particles: Particles) -> "Constraints":
        if particles.is_distributed:
            raise ParameterError("give particles their constraints before they are sharded")
        fitted = cast_floats(self, particles.position.dtype)
        require_disjoint([group for _, group, _ in self._groups], particles.num_particles)
        for part in fitted.parts:
            part.require_valid(particles)
        return fitted

    def drift_change(
        self, particles: Particles, dt: Float[Array, ""]
    ) -> tuple[Float[Array, "n d"], "Constraints"]:
        total = jnp.zeros_like(particles.velocity)
        faults, all_tables = self.faults, []
        for part, tables, clusters in self._local(particles):
            changes, errors = part.velocity_changes(clusters, dt)
            limit = _tolerance(errors.dtype)
            has_failed = ~(errors <= limit)
            # A fault that nobody reads, inside of a gradient, must not leave a number behind.
            changes = poison_where(changes, has_failed[None, :, None])
            total = total + tables.sum_forces(changes, particles)
            faults = faults.set_if(Fault.CONSTRAINT, jnp.any(has_failed))
            all_tables.append(tables if isinstance(tables, ShardedTuples) else None)
        return total, replace_fields(self, {"faults": faults, "tables": tuple(all_tables)})

    def kick_change(self, particles: Particles) -> Float[Array, "n d"]:
        total = jnp.zeros_like(particles.velocity)
        for _, tables, clusters in self._local(particles):
            total = total + tables.sum_forces(recomputed(_kick_changes)(clusters), particles)
        return total

    def is_violated(self, particles: Particles) -> Bool[Array, ""]:
        violated = jnp.zeros((), bool)
        for _, _, clusters in self._local(particles):
            squares = jnp.sum(clusters.vectors**2, axis=1) / clusters.lengths**2
            # Far above rounding and the solver's tolerance, far below what would change the physics.
            limit = 8 * float(jnp.finfo(squares.dtype).eps) ** 0.5
            is_off = jnp.any(~(jnp.abs(squares - 1) <= limit), axis=0)
            violated = violated | jnp.any(is_off & clusters.is_used)
        return violated

    def virial(self, particles: Particles, force: Float[Array, "n d"]) -> Float[Array, "d d"]:
        d = particles.dimension
        total = jnp.zeros((d, d), particles.position.dtype)
        acceleration = particles.replace(velocity=ratio(force, particles.mass[:, None]))
        moving, pulled_by = self._local(particles), self._local(acceleration)
        for (_, tables, clusters), (_, _, accelerated) in zip(moving, pulled_by, strict=True):
            # d²/dt² of |s|²/2 vanishes: s·a + |u|² = 0.
            s, u, a = clusters.vectors, clusters.velocities, accelerated.velocities
            along = velocity_multipliers(clusters, sum_written_out(s * a + u * u, axis=1))
            along = along * clusters.mass[None]
            each = jnp.moveaxis(s * along[:, None], 2, 0)  # (clusters, bonds, d)
            each = tables.weight_by_ownership(each).reshape(-1, d)
            total = total + matmul(jnp.moveaxis(s, 2, 0).reshape(-1, d).T, each)
        return particles.space.sum(total)

    def to_centers(self, particles: Particles) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
        d, space = particles.dimension, particles.space
        total = jnp.zeros((particles.num_slots, 2 * d), particles.position.dtype)
        packed = _packed(particles)
        for _, group, sharded in self._groups:
            tables = local_tuples(group.tuples, particles, sharded)
            x, v, inverse_mass = jnp.split(tables.members(packed, particles), [d, 2 * d], axis=2)
            # As seen from the first member: molecules may cross the border of the box.
            seen = jnp.concatenate([space.displacement(x, x[:1]), v - v[:1]], axis=2)
            weights = ratio(1.0, inverse_mass)
            center = ratio(jnp.sum(weights * seen, axis=0), jnp.sum(weights, axis=0))
            total = total + tables.sum_forces(center[None] - seen, particles)
        return total[:, :d], total[:, d:]

    def shared_by_cluster(self, particles: Particles, x: Float[Array, " n"]) -> Float[Array, " n"]:
        total = x[:, None]
        for _, group, sharded in self._groups:
            tables = local_tuples(group.tuples, particles, sharded)
            members = tables.members(x[:, None], particles)
            total = total + tables.sum_forces(members[:1] - members, particles)
        return total[:, 0]

    # --- over devices ------------------------------------------------------------------------------

    def shard(self, devices: tuple[int, ...], num_slots: int | None) -> "Constraints":
        replicated = jax.tree.map(lambda x: replicate(x, devices), self)
        if num_slots is None:
            return replicated
        count = math.prod(devices)
        tables = tuple(
            empty_tuples_for(group.tuples, num_slots, count, (count,))
            for _, group, _ in self._groups
        )
        return replace_fields(replicated, {"tables": tables})

    def unshard(self) -> "Constraints":
        bits = jnp.max(self.faults.bits)  # one kind of fault: that of any device
        without_tables = replace_fields(self, {"tables": (None,) * len(self.tables)})
        first = jax.tree.map(lambda x: x[0], without_tables)
        return replace_fields(first, {"faults": Faults(bits)})

    def invalidate(self) -> "Constraints":
        tables = tuple(None if one is None else one.invalidate() for one in self.tables)
        return replace_fields(self, {"tables": tables})

    def grow_to_fit(
        self, measured: "Constraints", num_slots: int
    ) -> tuple["Constraints", list[str]]:
        tables, events = [], []
        for own, other in zip(self.tables, measured.tables, strict=True):
            if own is not None and other is not None:
                own, grown = own.grow_to_fit(other)
                events += [f"{text} (constraints)" for text in grown]
            tables.append(own)
        return replace_fields(self, {"tables": tuple(tables)}).resize_slots(num_slots), events

    def resize_slots(self, num_slots: int) -> "Constraints":
        tables = tuple(
            one if one is None or one.num_slots == num_slots else one.resize(num_slots=num_slots)
            for one in self.tables
        )
        return replace_fields(self, {"tables": tables})

    # --- clusters ----------------------------------------------------------------------------------

    @property
    def _groups(
        self,
    ) -> list[tuple[AbstractClusterConstraint, ClusterGroup, ShardedTuples | None]]:
        pairs = [(part, group) for part in self.parts for group in part.groups]
        return [(*pair, tables) for pair, tables in zip(pairs, self.tables, strict=True)]

    def _local(
        self, particles: Particles
    ) -> list[tuple[AbstractClusterConstraint, Tuples | ShardedTuples, Clusters]]:
        """For each group its part, the tables of this device, and its clusters."""
        packed, local = _packed(particles), []
        for part, group, sharded in self._groups:
            tables = local_tuples(group.tuples, particles, sharded)
            vectors, velocities, inverse_masses = bond_vectors(
                group.bonds, tables.members(packed, particles), particles.space
            )
            lengths = part.group_lengths(group, tables)
            used = tables.is_used
            largest = jnp.max(jax.lax.stop_gradient(inverse_masses), axis=0)
            mass = 1 / power_of_two_above(largest)
            relative = inverse_masses * mass[None]
            clusters = Clusters(group.bonds, vectors, velocities, relative, lengths, mass, used)
            if sharded is not None:
                clusters = _fill_unused(clusters)
            local.append((part, tables, clusters))
        return local


def _kick_changes(clusters: Clusters) -> Float[Array, "a c d"]:
    """Changes of the members' velocities after which no bond gets longer or shorter."""
    rates = sum_written_out(clusters.vectors * clusters.velocities, axis=1)
    return member_changes(clusters, velocity_multipliers(clusters, rates))


def _fill_unused(clusters: Clusters) -> Clusters:
    """`clusters` with one of some shape, at rest, in rows without any: all its members are one particle there.

    Its bonds would have the length 0, and derivatives by lengths be 0/0 on devices without clusters.
    """
    used, (count, _) = clusters.is_used, clusters.inverse_masses.shape
    dimension = clusters.vectors.shape[1]
    places = np.cos(2.1 * np.arange(count)[:, None] + 1.3 * np.arange(dimension))
    vectors = np.stack([places[a] - places[b] for a, b in clusters.bonds])
    lengths = np.sqrt(np.sum(vectors**2, axis=1))
    dtype = clusters.vectors.dtype
    return clusters._replace(
        vectors=jnp.where(used, clusters.vectors, jnp.asarray(vectors[..., None], dtype)),
        velocities=jnp.where(used, clusters.velocities, 0),
        inverse_masses=jnp.where(used, clusters.inverse_masses, 1),
        lengths=jnp.where(used, clusters.lengths, jnp.asarray(lengths[:, None], dtype)),
    )


def _packed(particles: Particles) -> Float[Array, "n f"]:
    """x, v and 1/m: all that clusters need travels together, as messages cost more than bytes."""
    inverse_mass = ratio(1.0, particles.mass[:, None])
    return jnp.concatenate([particles.position, particles.velocity, inverse_mass], axis=1)


def _tolerance(dtype: jnp.dtype) -> float:
    """The relative error of a length at which a drift has met its constraints."""
    # In single precision many molecules over many steps meet every rounding there is.
    return max(1e-10, 64 * float(jnp.finfo(dtype).eps))
