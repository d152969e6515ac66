"""Brownian dynamics: so much friction that velocities do not matter."""

import equinox as eqx
from jaxtyping import Array, Float

from physkit.core import Cache, Clock, State, get_component, param, put_component, ratio
from physkit.particles import ParticleIncrement
from physkit.particles.forces import Forces

from .._integrator import StepSize
from ._heat_bath import AbstractHeatBath, as_factor, noise_amplitude, require_points
from ._kicks_and_drifts import AbstractDriftFirst, ForceByComponent


class Brownian(AbstractHeatBath, AbstractDriftFirst):
    """Overdamped Langevin dynamics, by Heun's method: two force evaluations a step.

        dx = F/(γ m) dt + √(2D) dW,   D = k_B T/(γ m)
        x̃ = x + F(x) dt/(γ m) + √(2D dt) ξ
        x' = x + ½ [F(x) + F(x̃)] dt/(γ m) + √(2D dt) ξ

    Averages, of positions and over paths, are correct to order dt² (Euler–Maruyama: dt); paths to
    order dt. Velocities stay as they are: they are no part of this dynamics.

    **Arguments:**

    - `force`: a force or a sum of forces, on positions and time.
    - `temperature`: k_B T, energy.
    - `friction`: γ, 1 / time; one number, or `[n]` per particle.

    **Errors:** `ParameterError` for a negative temperature or friction; NaN where a trace hides it.

    **Good values:** dt of a tenth of γ m / (largest curvature of the potential).

    **Notes:** needs a key. Noise is drawn by (seed, step, particle id, component), so it depends on
    neither chunks nor restarts. For dx = −U′ dt + √(2D) dW take unit mass, temperature D and friction 1.
    Frozen particles stay.

    **Reference:** Greenside & Helfand, Bell Syst. Tech. J. 60, 1927 (1981); Kloeden & Platen, Numerical
    Solution of Stochastic Differential Equations (1992), §15.1.
    """

    force: Forces = eqx.field(converter=Forces.of)
    temperature: Float[Array, ""] = param()
    friction: Float[Array, "..."] = param()

    def prepare(self, state: State, dt: StepSize) -> tuple[Array, Array]:
        """(dt/γ, √(2 k_B T dt/γ)), of unit mass."""
        require_points(self, state, self.force.components)
        mobility_dt = dt / self.friction
        # By parts: 2 k_B T dt/γ of atoms in SI units is beyond float32.
        parts = noise_amplitude(2 * mobility_dt), noise_amplitude(self.temperature)
        return mobility_dt, parts[0] * parts[1]

    def step(
        self, plan: tuple[Array, Array], clock: Clock, state: State, aux: Cache
    ) -> tuple[State, Cache]:
        mobility_dt, amplitude = plan
        force_at_start, caches = self.force(clock, state, aux)
        # Drawn once: order dt² needs the same noise in both stages of Heun's method.
        noise = self.draw_noise(clock, state, amplitude)

        def displace(total: ForceByComponent) -> State:
            end = state
            for name, force in total.items():
                p = get_component(state, name)
                step = as_factor(mobility_dt, p) * ratio(force, p.mass[:, None]) + noise[name]
                end = put_component(end, name, p.shift(ParticleIncrement(position=step)))
            return end

        predicted = displace(force_at_start)
        force_at_end, caches = self.force(clock.at_fraction(1.0), predicted, caches)
        mean = {name: 0.5 * (force + force_at_end[name]) for name, force in force_at_start.items()}
        # From the start again, not from the prediction.
        return displace(mean), caches
