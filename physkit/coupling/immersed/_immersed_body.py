"""A rigid body in an incompressible flow, which moves it and is moved by it."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    ComponentError,
    DeclarationError,
    ParameterError,
    State,
    concrete_value,
    describe,
    get_component,
    param,
    require_positive,
    static,
)
from physkit.fields import Field, FlowState
from physkit.fields.equations import AbstractSolid
from physkit.geometry import Grid
from physkit.particles import RigidBodies

from ._free_grip import FreeGrip
from ._placed_body import PlacedBody

# Lighter ones are thrown about by the pressure of the fluid that they push, which two rounds know in part.
LIGHTEST = 0.5


class ImmersedBody(AbstractSolid):
    """A body of the state's `RigidBodies` in an `IncompressibleFlow`: the flow moves it, and it moves the flow.

        m dv/dt = F + ∮ σ·n dA,   I dω/dt + ω × Iω = τ + ∮ r × σ·n dA,   u = v + ω × r on the surface

        disk = ImmersedBody(Ball([0.0, 0.0], 0.1), "bodies")
        ARS222(IncompressibleFlow(ν, "flow", implicit=False, solids=(disk,)), ImmersedMotion((disk,), "flow"))

    Where the body is, the flow is forced to its velocity, and the body takes what that costs: in every stage
    its velocity is solved for such that it loses the momentum that fluid gains. The fluid that stands in the
    place of the body moves with it; what that weighs is taken off.

    **Arguments:**

    - `shape`: how far points are from the surface, in the axes of the body: `Ball` with its center at 0, or an
      `AbstractSolid` of yours, at rest. In the plane it moves along x and y and turns about z.
    - `bodies`: the name of the `RigidBodies`; `index`: which of them. In the plane mass and moment of inertia
      are per length.
    - `fluid_density`: ρ of the fluid, mass / volume.

    **Errors:** `ComponentError` where the state has no such bodies; `ParameterError` for a body lighter
    than half of the fluid that it displaces, and for a start in which the fluid in its place does not move with
    it (`fill` makes it).

    **Good values:** ten cells across; as for other solids beyond that.

    **Notes:** what keeps bodies off walls and one another are forces of yours. Over several devices, bodies
    in `Free()` space are on all of them, and those in a `Box` on the one whose slab they are in. Momentum of
    bodies and fluid together is conserved to rounding. A shape other than a `Ball` fits into the box in its
    own axes.

    **Reference:** Uhlmann, J. Comput. Phys. 209, 448 (2005); Kempe & Fröhlich, J. Comput. Phys. 231, 3663
    (2012); Sharma & Patankar, J. Comput. Phys. 205, 439 (2005).
    """

    shape: AbstractSolid
    bodies: str = static(default="bodies")
    index: int = static(default=0)
    fluid_density: Float[Array, ""] = param(1.0)

    def __check_init__(self):
        require_positive(self, "fluid_density")
        if not isinstance(self.shape, AbstractSolid) or isinstance(self.shape, ImmersedBody):
            raise DeclarationError(
                f"the shape of a body is Ball(…) or an AbstractSolid; got {describe(self.shape)}"
            )

    def distance(self, t: Float[Array, ""], x: Sequence[Array]) -> Array:
        """**Errors:** `DeclarationError`: a state has its place."""
        raise DeclarationError(
            "an ImmersedBody is where the state has it: it is a solid of IncompressibleFlow, in ARS222 beside "
            "ImmersedMotion, and of no other equation"
        )

    def place(self, state: State, grid: Grid) -> "PlacedBody":
        bodies = self.body(state)
        motion = bodies.position, bodies.orientation, bodies.velocity, bodies.angular_velocity
        return PlacedBody(self.shape, *(self.own(bodies, x) for x in motion), grid)

    def own(self, bodies: RigidBodies, x: Array) -> Array:
        """Its row of `x`, `[n …]`, on whichever device it is."""
        return bodies.all_rows(x)[self.index]

    @property
    def moved_component(self) -> str:
        return self.bodies

    def body(self, state: State) -> RigidBodies:
        """The component that it is one of.

        **Errors:** `ComponentError` for another component, or fewer bodies.
        """
        bodies = get_component(state, self.bodies)
        if not isinstance(bodies, RigidBodies):
            raise ComponentError(
                f"ImmersedBody is one of RigidBodies; {self.bodies!r} is {describe(bodies)}"
            )
        if not 0 <= self.index < bodies.num_particles:
            raise ComponentError(
                f"no body number {self.index}: {self.bodies!r} has {bodies.num_particles}"
            )
        return bodies

    def grip(
        self,
        t: Float[Array, ""],
        state: State,
        velocity: Sequence[Field],
        friction: ArrayLike = 0.0,
    ) -> FreeGrip:
        placed, bodies = self.place(state, velocity[0].grid), self.body(state)
        return FreeGrip(placed, t, velocity, bodies, self, self.fluid_density, friction)

    def fill(self, state: dict[str, object], flow: str = "flow") -> dict[str, object]:
        """`state` with the fluid in the place of the body moving with it: where a run may start from.

        - `flow`: the name of the `FlowState`.
        """
        fluid = get_component(state, flow)
        placed = self.place(state, fluid.grid)
        now = jnp.zeros((), fluid.velocity_x.data.dtype)
        parts = []
        for k, u in enumerate(fluid.velocity):
            x = tuple(u.coordinates)
            inside = jnp.broadcast_to(placed.distance(now, x), u.data.shape) <= 0
            parts.append(jnp.where(inside, placed.velocity(now, x)[k], u.data))
        return {**state, flow: fluid.with_velocity(parts)}

    def check_start(self, state: State, flow: FlowState) -> None:
        """**Errors:** those of the class, where numbers can be seen."""
        bodies = self.body(state)
        if concrete_value(flow.velocity_x.data) is None or concrete_value(bodies.position) is None:
            return
        numbers = [concrete_value(x) for x in _numbers_at_start(self, state, flow)]
        if any(x is None for x in numbers):
            return  # the sizes of box or body are traced
        volume, slip, speed = (np.asarray(x, float) for x in numbers)
        if volume == 0:
            raise ParameterError(
                f"body {self.index} of {self.bodies!r} covers no point of the flow's grid: it is outside of "
                "the box, or smaller than a cell"
            )
        ratio = float(
            np.asarray(bodies.mass)[self.index] / (np.asarray(self.fluid_density) * volume)
        )
        if ratio < LIGHTEST:
            raise ParameterError(
                f"body {self.index} of {self.bodies!r} has {ratio:.3g} of the mass of the fluid that it "
                f"displaces, {volume:.4g} times its density: below {LIGHTEST} steps may be unstable. In the "
                "plane masses are per length"
            )
        if np.max(np.abs(slip)) > 0.2 * speed:
            raise ParameterError(
                f"at the start the fluid in the place of body {self.index} of {self.bodies!r} moves by "
                f"{slip} relative to it, and would kick it: start from body.fill(state), or let both rest"
            )


@eqx.filter_jit
def _numbers_at_start(
    solid: ImmersedBody, state: State, flow: FlowState
) -> tuple[Float[Array, ""], Float[Array, " d"], Float[Array, ""]]:
    """The volume that it covers, how the fluid moves there relative to it, and the fastest of both."""
    # One program: operation by operation each would be compiled by itself.
    bodies = solid.body(state)
    grip = solid.grip(jnp.zeros((), bodies.position.dtype), state, flow.velocity)
    parts = [*(u.data for u in flow.velocity), bodies.velocity[solid.index]]
    speed = jnp.max(jnp.stack([jnp.max(jnp.abs(x)) for x in parts]))
    return grip.volume, grip.mean_slip(flow.velocity), speed
