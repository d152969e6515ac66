"""Drag between particles and a fluid, both ways, and particles that a flow carries along."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    DeclarationError,
    Rate,
    ShapeError,
    State,
    get_component,
    param,
    static,
)
from physkit.fields import Field, FieldIncrement
from physkit.fields.equations import velocity_from_vorticity
from physkit.particles import ParticleIncrement, Particles

from ._kernels import CIC, AbstractKernel
from ._transfer import deposit, interpolate


class Drag(AbstractTendency):
    """Linear drag of particles in a fluid, and of the fluid by the particles.

        dv/dt = γ (u(x) − v),   ρ ∂u/∂t = −deposit(m γ (u(x) − v), x)

    What the particles gain the fluid loses: Σ m v + ∫ ρ u dV is constant to rounding (but for fluid
    on walls that hold it). Alone with a uniform flow of mass M, N particles of mass m relax to the
    common velocity with the rate γ (1 + N m/M). To be given to `RK4`, or as a part of a splitting
    beside the flow's own integrator: `Strang(RK4(Drag(…)), ETDRK2(NavierStokes(…)))`. Moves velocities
    only: add `PassiveTracers`, `EquationsOfMotion` or `VelocityVerlet` for the positions, or let `moving=True`.

    **Arguments:**

    - `friction`: γ, 1 / time, the inverse of the stopping time; one number, or one per particle `[n]`.
    - `density`: ρ of the fluid, mass / length^d.
    - `particles`, `fluid`: names of the two components. The fluid is a velocity, as a vector field.
    - `kernel`: of both transfers.
    - `moving`: also dx/dt = v.

    **Errors:** `ShapeError` where the fluid is no vector field.

    **Good values:** γ dt < 1 and γ dt N m/M < 1 for explicit integrators.

    **Notes:** the fluid at a particle includes what the particle did to it: for a particle that is
    heavy beside the fluid of its cell the drag comes out too small.

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

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        drops = get_component(state, self.particles)
        flow = _flow(get_component(state, self.fluid), clock, drops)
        margin = drops.migration_margin
        slip = interpolate(flow, drops.position, self.kernel, margin=margin) - drops.velocity
        gamma = drops.local_rows(self.friction)[:, None] if self.friction.ndim else self.friction
        gain = gamma * slip
        if drops.frozen is not None:
            gain = jnp.where(drops.frozen[:, None], 0, gain)
        force = drops.mask_empty(drops.mass[:, None] * gain)
        # Deposited with the kernel that read the flow: momentum is then conserved to rounding.
        loss = deposit(force, drops.position, flow, self.kernel, margin=margin)
        velocity = drops.velocity if self.moving else None
        return {
            self.particles: ParticleIncrement(position=velocity, velocity=gain),
            self.fluid: FieldIncrement(-loss.data / self.density, flow.location),
        }


class PassiveTracers(AbstractTendency):
    """Particles that go where a flow takes them: passive tracers.

        dx/dt = u(x)

    **Arguments:**

    - `flow`: its name: a velocity as a vector field, or in the plane a vorticity, whose velocity
      is found by its stream function.
    - `component`: the particles' name.
    - `kernel`: of the interpolation; `PCS()` for smooth paths.

    **Errors:** `ShapeError` where the flow is neither of the two.

    **Notes:** the tracers' `velocity` is left alone: they have no inertia.
    """

    flow: str = static(default="flow")
    component: str = static(default="tracers")
    kernel: AbstractKernel = CIC()

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        tracers = get_component(state, self.component)
        flow = _flow(get_component(state, self.flow), clock, tracers)
        margin = tracers.migration_margin
        velocity = interpolate(flow, tracers.position, self.kernel, margin=margin)
        return {self.component: ParticleIncrement(position=velocity)}


def _flow(field: object, clock: Clock, particles: object) -> Field:
    """The velocity that `field` is, or is the vorticity of; whatever a user named may come in."""
    if not isinstance(field, Field) or not isinstance(particles, Particles):
        raise DeclarationError(
            f"drag and advection take particles and a field; got {type(particles).__name__} and "
            f"{type(field).__name__}"
        )
    field = field.at_time(clock.t)
    if field.vector:
        return field
    if field.components or field.grid.dimension != 2:
        raise ShapeError(
            f"a flow is a vector field, or a vorticity in the plane; got components "
            f"{field.components} in {field.grid.dimension} dimensions"
        )
    return velocity_from_vorticity(field)
