"""Andersen's thermostat: collisions with a heat bath."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, Plan, State, param, put_component, require_nonnegative, safe_sqrt
from physkit.particles import kinetic_energy

from .._integrator import AbstractIntegrator
from ._bath import AbstractBath, BathAux, as_integrator, thermal_velocity
from ._targets import Target, as_target, temperature_at


class Andersen(AbstractBath):
    """Constant temperature by collisions: now and then a particle gets a new velocity from the heat bath.

        v' ~ exp(−m v² / 2 k_B T)   with probability 1 − e^(−ν dt) in each step, for each particle

    Canonical at any rate. Collisions destroy velocity correlations: no diffusion or viscosity from such a run.

        Andersen(VelocityVerlet(force), temperature=1.0, rate=0.5)

    **Arguments:**

    - `integrator`: what moves the particles, `VelocityVerlet(force)` or any other; all components that it moves
      meet the bath.
    - `temperature`: k_B T, energy; a number, or a function of time.
    - `rate`: ν, collisions of a particle per time.

    **Errors:** `ParameterError` for a negative temperature or rate, NaN where a trace hides the temperature;
    `ComponentError` where the integrator moves no particles.

    **Notes:** needs a key. Noise is drawn by (seed, step, particle id, component). Total momentum is not
    conserved: temperatures count all degrees of freedom. Who collides is a choice: there is no derivative by
    `rate`. `ConservedEnergy` counts the heat. Frozen particles stay.

    **Reference:** Andersen, J. Chem. Phys. 72, 2384 (1980), section IV.
    """

    integrator: AbstractIntegrator = eqx.field(converter=as_integrator)
    temperature: Target = eqx.field(converter=as_target)
    rate: Float[Array, ""] = param()

    def __check_init__(self):
        require_nonnegative(self, "temperature", "rate")

    @property
    def conserves_momentum(self) -> bool:
        return False

    @property
    def removes_momentum(self) -> bool:
        return False

    def draws_momentum(self, plan: Plan, clock: Clock, state: State, aux: BathAux) -> bool:
        return True

    def step(self, plan: Plan, clock: Clock, state: State, aux: BathAux) -> tuple[State, BathAux]:
        inner, reservoir = aux
        state, inner = self.integrator.step(plan, clock, state, inner)
        end = self.own_clock(clock)
        # As a root of the variance, whose derivative at 0 is 0.
        deviation = safe_sqrt(temperature_at(self.temperature, end))
        probability = -jnp.expm1(-self.rate * end.dt)
        # By name, so that the order of forces does not matter.
        for tag, name in enumerate(sorted(self.names(), key=str)):
            p = self.particles(state)[self.names().index(name)]
            tagged = end.substep(0.0, 1.0, tag)
            uniform = tagged.substep(0.0, 1.0, 0).random_uniform(p.id, p.position.dtype)
            if p.constraints is not None:
                # Particles of a cluster share their motion: they collide together.
                uniform = p.constraints.shared_by_cluster(p, uniform)
            collides = uniform < probability
            change = thermal_velocity(tagged, p, deviation) - p.generalized_velocity
            after = p.shift_velocity(jnp.where(collides[:, None], change, 0))
            reservoir = reservoir + kinetic_energy(p) - kinetic_energy(after)
            state = put_component(state, name, after)
        return state, (inner, reservoir)
