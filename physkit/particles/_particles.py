"""Point particles: the component for molecular dynamics, gravity and plasmas."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    DeclarationError,
    Fault,
    Module,
    NotReversible,
    ParameterError,
    PyTree,
    Rate,
    ShapeError,
    cast_floats,
    data,
    describe,
    ratio,
    replace_fields,
    round_before_add,
    static,
    with_tangent_of,
)
from physkit.geometry import AbstractSpace, Free

from ._abstract_bodies import AbstractBodies
from ._abstract_constraints import AbstractConstraint, AbstractConstraints
from ._arguments import (
    Numbers,
    as_argument,
    as_float_array,
    as_integers,
    as_replacement,
    as_species,
    check_numbers,
)
from ._fixed_point_particles import FixedPointParticles
from ._row_shapes import require_rows
from .decomposition._ownership import Ownership


class ParticleIncrement(Module):
    """A change, or rate of change, of particles; None for what does not change."""

    position: Float[Array, "n d"] | None = data(None)
    velocity: Float[Array, "n d"] | None = data(None)


class Particles(AbstractBodies):
    """`n` point particles in `d` = 1, 2 or 3 dimensions, with the space they live in.

    **Arguments:**

    - `position`: `[n d]`, length. Wrapped into the cell as particles move; `image` counts the cells
      crossed, so that `unwrapped` is the continuous path.
    - `velocity`: `[n d]`, length / time; at rest if left out.
    - `mass`: `[n]`, or one for all; positive; 1 if left out.
    - `space`: `Free()` if left out.
    - `charge`: `[n]` or one for all; optional.
    - `species`: `[n]` integers from 0, rows of per-species tables, or names such as `["Na", "Cl", …]`, which
      are numbered as they come; optional. `species_names` are the names, by number; `C:2` is carbon, too.
    - `id`: `[n]` distinct integers, for noise and the order of frames; 0 … n−1 if left out.
    - `frozen`: `[n]` bools; frozen particles exert forces and never move; optional.
    - `constraints`: `DistanceConstraints(…)`, `RigidWater(…)` or a sum of them; optional.

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
    constraints: AbstractConstraints | None = None
    row_names: ClassVar[tuple[str, ...]] = (
        "position", "velocity", "mass", "image", "id", "charge", "species", "frozen",
    )  # fmt: skip
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
        constraints: AbstractConstraint | None = None,
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
        self.fixed_point, self.ownership, self.constraints = None, None, None
        check_numbers(self.mass, self.id, self.species)
        self.constraints = None if constraints is None else constraints.attach(self)

    def unwrap(self) -> "Particles":
        """These particles at their unwrapped positions."""
        return self.replace(position=self.unwrapped)

    def difference(self, other: "Particles") -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
        """The displacement from `other` to these particles by the minimum image, and that of velocities."""
        displacement = self.space.displacement(self.position, other.position)
        return displacement, self.velocity - other.velocity

    def as_own_increment(self, delta: Rate) -> Rate:
        """**Errors:** `ShapeError` for arrays that do not say what of particles they change."""
        if eqx.is_array_like(delta) or isinstance(delta, dict | list | tuple):
            raise ShapeError(
                "the rate of particles is ParticleIncrement(position=…, velocity=…), one or both `[n d]`; got "
                f"{describe(delta)}"
            )
        return delta

    def shift(self, delta: ParticleIncrement) -> "Particles":
        """Particles moved by `delta.position` and wrapped, with velocities changed by `delta.velocity`.

        **Errors:** `DeclarationError` for a change of the positions of particles with constraints.
        """
        require_rows(delta.position, self.position, "a change of position")
        require_rows(delta.velocity, self.position, "a change of velocity")
        if self.constraints is None:
            return self._shift(delta)
        if delta.position is not None:
            raise DeclarationError(
                "these particles have constraints, which an arbitrary change of positions would break: "
                "integrate them by drifts and kicks (VelocityVerlet and its compositions, Leapfrog, BAOAB, "
                "NoseHooverChain)"
            )
        return self._shift(delta).constrain_velocities()

    def _shift(self, delta: ParticleIncrement) -> "Particles":
        """`shift`, without regard to constraints."""
        # The compiler may fuse a product into the sum, in vector registers but not in the rest of an array
        # that fills none: the last bit would then depend on a particle's place in the array.
        delta = jax.tree.map(round_before_add, delta)
        changes, exact = self._move_points(delta.position, delta.velocity, self.fixed_point)
        return replace_fields(self, changes if exact is None else {**changes, "fixed_point": exact})

    def drift(self, dt: Float[Array, ""]) -> "Particles":
        """x + dt·v; with constraints to where they hold."""
        if self.constraints is None:
            return self.shift(ParticleIncrement(position=dt * self.velocity))
        change, constraints = self.constraints.drift_change(self, dt)
        velocity = self.velocity + change
        moved = self._shift(ParticleIncrement(position=dt * velocity))
        moved = replace_fields(moved, {"velocity": velocity, "constraints": constraints})
        return moved.constrain_velocities()

    def displace(self, change: Float[Array, "n d"]) -> "Particles":
        """These particles moved by `change`; with constraints to where they hold."""
        if self.constraints is None:
            return self.shift(ParticleIncrement(position=change))
        moved = self.replace(velocity=change).drift(jnp.ones((), change.dtype))
        return moved.replace(velocity=self.velocity)

    def constrain_velocities(self) -> "Particles":
        """These particles with velocities that keep the constraints: the nearest ones, weighted by mass."""
        if self.constraints is None:
            return self
        velocity = self.velocity + self.constraints.kick_change(self)
        return replace_fields(self, {"velocity": velocity})

    def kick(self, force: Float[Array, "n d"], dt: Float[Array, ""]) -> "Particles":
        """v + dt·F/m."""
        return self.shift(ParticleIncrement(velocity=self.velocity_change(force, dt)))

    @property
    def generalized_velocity(self) -> Float[Array, "n d"]:
        return self.velocity

    @property
    def generalized_mass(self) -> Float[Array, "n 1"]:
        return self.mass[:, None]

    def kinetic_energies(self) -> Float[Array, " n"]:
        return 0.5 * (self.mass * jnp.sum(self.velocity * self.velocity, axis=1))

    def shift_velocity(self, change: Float[Array, "n d"]) -> "Particles":
        return self.shift(ParticleIncrement(velocity=change))

    def replace_velocity(self, velocity: Float[Array, "n d"]) -> "Particles":
        return self.replace(velocity=velocity)

    def rate(self, force: Float[Array, "n d"]) -> ParticleIncrement:
        """dx/dt = v and dv/dt = F/m."""
        return ParticleIncrement(position=self.velocity, velocity=ratio(force, self.mass[:, None]))

    def site_particles(self) -> "Particles":
        return self

    def require_force(self, force: Array, what: str) -> None:
        require_rows(force, self.position, what)

    def constrain_force(self, force: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """`force` without what the constraints take up of it."""
        if self.constraints is None:
            return force
        mass = self.mass[:, None]
        return mass * self.replace(velocity=ratio(force, mass)).constrain_velocities().velocity

    def replace(self, **leaves: Any) -> "Particles":
        """A copy with some arrays or the space replaced; numbers and lists become arrays, as at the start.

        **Errors:** `ShapeError` for another shape than that of the positions. Values are not checked.
        """
        position = leaves.get("position", self.position)
        if isinstance(position, list | tuple | np.ndarray):
            leaves["position"] = position = jnp.asarray(position, self.position.dtype)
        if isinstance(position, jax.Array) and position.ndim == 2:
            shapes = {
                "velocity": position.shape,
                "mass": position.shape[:1],
                "charge": position.shape[:1],
            }
            for name in (name for name in shapes if name in leaves):
                if leaves[name] is not None:
                    leaves[name] = as_replacement(leaves[name], shapes[name], position.dtype, name)
        if {"position", "velocity", "image", "space"} & set(leaves):
            leaves = {"fixed_point": None, **leaves}  # the present one belongs to the old numbers
        return replace_fields(self, leaves)

    def to_fixed_point(
        self,
        dt: ArrayLike,
        range_factor: float,
        after: "Particles | None" = None,
        smallest_range: float = 0.0,
    ) -> "Particles":
        """These particles rounded to fixed-point numbers, to which `shift` adds exactly.

        Derivatives pass through. In open space the range of positions is `range_factor` times the largest
        distance from the origin now.
        """
        del after, smallest_range
        if self.constraints is not None:
            raise NotReversible(
                "constraints are solved to rounding, which cannot be reversed to the last bit: Reversible() "
                "needs particles without them. Use adjoint=NestedCheckpoint(), or springs for bonds"
            )

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

    def faults(self) -> Int[Array, ""]:
        mass = jnp.where(jnp.any(self.mass <= 0), int(Fault.MASS), 0)
        space = jnp.where(self.space.is_degenerate(), int(Fault.SPACE), 0)
        bits = (mass + space).astype(jnp.int32)
        if self.constraints is None:
            return bits
        violated = self.constraints.is_violated(self)
        return bits + jnp.where(violated, jnp.int32(Fault.CONSTRAINT), 0)
