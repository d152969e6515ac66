"""Rigid water by the closed solution of its three constraints."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    ParameterError,
    ShapeError,
    as_parameter,
    concrete_value,
    param,
    recomputed,
    require_positive,
    safe_divide,
    static,
)

from .._arguments import Numbers
from .._particles import Particles
from ..forces.bonded._sharded_tuples import ShardedTuples
from ..forces.bonded._tuples import Tuples, as_places
from ._cluster_solver import Clusters, sum_written_out
from ._clusters import ClusterGroup
from ._constraints import AbstractClusterConstraint

Vector = Float[Array, "3 c"]


class RigidWater(AbstractClusterConstraint):
    """Rigid three-site water: two O–H distances and one H–H distance, solved in closed form (SETTLE).

        Particles(x, …, constraints=RigidWater(molecules, oh=0.9572, hh=1.5139))

    The same motion as that of three `DistanceConstraints`, without an iteration: the triangle that drifted
    freely is replaced by the rigid one whose displacement is along the constraint forces.

    **Arguments:**

    - `molecules`: `[m 3]` whole numbers: places of oxygen, hydrogen and hydrogen in the particle arrays.
    - `oh`, `hh`: the lengths, differentiable. For an angle θ, hh = 2 oh sin(θ/2).

    **Errors:** as `DistanceConstraints`; `ShapeError` unless in three dimensions; `ParameterError` for
    hydrogens of different mass.

    **Good values:** dt = 2 fs; 4 fs with hydrogens of mass 3 and the oxygen lighter by as much.

    **Reference:** Miyamoto & Kollman, J. Comput. Chem. 13, 952 (1992).
    """

    groups: tuple[ClusterGroup, ...]
    oh: Float[Array, ""] = param()
    hh: Float[Array, ""] = param()
    max_iterations: int = static(default=0)  # there is none

    def __init__(self, molecules: Numbers, oh: Numbers, hh: Numbers):
        places = as_places(molecules, 3, "water molecules")
        m = places.shape[0]
        rows = np.arange(3 * m).reshape(m, 3)
        self.groups = (ClusterGroup.of(places, rows, ((0, 1), (0, 2), (1, 2))),) if m else ()
        self.oh, self.hh = as_parameter(oh), as_parameter(hh)
        self.max_iterations = 0
        require_positive(self, "oh", "hh")
        lengths = concrete_value(self.oh), concrete_value(self.hh)
        if None not in lengths and not lengths[1] < 2 * lengths[0]:
            raise ParameterError(
                f"no triangle has sides oh = {lengths[0]:g} twice and hh = {lengths[1]:g}"
            )

    def group_lengths(
        self, group: ClusterGroup, tables: Tuples | ShardedTuples
    ) -> Float[Array, "k c"]:
        del group, tables
        return jnp.stack([self.oh, self.oh, self.hh])[:, None]

    def require_valid(self, particles: Particles) -> None:
        if particles.dimension != 3:
            raise ShapeError(f"RigidWater is for 3 dimensions; these have {particles.dimension}")
        mass = concrete_value(particles.mass)
        for group in self.groups:
            group.tuples.require_inside(particles, "RigidWater")
            hydrogens = None if mass is None else mass[np.asarray(group.tuples.places)[:, 1:]]
            if hydrogens is not None and np.any(hydrogens[:, 0] != hydrogens[:, 1]):
                raise ParameterError(
                    "RigidWater needs hydrogens of equal mass (its closed form is for a symmetric molecule): "
                    "take DistanceConstraints for others"
                )
        super().require_valid(particles)

    def velocity_changes(
        self, clusters: Clusters, dt: Float[Array, ""]
    ) -> tuple[Float[Array, "3 c 3"], Float[Array, " c"]]:
        moves = recomputed(_settle)(clusters, dt, self.oh, self.hh)
        errors = _errors(clusters, dt, moves)
        changes = jnp.stack([safe_divide(move, dt) for move in moves])
        return jnp.moveaxis(changes, 1, 2), errors


def _settle(
    clusters: Clusters, dt: Float[Array, ""], oh: Float[Array, ""], hh: Float[Array, ""]
) -> tuple[Vector, Vector, Vector]:
    """By how much O, H and H must move from where they drifted freely; the letters are those of the paper."""
    # In units of `oh`: fourth powers of lengths in metres would be 0 in single precision.
    unit, hh, oh = oh, hh / oh, jnp.ones_like(oh)
    start = clusters.vectors / unit
    # Bonds are O − H, O − H, H − H: positions relative to the oxygen have the opposite sign.
    b0, c0 = -start[0], -start[1]
    drifted = start + dt * clusters.velocities / unit
    oxygen, hydrogen = 1 / clusters.inverse_masses[0], 1 / clusters.inverse_masses[1]
    share = hydrogen / (oxygen + 2 * hydrogen)
    # a1, b1, c1 from the center of mass
    a1 = share[None] * (drifted[0] + drifted[1])
    b1, c1 = a1 - drifted[0], a1 - drifted[1]
    # The rigid triangle about its center of mass: O at height ra, both H at −rb, at ±rc from the axis.
    rc = hh / 2
    height = jnp.sqrt(oh**2 - rc**2)
    ra = 2 * share * height
    rb = height - ra

    z_axis = _unit(jnp.cross(b0, c0, axis=0))
    x_axis = _unit(jnp.cross(a1, z_axis, axis=0))
    y_axis = jnp.cross(z_axis, x_axis, axis=0)
    b0x, b0y = _dot(x_axis, b0), _dot(y_axis, b0)
    c0x, c0y = _dot(x_axis, c0), _dot(y_axis, c0)
    b1x, b1y, b1z = _dot(x_axis, b1), _dot(y_axis, b1), _dot(z_axis, b1)
    c1x, c1y, c1z = _dot(x_axis, c1), _dot(y_axis, c1), _dot(z_axis, c1)
    a1z = _dot(z_axis, a1)

    # Two rotations bring the triangle to the heights z that it drifted to, …
    sin_phi = a1z / ra
    cos_phi = jnp.sqrt(1 - sin_phi**2)
    sin_psi = (b1z - c1z) / (2 * rc * cos_phi)
    cos_psi = jnp.sqrt(1 - sin_psi**2)
    a2y = ra * cos_phi
    b2x = -rc * cos_psi
    b2y = -rb * cos_phi - rc * sin_psi * sin_phi
    c2y = -rb * cos_phi + rc * sin_psi * sin_phi
    # … the third one, about z, makes the displacements those of forces along the old bonds.
    alpha = b2x * (b0x - c0x) + b0y * b2y + c0y * c2y
    beta = b2x * (c0y - b0y) + b0x * b2y + c0x * c2y
    gamma = b0x * b1y - b1x * b0y + c0x * c1y - c1x * c0y
    square = alpha**2 + beta**2
    sin_theta = (alpha * gamma - beta * jnp.sqrt(square - gamma**2)) / square
    cos_theta = jnp.sqrt(1 - sin_theta**2)

    def from_axes(x: Float[Array, " c"], y: Float[Array, " c"], z: Float[Array, " c"]) -> Vector:
        return x[None] * x_axis + y[None] * y_axis + z[None] * z_axis

    a3 = from_axes(-a2y * sin_theta, a2y * cos_theta, a1z)
    b3 = from_axes(b2x * cos_theta - b2y * sin_theta, b2x * sin_theta + b2y * cos_theta, b1z)
    c3 = from_axes(-b2x * cos_theta - c2y * sin_theta, -b2x * sin_theta + c2y * cos_theta, c1z)
    return unit * (a3 - a1), unit * (b3 - b1), unit * (c3 - c1)


def _errors(
    clusters: Clusters, dt: Float[Array, ""], moves: tuple[Vector, Vector, Vector]
) -> Float[Array, " c"]:
    """The largest relative error of a length in each molecule."""
    drifted = clusters.vectors + dt * clusters.velocities
    ends = [drifted[k] + moves[a] - moves[b] for k, (a, b) in enumerate(clusters.bonds)]
    lengths = jnp.sqrt(sum_written_out(jnp.stack(ends) ** 2, axis=1))
    errors = jnp.max(jnp.abs(lengths / clusters.lengths - 1), axis=0)
    return jnp.where(clusters.is_used, errors, 0)


def _unit(x: Vector) -> Vector:
    return x / jnp.sqrt(_dot(x, x))[None]


def _dot(a: Vector, b: Vector) -> Float[Array, " c"]:
    return sum_written_out(a * b, axis=0)
