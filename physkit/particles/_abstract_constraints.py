"""The contract of constraints that particles carry."""

import abc
from typing import TYPE_CHECKING, Any

from jaxtyping import Array, Bool, Float

from physkit.core import Module

# Particles hold constraints, and constraints act on particles: at run time only one knows the other's class.
if TYPE_CHECKING:
    from ._particles import Particles
else:
    Particles = Any


class AbstractConstraint(Module):
    """Relations between particles that hold at every instant: what `Particles(constraints=…)` takes."""

    @abc.abstractmethod
    def attach(self, particles: Particles) -> "AbstractConstraints":
        """These constraints as `particles` carry them, in their precision, checked against them.

        **Errors:** those of the constraints, for particles that they do not fit.
        """


class AbstractConstraints(AbstractConstraint):
    """The constraints that particles carry, so that every integrator and every count of degrees knows them.

    With the constraints σ(x) = 0, their gradients J = ∂σ/∂x and the masses M,

        drift:  v ← v − M⁻¹ J(x)ᵀ λ,  x ← x + dt v,  with σ(x) = 0 at the end
        kick:   v ← v − M⁻¹ J(x)ᵀ μ,  with J(x) v = 0
    """

    @property
    @abc.abstractmethod
    def num_constraints(self) -> int:
        """The number of degrees of freedom that they bind."""

    @abc.abstractmethod
    def num_centers(self, particles: Particles) -> int:
        """How many centers move freely: of clusters, and of particles in none."""

    @abc.abstractmethod
    def drift_change(
        self, particles: Particles, dt: Float[Array, ""]
    ) -> tuple[Float[Array, "n d"], "AbstractConstraints"]:
        """The change of velocities with which a drift by `dt` ends where the constraints hold."""

    @abc.abstractmethod
    def kick_change(self, particles: Particles) -> Float[Array, "n d"]:
        """The change of velocities after which they keep the constraints."""

    @abc.abstractmethod
    def is_violated(self, particles: Particles) -> Bool[Array, ""]:
        """Whether positions are further off than rounding explains."""

    @abc.abstractmethod
    def virial(self, particles: Particles, force: Float[Array, "n d"]) -> Float[Array, "d d"]:
        """Σ x ⊗ f of the forces that hold the constraints against `force` and the motion."""

    @abc.abstractmethod
    def to_centers(self, particles: Particles) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
        """From each particle to the center of mass of its cluster: Δx and Δv, 0 where it is in none."""

    @abc.abstractmethod
    def shared_by_cluster(self, particles: Particles, x: Float[Array, " n"]) -> Float[Array, " n"]:
        """`x` with one value for all particles of a cluster, that of its first."""

    # --- over devices ------------------------------------------------------------------------------

    @abc.abstractmethod
    def shard(self, devices: tuple[int, ...], num_slots: int | None) -> "AbstractConstraints":
        """These in device layout, for `num_slots` rows a device; None where all devices hold all rows."""

    @abc.abstractmethod
    def unshard(self) -> "AbstractConstraints":
        """The inverse of `shard`."""

    @abc.abstractmethod
    def invalidate(self) -> "AbstractConstraints":
        """These after particles have changed their rows."""

    @abc.abstractmethod
    def grow_to_fit(
        self, measured: "AbstractConstraints", num_slots: int
    ) -> tuple["AbstractConstraints", list[str]]:
        """These in device layout with room for what `measured` required, and what has grown."""

    @abc.abstractmethod
    def resize_slots(self, num_slots: int) -> "AbstractConstraints":
        """These in device layout with `num_slots` rows a device."""
