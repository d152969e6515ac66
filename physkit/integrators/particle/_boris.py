"""Boris's method: charged particles in magnetic fields."""

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    Cache,
    Clock,
    DeclarationError,
    ParameterError,
    PyTree,
    ShapeError,
    State,
    get_component,
    put_component,
    ratio,
    static,
)
from physkit.coupling import CIC, AbstractKernel
from physkit.particles import ParticleIncrement
from physkit.particles.forces import AbstractForce, Forces

from .._integrator import TermsWithCaches
from .._reproducible import make_reproducible
from ._given_fields import (
    ElectricForce,
    electric_rows,
    magnetic_rows,
    require_magnetic,
    value_or_name,
)
from ._heat_bath import require_points
from ._kicks_and_drifts import AbstractDriftFirst
from ._rotation import rotate, rotate_by_shears

_NO_ENERGY = (
    "the energy in the electric field of Boris is not known: give a uniform field as "
    "Boris(B, force=pk.UniformField(…)), another one by its potential, as force=pk.ExternalEnergy(…); "
    "or record KineticEnergy()"
)


class Boris(AbstractDriftFirst):
    """Boris's pusher: half a drift, half a kick, a rotation about B, and back. Order 2.

        dx/dt = v,   dv/dt = (q/m)(E + v × B) + F/m

    The rotation keeps |v| to rounding however long the step, the step undoes itself with −dt, and in
    uniform fields the E×B drift is exact. The gyration is slow by a relative (ω dt)²/12, its angle
    2 atan(ω dt/2) a step.

    **Arguments:**

    - `magnetic`: B, mass / (charge · time): `[3]`; in the plane, one number, the component across it;
      a function `(t, *x)` of them; a `Field`; or the name of a field in the state.
    - `electric`: E, per charge, `[d]` or likewise; None for 0. It has no potential here, so that energies
      are not known: for them, give a uniform field as `force=UniformField(…)`.
    - `force`: forces besides: a `ParticleMesh` for the particles' own E. On the one component `component`.
    - `kernel`: of interpolation from fields.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` in one dimension, or for fields of a wrong number of components;
    `ParameterError` for particles without charge; `NoEnergyError` where a potential or total energy is
    recorded with an `electric` field.

    **Good values:** ω dt < 0.3 for the gyration's phase to be right to 1 %.

    **Reference:** Boris, Proc. 4th Conf. Num. Sim. Plasmas, 3 (1970); Birdsall & Langdon (1991),
    sections 4-3 and 15-4; Qin et al., Phys. Plasmas 20, 084503 (2013).
    """

    magnetic: PyTree
    electric: PyTree = None
    force: Forces
    kernel: AbstractKernel = CIC()
    magnetic_field: str | None = static(default=None)
    electric_field: str | None = static(default=None)
    component: str | None = static(default=None)

    def __init__(
        self,
        magnetic: PyTree,
        electric: PyTree = None,
        force: AbstractForce | Forces | None = None,
        *,
        kernel: AbstractKernel | None = None,
        component: str | None = None,
    ):
        require_magnetic(magnetic, type(self).__name__)
        self.magnetic, self.magnetic_field = value_or_name(magnetic)
        self.electric, self.electric_field = value_or_name(electric)
        self.force = Forces.of() if force is None else Forces.of(force)
        self.kernel, self.component = kernel or CIC(), component
        others = [name for name in self.force.components if name != component]
        if others:
            raise ParameterError(
                f"Boris moves the component {component!r}; its force acts on {others}, too"
            )

    def init(self, plan: None, clock: Clock, state: State) -> Cache:
        require_points(self, state, (self.component,))
        particles = get_component(state, self.component)
        if particles.dimension == 1:
            raise ShapeError(
                "there is no gyration in one dimension: Boris turns velocities about B"
            )
        if particles.constraints is not None:
            raise DeclarationError(
                "Boris turns velocities, which particles with constraints may not do freely: it takes none"
            )
        if particles.charge is None:
            raise ParameterError("these particles have no charge: give Particles(…, charge=…)")
        return self.force.init(state)

    def step(self, plan: None, clock: Clock, state: State, aux: Cache) -> tuple[State, Cache]:
        half = 0.5 * clock.dt
        state = put_component(
            state, self.component, get_component(state, self.component).drift(half)
        )
        evaluate = make_reproducible(self._acceleration_and_rotation, state)
        (acceleration, tangent), aux = evaluate(clock, state, aux)
        particles = get_component(state, self.component)
        if particles.fixed_point is None:
            # Both half kicks and the rotation as one increment: velocities are rounded once.
            start = particles.velocity + half * acceleration
            kick = (rotate(start, tangent) - start) + clock.dt * acceleration
            particles = particles.shift(ParticleIncrement(velocity=kick))
        else:
            # One exact increment after the other, as `reverse_step` takes them back.
            particles = particles.shift(ParticleIncrement(velocity=half * acceleration))
            particles = rotate_by_shears(particles, tangent, 1)
            particles = particles.shift(ParticleIncrement(velocity=half * acceleration))
        return put_component(state, self.component, particles.drift(half)), aux

    def terms(self, aux: Cache) -> TermsWithCaches:
        terms = super().terms(aux)
        if not self._has_electric:
            return terms
        return (*terms, (ElectricForce(self, _NO_ENERGY, self.component), None))

    def require_reversible(self, state: State) -> None:
        self.force.require_reversible(state)

    def reverse_step(
        self, plan: None, clock: Clock, state: State, aux: Cache, aux_clock: Clock
    ) -> tuple[State, Cache]:
        minus_half = -0.5 * clock.dt
        state = put_component(
            state, self.component, get_component(state, self.component).drift(minus_half)
        )
        evaluate = make_reproducible(self._acceleration_and_rotation, state)
        (acceleration, tangent), aux = evaluate(clock, state, aux)
        # The shifts of `step` in opposite order, each with opposite sign.
        half_kick_back = ParticleIncrement(velocity=minus_half * acceleration)
        particles = get_component(state, self.component).shift(half_kick_back)
        particles = rotate_by_shears(particles, tangent, -1).shift(half_kick_back)
        return put_component(state, self.component, particles.drift(minus_half)), aux

    def _acceleration_and_rotation(
        self, clock: Clock, state: State, aux: Cache
    ) -> tuple[tuple[Array, Array], Cache]:
        """In the middle of a step: (F + qE)/m, and tan(½ angle of gyration) along the axis of B."""
        # Positions stand at the middle of the step now: fields are taken at that time.
        middle, particles = clock.at_fraction(0.5), get_component(state, self.component)
        total, aux = self.force(middle, state, aux)
        per_mass = ratio(particles.charge, particles.mass)[:, None]
        acceleration = jnp.zeros_like(particles.velocity)
        if self.force.terms:
            acceleration = acceleration + ratio(total[self.component], particles.mass[:, None])
        if self._has_electric:
            electric = electric_rows(
                self.electric, self.electric_field, middle, state, particles, self.kernel
            )
            acceleration = acceleration + per_mass * electric
        rows = magnetic_rows(
            self.magnetic, self.magnetic_field, middle, state, particles, self.kernel
        )
        tangent = 0.5 * clock.dt * per_mass * rows
        if particles.frozen is not None:
            # Frozen particles do not turn: a tangent of 0 makes every shear the identity.
            tangent = jnp.where(particles.frozen[:, None], 0, tangent)
        return (acceleration, tangent), aux

    @property
    def conserves_momentum(self) -> bool:
        return False

    @property
    def _has_electric(self) -> bool:
        return self.electric is not None or self.electric_field is not None
