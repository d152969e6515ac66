"""How a body that a flow moves holds the flow: momentum that one gains, the other loses."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Rate, einsum, matmul
from physkit.fields import Field
from physkit.fields.equations import AbstractGrip, SolidHold, ghosted_coordinates
from physkit.particles import RigidBodies, RigidBodyIncrement

from ._displaced_fluid import among_all, covered_volumes, displaced_inertia, motions
from ._placed_body import PlacedBody

# A body makes its grip: at run time only one knows the other's class.
if TYPE_CHECKING:
    from ._immersed_body import ImmersedBody
else:
    ImmersedBody = Any


class FreeGrip(AbstractGrip):
    """Of a body that takes the velocity at which the momentum it loses is what the fluid gains.

        (M − ρV) ΔV = −ρ G(V + ΔV),   G(V) = ∫ modes · (held velocity − velocity) dV

    V are the velocities along the axes and about them; M the inertia of the body, ρV that of the fluid in its
    place, which moves with it. G is linear, so that one small matrix is solved for.

    - `volume`: of its place, by the share of every cell that it covers, averaged over components.
    - `virtual`, `held`: inertia of the fluid in its place, and of all that it holds, a part of a cell more;
      over the density, `[p p]`.
    """

    def __init__(
        self,
        placed: PlacedBody,
        t: Float[Array, ""],
        velocity: Sequence[Field],
        bodies: RigidBodies,
        solid: ImmersedBody,
        density: Float[Array, ""],
        friction: ArrayLike,
    ):
        self.placed, self.bodies, self.solid, self.density = placed, bodies, solid, density
        grid, d = velocity[0].grid, len(velocity)
        self.grid = grid
        self.holds, self.units, self.places, self.weights, self.inside = [], [], [], [], []
        volume, held = [], []
        for k, u in enumerate(velocity):
            hold = SolidHold(placed, t, u, friction)
            weights, inside = covered_volumes(u, hold.distance[hold.middle])
            x = ghosted_coordinates(u.grid, u.location)
            which, units = motions(k, placed.from_center(x))
            place = among_all(which, d, u.data)
            here = units[(slice(None), *hold.middle)]
            moved = weights[None] * jax.vmap(hold.of)(units)
            products = grid.sum(here[:, None] * moved[None])
            held.append(einsum("qi,qr,rj->ij", place, products, place))
            volume.append(grid.sum(inside) / d)
            self.holds.append(hold)
            self.units.append(units)
            self.places.append(place)
            self.weights.append(weights)
            self.inside.append(inside)
        self.volume, self.held = (sum(x[1:], x[0]) for x in (volume, held))
        self.virtual = displaced_inertia(placed)

    def own(self, component: int) -> Array:
        of_mine = matmul(self.places[component], self._motion())
        return jnp.sum(self.units[component] * of_mine.reshape(-1, *[1] * len(self.holds)), axis=0)

    def moved_by(self, velocity: Sequence[Field]) -> tuple["FreeGrip", dict[str, Rate]]:
        d = len(velocity)
        gain = []
        for k, (u, hold) in enumerate(zip(velocity, self.holds, strict=True)):
            here = self.units[k][(slice(None), *hold.middle)]
            change = self.weights[k] * (hold.of(self.own(k), u) - u.data)
            gain.append(matmul(self.grid.sum(here * change[None]), self.places[k]))
        # Principal moments, turned into space.
        bodies, turned = self.bodies, self.placed.turned
        mass = self.solid.own(bodies, bodies.mass)
        inertia = einsum("ka,k,kb->ab", turned, self.solid.own(bodies, bodies.inertia), turned)
        about = inertia if d == 3 else inertia[2:, 2:]
        body = jax.scipy.linalg.block_diag(mass * jnp.eye(d, dtype=inertia.dtype), about)
        matrix = body + self.density * (self.held - self.virtual)
        found = jnp.linalg.solve(matrix, -self.density * sum(gain[1:], gain[0]))
        zero = jnp.zeros((), found.dtype)
        if d == 3:
            change, turn = found[:3], found[3:]
        else:
            change, turn = jnp.stack([*found[:2], zero]), jnp.stack([zero, zero, found[2]])
        numbers = bodies.local_rows(jnp.arange(bodies.num_particles))
        mine = (numbers == self.solid.index)[:, None]
        spin = matmul(turned, matmul(inertia, turn))
        delta = RigidBodyIncrement(
            velocity=jnp.where(mine, change[None], 0),
            angular_momentum=jnp.where(mine, spin[None], 0),
        )
        after = copy.copy(self)
        # Frozen bodies stay as they are.
        after.bodies = bodies.shift(delta)
        return after, {self.solid.bodies: delta}

    def mean_slip(self, velocity: Sequence[Field]) -> Float[Array, " d"]:
        """The mean velocity of the fluid in its place, relative to it."""
        total = [
            self.grid.sum(self.inside[k] * (u.data - self.own(k)[self.holds[k].middle]))
            for k, u in enumerate(velocity)
        ]
        return jnp.stack(total) / jnp.where(self.volume > 0, self.volume, 1)

    def _motion(self) -> Array:
        """Velocities along the axes, then about them; in the plane three."""
        bodies = self.bodies
        speed = self.solid.own(bodies, bodies.velocity)
        turning = self.solid.own(bodies, bodies.angular_velocity)
        if len(self.holds) == 3:
            return jnp.concatenate([speed, turning])
        return jnp.concatenate([speed[:2], turning[2:]])
