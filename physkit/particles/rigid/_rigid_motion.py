"""The motion of rigid bodies: drifts, free rotations and kicks by wrenches, in floats or exactly."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from physkit.core import (
    Fault,
    Module,
    ParameterError,
    PyTree,
    ShapeError,
    call_isolated,
    data,
    power_of_two_above,
    ratio,
    replace_fields,
    round_before_add,
    safe_divide,
    with_tangent_of,
)

from .._abstract_bodies import AbstractBodies
from .._arguments import as_replacement
from .._fixed_point_particles import FixedPointParticles
from ._fixed_point_bodies import FixedPointBodies
from ._free_rotation import rotate_freely
from ._quaternions import from_rotation_vector, multiply, normalize, rotate, rotate_back


class RigidBodyIncrement(Module):
    """A change, or rate of change, of rigid bodies; None for what does not change."""

    position: Float[Array, "n 3"] | None = data(None)
    velocity: Float[Array, "n 3"] | None = data(None)
    orientation: Float[Array, "n 4"] | None = data(None)
    angular_momentum: Float[Array, "n 3"] | None = data(None)


class AbstractRigidMotion(AbstractBodies):
    """How `RigidBodies` move: center and velocity in space, quaternion, angular momentum in body axes."""

    orientation: eqx.AbstractVar[Float[Array, "n 4"]]
    angular_momentum: eqx.AbstractVar[Float[Array, "n 3"]]
    inertia: eqx.AbstractVar[Float[Array, "n 3"]]
    site_offset: eqx.AbstractVar[Float[Array, "n s 3"]]
    linear: eqx.AbstractVar[bool]
    fixed_point: eqx.AbstractVar[FixedPointBodies | None]
    evolving_leaves: ClassVar[tuple[str, ...]] = (
        "position", "velocity", "orientation", "angular_momentum",
    )  # fmt: skip
    kicked_leaves: ClassVar[tuple[str, ...]] = ("velocity", "angular_momentum")
    slot_mask_path: ClassVar[str] = ".ownership.mask"

    @property
    def num_rotations(self) -> int:
        return 2 if self.linear else 3

    @property
    def body_angular_velocity(self) -> Float[Array, "n 3"]:
        """ω in body axes, 1 / time."""
        return safe_divide(self.angular_momentum, self._turning_inertia)

    @property
    def angular_velocity(self) -> Float[Array, "n 3"]:
        """ω in space, 1 / time."""
        return rotate(self.orientation, self.body_angular_velocity)

    @property
    def spin(self) -> Float[Array, "n 3"]:
        """L in space: the angular momentum of each body about its center."""
        return rotate(self.orientation, self.angular_momentum)

    @property
    def generalized_velocity(self) -> Float[Array, "n 6"]:
        """Velocities of the centers, and ω in body axes."""
        return jnp.concatenate([self.velocity, self.body_angular_velocity], axis=1)

    @property
    def generalized_mass(self) -> Float[Array, "n 6"]:
        return jnp.concatenate(
            [jnp.broadcast_to(self.mass[:, None], self.inertia.shape), self._turning_inertia], 1
        )

    def kinetic_energies(self) -> Float[Array, " n"]:
        turning = jnp.sum(self.angular_momentum * self.body_angular_velocity, axis=1)
        return 0.5 * (self.mass * jnp.sum(self.velocity * self.velocity, axis=1) + turning)

    def shift_velocity(self, change: Float[Array, "n 6"]) -> "AbstractRigidMotion":
        momentum = self._turning_inertia * change[:, 3:]
        return self.shift(RigidBodyIncrement(velocity=change[:, :3], angular_momentum=momentum))

    def replace_velocity(self, velocity: Float[Array, "n 6"]) -> "AbstractRigidMotion":
        momentum = self._turning_inertia * velocity[:, 3:]
        return self.replace(velocity=velocity[:, :3], angular_momentum=momentum)

    def require_force(self, force: Array, what: str) -> None:
        if jnp.shape(force) != (self.num_slots, 6):
            raise ShapeError(
                f"{what} has shape {list(jnp.shape(force))}; on these rigid bodies it is "
                f"[{self.num_slots}, 6]: force and torque about the center, in space. SiteForce(force) "
                "makes it of a force on particles"
            )

    # --- motion ------------------------------------------------------------------------------------

    def shift(self, delta: RigidBodyIncrement) -> "AbstractRigidMotion":
        """Bodies changed by `delta`, centers wrapped; quaternions are added as they are."""
        delta = jax.tree.map(round_before_add, delta)
        exact = self.fixed_point
        centers = None if exact is None else exact.centers
        changes: dict[str, Any]
        changes, centers = self._move_points(delta.position, delta.velocity, centers)
        if exact is not None:
            exact = replace_fields(exact, {"centers": centers})
        for name in ("orientation", "angular_momentum"):
            change = getattr(delta, name)
            if change is None:
                continue
            change = self._zero_immobile(change)
            changes[name] = getattr(self, name) + change
            if exact is not None:
                number = getattr(exact, name).add(change)
                exact = replace_fields(exact, {name: number})
                changes[name] = with_tangent_of(number.to_float(), changes[name])
        return replace_fields(self, changes if exact is None else {**changes, "fixed_point": exact})

    def drift(self, dt: Float[Array, ""]) -> "AbstractRigidMotion":
        """Centers after x + dt·v, and bodies after a free rotation for a time dt."""
        moved = self.shift(RigidBodyIncrement(position=dt * self.velocity))
        # Who does not turn has no angular momentum here.
        turning = self._zero_immobile(self.angular_momentum)
        momentum, orientation = rotate_freely(
            turning, self.orientation, self._turning_inertia, dt, self.linear
        )
        momentum = self.angular_momentum + (momentum - turning) if self._some_rest else momentum
        exact = moved.fixed_point
        if exact is None:
            # Rounding changes the length of a quaternion, which must not add up.
            turned = {"orientation": normalize(orientation), "angular_momentum": momentum}
            return replace_fields(moved, turned)
        exact = exact.rotate(self._mobile_inertia, dt, self.linear)
        turned = {
            "orientation": with_tangent_of(exact.orientation.to_float(), orientation),
            "angular_momentum": with_tangent_of(exact.angular_momentum.to_float(), momentum),
        }
        return replace_fields(moved, {**turned, "fixed_point": exact})

    def kick(self, force: Float[Array, "n 6"], dt: Float[Array, ""]) -> "AbstractRigidMotion":
        """v + dt·F/m and L + dt·τ, for a wrench (F, τ) on each body: τ about its center, in space."""
        # Forward and backward must round alike; `dt` and its sign go in last.
        torque = self._isolated(rotate_back)(self.orientation, force[:, 3:])
        torque = jnp.where(
            self._turning_inertia > 0, torque, 0
        )  # a line takes no torque about itself
        velocity = self.velocity_change(force[:, :3], dt)
        return self.shift(RigidBodyIncrement(velocity=velocity, angular_momentum=dt * torque))

    def displace(self, change: Float[Array, "n 6"]) -> "AbstractRigidMotion":
        """Centers moved by the first three numbers, and bodies turned by the rotation vector of the others."""
        change = self._zero_immobile(change)
        turned = multiply(from_rotation_vector(change[:, 3:]), self.orientation)
        moved = self.replace(fixed_point=None).shift(RigidBodyIncrement(position=change[:, :3]))
        return moved.replace(orientation=turned)

    def rate(self, force: Float[Array, "n 6"]) -> RigidBodyIncrement:
        """dx/dt = v, dv/dt = F/m, dq/dt = ½ q ⊗ ω, dL/dt = L × ω + Rᵀτ."""
        omega = self.body_angular_velocity
        spin = jnp.concatenate([jnp.zeros_like(omega[:, :1]), 0.5 * omega], axis=1)
        torque = rotate_back(self.orientation, force[:, 3:])
        torque = jnp.where(self._turning_inertia > 0, torque, 0)
        return RigidBodyIncrement(
            self.velocity,
            ratio(force[:, :3], self.mass[:, None]),
            multiply(self.orientation, spin),
            jnp.cross(self.angular_momentum, omega) + torque,
        )

    # --- copies ------------------------------------------------------------------------------------

    def unwrap(self) -> "AbstractRigidMotion":
        """These bodies with unwrapped centers."""
        return self.replace(position=self.unwrapped)

    def difference(self, other: "AbstractRigidMotion") -> PyTree:
        """Displacements by the minimum image, and differences of velocities, sites and angular momenta."""
        displacement = self.space.displacement(self.position, other.position)
        turned = rotate(self.orientation[:, None], self.site_offset)
        turned = turned - rotate(other.orientation[:, None], other.site_offset)
        return displacement, self.velocity - other.velocity, turned, self.spin - other.spin

    def replace(self, **leaves: Any) -> "AbstractRigidMotion":
        """A copy with some arrays or the space replaced; numbers and lists become arrays, as at the start.

        **Errors:** `ShapeError` for positions, velocities, … of another shape. Values are not checked.
        """
        for name in (name for name in self.evolving_leaves if name in leaves):
            old = getattr(self, name)
            leaves[name] = as_replacement(leaves[name], old.shape, old.dtype, name)
        if {*self.evolving_leaves, "image", "space"} & set(leaves):
            leaves = {"fixed_point": None, **leaves}  # the present one belongs to the old numbers
        return replace_fields(self, leaves)

    def to_fixed_point(
        self,
        dt: ArrayLike,
        range_factor: float,
        after: "AbstractRigidMotion | None" = None,
        smallest_range: float = 0.0,
    ) -> "AbstractRigidMotion":
        """These bodies rounded to fixed-point numbers, to which `shift` adds exactly."""
        del after, smallest_range

        def largest(x: Array) -> Array:
            return self.space.max(jnp.max(self.mask_empty(x)))

        centers = FixedPointParticles.from_floats(
            self.position, self.velocity, self.space, dt, range_factor, largest
        )
        # A body that turns about once in a step has left all physics: L needs no larger range.
        fastest = power_of_two_above(largest(jnp.abs(self.angular_momentum)))
        limit = jnp.maximum(64 * fastest, power_of_two_above(4 * largest(self.inertia) / dt))
        exact = FixedPointBodies.from_floats(
            centers, self.orientation, self.angular_momentum, limit
        )
        floats = {
            "position": centers.positions,
            "velocity": centers.velocities,
            "orientation": exact.orientation.to_float(),
            "angular_momentum": exact.angular_momentum.to_float(),
        }
        floats = {k: with_tangent_of(x, getattr(self, k)) for k, x in floats.items()}
        return replace_fields(self, {**floats, "fixed_point": exact})

    def exact_bits(self) -> list[PyTree]:
        if self.fixed_point is None:
            raise ParameterError("these bodies hold no fixed-point numbers")
        return [self.fixed_point.rows, self.image]

    def faults(self) -> Int[Array, ""]:
        moments = self.inertia[:, 1:] if self.linear else self.inertia
        broken = jnp.any(self.mass <= 0) | jnp.any(moments <= 0)
        mass = jnp.where(broken, int(Fault.MASS), 0)
        space = jnp.where(self.space.is_degenerate(), int(Fault.SPACE), 0)
        return (mass + space).astype(jnp.int32)

    @property
    def constraints(self) -> None:
        """None: what is rigid needs no constraints."""

    @property
    def charge(self) -> None:
        """None: charges are those of sites."""

    @property
    def species(self) -> None:
        """None: species are those of sites."""

    @property
    def _some_rest(self) -> bool:
        return self.frozen is not None or self.is_distributed

    @property
    def _turning_inertia(self) -> Float[Array, "n 3"]:
        """Moments of inertia; that of a line about itself is 0 whatever a fit or a difference put there."""
        # A quotient of two tiny numbers would turn it at any speed.
        return self.inertia.at[:, 0].set(0) if self.linear else self.inertia

    @property
    def _mobile_inertia(self) -> Float[Array, "n 3"]:
        """Moments of inertia, 0 for what rests: it is not turned."""
        inertia = self._turning_inertia
        return self._zero_immobile(inertia) if self._some_rest else inertia

    def _isolated(self, function: Any) -> Any:
        if self.fixed_point is None:
            return function
        return lambda *arguments: call_isolated(function, *arguments)
