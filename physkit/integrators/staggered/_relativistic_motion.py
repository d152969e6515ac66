"""Fast charges in given fields."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    DeclarationError,
    ParameterError,
    PyTree,
    ShapeError,
    State,
    get_component,
    param,
    put_component,
    ratio,
    recomputed,
    require_positive,
    static,
)
from physkit.coupling import CIC, AbstractKernel
from physkit.particles import ParticleIncrement, Particles

from .._integrator import AbstractIntegrator, AbstractOneStep, Drifts, TermsWithCaches
from ..particle._given_fields import (
    ElectricForce,
    electric_rows,
    magnetic_rows,
    require_magnetic,
    value_or_name,
)
from ..particle._heat_bath import require_points
from ._pushers import AbstractPusher, HigueraCary, lorentz_factor

_NO_ENERGY = (
    "the energy of RelativisticMotion is not ½ m u², with the u that `velocity` holds, and that in its "
    "electric field is not known: record RelativisticKineticEnergy()"
)


class RelativisticMotion(AbstractOneStep):
    """Charges near the speed of light in given fields: half a drift, a pusher, half a drift. Order 2.

        dx/dt = u/γ,   du/dt = (q/m)(E + u × B/γ),   γ² = 1 + u²/c²

    The `velocity` of the particles holds u, momentum per mass: their energy is `RelativisticKineticEnergy()`,
    while `KineticEnergy` and `Temperature` take ½ m u². Charges do not act on the fields: for that
    `ParticleInCell`.

    **Arguments:**

    - `magnetic`, `electric`: as of `Boris`: numbers, functions `(t, *x)`, fields, or names of fields in the
      state.
    - `pusher`: `HigueraCary()` (if left out), `Vay()`, `RelativisticBoris()`.
    - `speed_of_light`: c.
    - `kernel`: of interpolation from fields.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** those of `Boris`; `NoEnergyError` where a potential or total energy is recorded, with a field or
    without.

    **Good values:** |q| B dt/(γ m) < 0.3.

    **Reference:** Ripperda et al., Astrophys. J. Suppl. 235, 21 (2018), who compare the pushers.
    """

    magnetic: PyTree
    electric: PyTree = None
    pusher: AbstractPusher = HigueraCary()
    speed_of_light: Float[Array, ""] = param(1.0)
    kernel: AbstractKernel = CIC()
    magnetic_field: str | None = static(default=None)
    electric_field: str | None = static(default=None)
    component: str | None = static(default=None)

    def __init__(
        self,
        magnetic: PyTree,
        electric: PyTree = None,
        pusher: AbstractPusher | None = None,
        *,
        speed_of_light: Float[Array, ""] | float = 1.0,
        kernel: AbstractKernel | None = None,
        component: str | None = None,
    ):
        require_magnetic(magnetic, type(self).__name__)
        self.magnetic, self.magnetic_field = value_or_name(magnetic)
        self.electric, self.electric_field = value_or_name(electric)
        self.pusher, self.kernel = pusher or HigueraCary(), kernel or CIC()
        self.speed_of_light, self.component = jnp.asarray(speed_of_light, float), component
        require_positive(self, "speed_of_light")

    @property
    def drifts(self) -> Drifts:
        return ((type(self).__name__, self.component),)

    @property
    def proper_velocity_components(self) -> tuple[str | None, ...]:
        return (self.component,)

    def init(self, plan: None, clock: Clock, state: State) -> None:
        charged_particles(self, state, self.component)

    def step(self, plan: None, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        particles = get_component(state, self.component)
        moved = drift_by_momentum(particles, 0.5 * clock.dt, self.speed_of_light)
        middle, state = clock.at_fraction(0.5), put_component(state, self.component, moved)
        e = electric_rows(self.electric, self.electric_field, middle, state, moved, self.kernel)
        b = magnetic_rows(self.magnetic, self.magnetic_field, middle, state, moved, self.kernel)
        moved = push_and_drift(
            self.pusher, moved, e, b, clock.dt, 0.5 * clock.dt, self.speed_of_light
        )
        return put_component(state, self.component, moved), aux

    def terms(self, aux: None) -> TermsWithCaches:
        return ((ElectricForce(self, _NO_ENERGY, self.component), None),)


def charged_particles(integrator: AbstractIntegrator, state: State, name: str | None) -> Particles:
    """**Errors:** for what is no free point charge in a plane or in space."""
    require_points(integrator, state, (name,))
    particles, who = get_component(state, name), type(integrator).__name__
    if not isinstance(particles, Particles):
        raise ShapeError(
            f"{who} moves Particles; {name or 'the state'} is {type(particles).__name__}"
        )
    if particles.dimension == 1:
        raise ShapeError(
            f"{who} turns momenta about B, for which there is no room on a line: take a plane"
        )
    if particles.constraints is not None:
        raise DeclarationError(f"{who} moves charges freely: it takes no constraints")
    if particles.charge is None:
        raise ParameterError("these particles have no charge: give Particles(…, charge=…)")
    return particles


def push_and_drift(
    pusher: AbstractPusher,
    particles: Particles,
    e: Float[Array, "n d"],
    b: Float[Array, "n f"],
    dt: Array,
    drift: Array,
    speed_of_light: Array,
) -> Particles:
    """The particles after a time `dt` in the fields where they are, and then after a time `drift` without.

    Both are formulas of some thirty arrays, which are computed again for derivatives.
    """

    def move(particles: Particles, e: Array, b: Array) -> Particles:
        assert particles.charge is not None  # `charged_particles` refuses those without
        # Times E or B what a pusher takes.
        half = 0.5 * dt * ratio(particles.charge, particles.mass)[:, None]
        u = pusher.push(particles.velocity, half * e, half * b, speed_of_light)
        pushed = particles.shift(ParticleIncrement(velocity=u - particles.velocity))
        return drift_by_momentum(pushed, drift, speed_of_light)

    return recomputed(move)(particles, e, b)


def drift_by_momentum(particles: Particles, dt: Array, speed_of_light: Array) -> Particles:
    """The particles after a time `dt` at their velocity u/γ."""
    speed = particles.velocity / lorentz_factor(particles.velocity, speed_of_light)
    return particles.shift(ParticleIncrement(position=dt * speed))
