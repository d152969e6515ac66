"""Rigid bodies as fixed-point numbers, so that drifts, turns and kicks are reversed to the last bit."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Fault, FixedPoint, Module, ScaledFixedPoint, replace_fields

from .._fixed_point_particles import FixedPointParticles, share_faults
from ._free_rotation import Momenta, Orientations, rotate_exactly

Rows = tuple[FixedPoint, FixedPoint, FixedPoint, FixedPoint]


class FixedPointBodies(Module):
    """Exact centers and their velocities, quaternions, and angular momenta in body axes.

    **Arguments:**

    - `centers`: positions and velocities of the centers, as of point particles.
    - `orientation`: the integers of quaternions. Their length changes by rounding only, and drops out.
    - `angular_momentum`: those of angular momenta.
    """

    centers: FixedPointParticles
    orientation: ScaledFixedPoint
    angular_momentum: ScaledFixedPoint

    @staticmethod
    def from_floats(
        centers: FixedPointParticles,
        orientation: Orientations,
        angular_momentum: Momenta,
        largest_momentum: Float[Array, ""],
    ) -> "FixedPointBodies":
        """The fixed-point numbers nearest to these, with a range for angular momenta."""
        orientation, angular_momentum, largest_momentum = jax.tree.map(
            jax.lax.stop_gradient, (orientation, angular_momentum, largest_momentum)
        )
        return FixedPointBodies(
            centers,
            ScaledFixedPoint.from_float(orientation, jnp.ones((), orientation.dtype)),
            ScaledFixedPoint.from_float(angular_momentum, largest_momentum),
        )

    def rotate(self, inertia: Momenta, dt: Array, linear: bool) -> "FixedPointBodies":
        """These bodies turned freely for a time `dt`."""
        momentum, orientation = rotate_exactly(
            self.angular_momentum, self.orientation, inertia, dt, linear
        )
        return FixedPointBodies(self.centers, orientation, momentum)

    # --- over devices: as `FixedPointParticles` ----------------------------------------------------

    @property
    def rows(self) -> Rows:
        """The arrays with a row for each body: the integers."""
        return (
            *self.centers.rows,
            self.orientation.fixed_point,
            self.angular_momentum.fixed_point,
        )

    def with_rows(self, rows: Rows) -> "FixedPointBodies":
        """The same cell and ranges, other bodies."""
        return FixedPointBodies(
            self.centers.with_rows(rows[:2]),
            replace_fields(self.orientation, {"fixed_point": rows[2]}),
            replace_fields(self.angular_momentum, {"fixed_point": rows[3]}),
        )

    def poison_where(self, fault: Fault, where: Array) -> "FixedPointBodies":
        """These numbers, with `fault` if `where`: positions are then NaN."""
        return replace_fields(self, {"centers": self.centers.poison_where(fault, where)})

    def share_faults(self) -> "FixedPointBodies":
        """These numbers, in device layout, with the faults of all devices on each."""
        return FixedPointBodies(
            self.centers.share_faults(),
            share_faults(self.orientation),
            share_faults(self.angular_momentum),
        )
