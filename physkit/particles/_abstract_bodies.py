"""What integrators, baths and observers ask of all that moves by Newton's laws: points and rigid bodies."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, call_isolated, ratio, with_tangent_of
from physkit.html import points, read

from ._fixed_point_particles import FixedPointParticles
from ._sharded_particles import AbstractShardedParticles


class AbstractBodies(AbstractShardedParticles):
    """Bodies with mass that move by Newton's laws: point particles, or rigid bodies.

        K = ½ Σ M u²

    with generalized velocities u, `[n k]`, in axes in which K has no mixed terms, and generalized masses M.
    Heat baths, temperatures and random velocities are made of these alone. A force on the bodies is `[n k]`,
    too: the force on each point, or force and torque on each rigid body.
    """

    mass: eqx.AbstractVar[Float[Array, " n"]]
    image: eqx.AbstractVar[Int[Array, "n d"]]
    id: eqx.AbstractVar[Int[Array, " n"]]
    frozen: eqx.AbstractVar[Bool[Array, " n"] | None]

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return self.position.shape[-1]

    @property
    def unwrapped(self) -> Float[Array, "n d"]:
        """Positions as if they had never been wrapped, length."""
        return self.space.unwrap(self.position, self.image)

    def _html_picture_(self) -> str:
        """Where the bodies are, in the plane of the first two axes, colored by species."""
        position = read(self.position)
        if position is None or position.ndim != 2:
            return ""
        species, lengths = read(getattr(self, "species", None)), None
        if hasattr(self.space, "lengths"):
            lengths = read(self.space.lengths)
        return points(position, species, lengths, caption=f"{len(position)} {type(self).__name__}")

    @property
    def num_rotations(self) -> int:
        """About how many axes each body turns: 0 for points."""
        return 0

    @property
    def spin(self) -> Float[Array, "n 3"] | None:
        """Angular momentum of each body about its center, in space; None for points."""
        return None

    @property
    @abc.abstractmethod
    def generalized_velocity(self) -> Float[Array, "n k"]:
        """u: what a body moves by, one number for each degree of freedom or more."""

    @property
    @abc.abstractmethod
    def generalized_mass(self) -> Float[Array, "n ..."]:
        """M: 0 where a body does not move in this way."""

    @abc.abstractmethod
    def kinetic_energies(self) -> Float[Array, " n"]:
        """½ Σ M u² of each body, frozen ones and empty slots included."""

    @abc.abstractmethod
    def shift_velocity(self, change: Float[Array, "n k"]) -> Any:
        """These bodies with u + `change`; frozen ones stay as they are."""

    @abc.abstractmethod
    def replace_velocity(self, velocity: Float[Array, "n k"]) -> Any:
        """These bodies with other u, frozen ones as well."""

    @abc.abstractmethod
    def drift(self, dt: Float[Array, ""]) -> Any:
        """These bodies after they have moved freely for a time `dt`."""

    @abc.abstractmethod
    def kick(self, force: Float[Array, "n k"], dt: Float[Array, ""]) -> Any:
        """These bodies after a force has acted on them for a time `dt`, without moving them."""

    @abc.abstractmethod
    def displace(self, change: Float[Array, "n k"]) -> Any:
        """These bodies moved by `change`: on which a force does the work Σ force · change."""

    @abc.abstractmethod
    def rate(self, force: Float[Array, "n k"]) -> Module:
        """The rates of change that Newton's laws give, in the form of this component's increments."""

    def velocity_change(
        self, force: Float[Array, "n d"], dt: Float[Array, ""]
    ) -> Float[Array, "n d"]:
        """dt·F/m; of fixed-point numbers with the same bits in a step and in its inverse."""
        if self.fixed_point is None:
            return _velocity_change(force, self.mass, dt)
        # XLA multiplies by 1/m where it knows m as a constant, which it may in one of the two alone.
        return call_isolated(_velocity_change, force, self.mass, dt)

    def constrain_velocities(self) -> Any:
        """These bodies with velocities that keep their constraints; all as they are without any."""
        return self

    @abc.abstractmethod
    def site_particles(self) -> Any:
        """What forces act on, as `Particles`: points themselves, the sites of rigid bodies."""

    @abc.abstractmethod
    def require_force(self, force: Array, what: str) -> None:
        """**Errors:** `ShapeError` for an array that is no force on these bodies."""

    @abc.abstractmethod
    def replace(self, **leaves: Any) -> Any:
        """A copy with some arrays or the space replaced. The new values are not checked."""

    # --- for subclasses ----------------------------------------------------------------------------

    def _move_points(
        self,
        position: Float[Array, "n d"] | None,
        velocity: Float[Array, "n d"] | None,
        exact: FixedPointParticles | None,
    ) -> tuple[dict[str, Array], FixedPointParticles | None]:
        """The fields that a change of positions and velocities changes, and their exact form."""
        changes: dict[str, Array] = {}
        if position is not None:
            step = self._zero_immobile(position)
            moved, crossed = self.space.wrap_with_image(self.position + step)
            if exact is not None:
                # Values from the exact integers, derivatives from the floating-point sum.
                exact, crossed = exact.drift(step)
                moved = with_tangent_of(exact.positions, moved)
            changes |= {"position": moved, "image": self.image + crossed}
        if velocity is not None:
            change = self._zero_immobile(velocity)
            sum_of_both = self.velocity + change
            if exact is not None:
                exact = exact.kick(change)
                sum_of_both = with_tangent_of(exact.velocities, sum_of_both)
            changes["velocity"] = sum_of_both
        return changes, exact

    def _zero_immobile(self, change: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """`change`, 0 for frozen bodies and in empty slots."""
        change = self.mask_empty(change)
        return change if self.frozen is None else jnp.where(self.frozen[:, None], 0, change)


def _velocity_change(
    force: Float[Array, "n d"], mass: Float[Array, " n"], dt: Float[Array, ""]
) -> Float[Array, "n d"]:
    return ratio(dt * force, mass[:, None])
