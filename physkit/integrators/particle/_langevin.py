"""Langevin dynamics."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, State, get_component, param, put_component
from physkit.particles.forces import Forces

from .._integrator import StepSize
from ._heat_bath import AbstractHeatBath, as_factor, noise_amplitude
from ._kicks_and_drifts import AbstractKickFirst, ForceAux, drift, kick


class BAOAB(AbstractHeatBath, AbstractKickFirst):
    """Langevin dynamics by the BAOAB splitting: kick, drift, noise and friction, drift, kick.

        dx = v dt,   m dv = F dt − γ m v dt + √(2 γ m k_B T) dW

        O:  v' = c v + √((1 − c²) k_B T / m) ξ,   c = e^(−γ dt)

    One force evaluation a step. Averages of positions are correct to order dt², for harmonic forces
    exact at any stable dt (the variance is k_B T / k); those of velocities to order dt². For γ = 0
    it is velocity Verlet.

    **Arguments:**

    - `force`: a force or a sum of forces, on positions and time.
    - `temperature`: k_B T, energy.
    - `friction`: γ, 1 / time; one number, or `[n]` per particle. Rigid bodies turn under it, too: L decays
      like m v ("Langevin C").

    **Errors:** `ParameterError` for a negative temperature or friction; NaN where a trace hides it.

    **Good values:** γ of 0.1 to 1 of the typical vibration frequency; dt as for `VelocityVerlet`.

    **Notes:** needs a key. Noise is drawn by (seed, step, particle id, component), so it depends on
    neither chunks nor restarts. It does not conserve momentum: temperatures count all degrees of
    freedom. Frozen particles stay.

    **Reference:** Leimkuhler & Matthews, J. Chem. Phys. 138, 174102 (2013), eq. 10; Davidchack, Ouldridge &
    Tretyakov, J. Chem. Phys. 142, 144114 (2015), for rigid bodies.
    """

    force: Forces = eqx.field(converter=Forces.of)
    temperature: Float[Array, ""] = param()
    friction: Float[Array, "..."] = param()

    def prepare(self, state: State, dt: StepSize) -> tuple[Array, Array]:
        """(c − 1, √((1 − c²) k_B T)); exact for small γ dt."""
        x = self.friction * dt
        # expm1: c − 1 and 1 − c² would cancel to nothing for small γ dt.
        return jnp.expm1(-x), noise_amplitude(-jnp.expm1(-2 * x) * self.temperature)

    def step(
        self, plan: tuple[Array, Array], clock: Clock, state: State, aux: ForceAux
    ) -> tuple[State, ForceAux]:
        decay_minus_1, amplitude = plan
        total, caches = aux
        # B and A: the kick is with the force that the step before ended with.
        state = kick(state, total, 0.5 * clock.dt)
        state = drift(self.force, state, 0.5 * clock.dt)
        # O: an increment (c − 1) v + noise, not new velocities, so that frozen particles stay.
        for name, noise in self.draw_noise(clock, state, amplitude).items():
            p = get_component(state, name)
            increment = as_factor(decay_minus_1, p) * p.generalized_velocity + noise
            state = put_component(state, name, p.shift_velocity(increment))
        # A and B: the new force serves the next step's first kick, too.
        state = drift(self.force, state, 0.5 * clock.dt)
        total, caches = self.force(clock.at_fraction(1.0), state, caches)
        return kick(state, total, 0.5 * clock.dt), (total, caches)
