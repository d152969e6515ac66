"""Drag between particles and a fluid, in both directions."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    Rate,
    ShapeError,
    State,
    get_component,
    param,
    require_nonnegative,
    require_positive,
    static,
)
from physkit.fields import Field, FieldIncrement
from physkit.particles import ParticleIncrement

from ._flow_velocity import flow_velocity
from ._kernels import CIC, AbstractKernel
from ._transfer import deposit, interpolate, require_box_of_grid


class Drag(AbstractTendency):
    """Linear drag of particles in a fluid, and of the fluid by the particles.

        dv/dt = γ (u(x) − v),   ρ ∂u/∂t = −deposit(m γ (u(x) − v), x)

    The fluid loses the momentum that the particles gain: Σ m v + ∫ ρ u dV is constant to rounding (except
    for fluid on walls that hold it). Alone with a uniform flow of mass M, N particles of mass m relax to the
    common velocity with the rate γ (1 + N m/M). Pass it to `RK4`, or use it as a part of a splitting beside
    the flow's own integrator: `Strang(RK4(Drag(…)), ETDRK2(NavierStokes(…)))`. It changes velocities only:
    add `PassiveTracers`, `EquationsOfMotion` or `VelocityVerlet` for the positions, or set `moving=True`.

    **Arguments:**

    - `friction`: γ, 1 / time, the inverse of the stopping time; one number, or one per particle `[n]`.
    - `density`: ρ of the fluid, mass / length^d.
    - `particles`, `fluid`: names of the two components. The fluid is a velocity, as a vector field.
    - `kernel`: the kernel of both interpolation and deposit.
    - `moving`: also integrate dx/dt = v.

    **Errors:** `ShapeError` where the fluid is not a vector field.

    **Good values:** γ dt < 1 and γ dt N m/M < 1 for explicit integrators.

    **Notes:** the fluid at a particle includes the momentum that this particle gave to it: for a particle
    that is heavy compared to the fluid in its cell, the drag is too small.

    **Reference:** Youdin & Johansen, Astrophys. J. 662, 613 (2007).
    """

    friction: Float[Array, "..."] = param()
    density: Float[Array, ""] = param(1.0)
    particles: str = static(default="particles")
    fluid: str = static(default="fluid")
    kernel: AbstractKernel = CIC()
    moving: bool = static(default=False)

    def __init__(
        self,
        friction: ArrayLike,
        particles: str = "particles",
        fluid: str = "fluid",
        *,
        density: ArrayLike = 1.0,
        kernel: AbstractKernel | None = None,
        moving: bool = False,
    ):
        self.friction, self.density = friction, density
        self.particles, self.fluid, self.moving = particles, fluid, moving
        self.kernel = kernel or CIC()

    def __check_init__(self):
        require_nonnegative(self, "friction")
        require_positive(self, "density")

    @property
    def drifts(self) -> tuple[tuple[str, str | None], ...]:
        return ((type(self).__name__, self.particles),) if self.moving else ()

    def check_state(self, state: State) -> None:
        drops, fluid = get_component(state, self.particles), get_component(state, self.fluid)
        require_box_of_grid(drops.space, fluid.grid, type(self).__name__)

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        del clock
        drops = get_component(state, self.particles)
        fluid = get_component(state, self.fluid)
        if isinstance(fluid, Field) and not fluid.vector:
            # Tracers can follow a vorticity; what drag takes from a flow is momentum, and has a direction.
            raise ShapeError(
                f"Drag acts back on a velocity, a vector field; {self.fluid!r} has components "
                f"{fluid.components}. Advance the velocity, by NavierStokes, instead of a vorticity"
            )
        flow = flow_velocity(fluid, drops)
        slip = interpolate(flow, drops, self.kernel) - drops.velocity
        gamma = drops.local_rows(self.friction)[:, None] if self.friction.ndim else self.friction
        gain = gamma * slip
        if drops.frozen is not None:
            gain = jnp.where(drops.frozen[:, None], 0, gain)
        # With the kernel that read the flow, so that deposit and interpolation are each other's transpose and
        # momentum is conserved to rounding. Frozen particles take up none.
        loss = deposit(drops.mass[:, None] * gain, drops, flow, self.kernel)
        velocity = drops.velocity if self.moving else None
        return {
            self.particles: ParticleIncrement(position=velocity, velocity=gain),
            self.fluid: FieldIncrement(-loss.data / self.density, flow.location),
        }
