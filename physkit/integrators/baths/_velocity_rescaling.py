"""Stochastic velocity rescaling: canonical kinetic energies by one factor a step."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    Plan,
    State,
    param,
    put_component,
    ratio,
    require_nonnegative,
    require_positive,
    safe_sqrt,
)
from physkit.particles import kinetic_energy, total_degrees_of_freedom

from .._integrator import AbstractIntegrator
from ._bath import AbstractBath, BathAux, as_integrator
from ._gamma_variate import gamma_variate
from ._targets import Target, as_target, positive, temperature_at


class VelocityRescaling(AbstractBath):
    """Constant temperature by stochastic velocity rescaling, the thermostat of Bussi, Donadio and Parrinello.

        dK = (K̄ − K) dt/τ + 2 √(K K̄ / N_f) dW/√τ,   K̄ = N_f k_B T / 2,   v' = v √(K'/K)

    The kinetic energy follows this equation exactly over each step of the integrator inside: canonical at any
    τ, while trajectories are disturbed little, since all velocities change by one factor. Total momentum stays
    zero.

        VelocityRescaling(VelocityVerlet(force), temperature=1.0, relaxation_time=0.5)

    **Arguments:**

    - `integrator`: what moves the particles, `VelocityVerlet(force)` or any other; all components that it moves
      share one bath.
    - `temperature`: k_B T, energy; a number, or a function of time.
    - `relaxation_time`: τ, time.

    **Errors:** `ParameterError` for a negative temperature or a τ that is not positive, NaN where a trace hides
    it; `ComponentError` where the integrator moves no particles.

    **Good values:** τ of 100 dt or more; short to equilibrate, long to disturb little.

    **Notes:** needs a key. Give particles velocities: a system at rest has none to rescale and stays at rest.
    Order and stability are those of the integrator inside. `ConservedEnergy` counts the heat. Frozen
    particles stay.

    **Reference:** Bussi, Donadio & Parrinello, J. Chem. Phys. 126, 014101 (2007), eqs. 7 and A7.
    """

    integrator: AbstractIntegrator = eqx.field(converter=as_integrator)
    temperature: Target = eqx.field(converter=as_target)
    relaxation_time: Float[Array, ""] = param()

    def __check_init__(self):
        require_nonnegative(self, "temperature")
        require_positive(self, "relaxation_time")

    def step(self, plan: Plan, clock: Clock, state: State, aux: BathAux) -> tuple[State, BathAux]:
        inner, reservoir = aux
        state, inner = self.integrator.step(plan, clock, state, inner)
        parts, end = self.particles(state), self.own_clock(clock)
        kinetic = sum((kinetic_energy(p) for p in parts[1:]), kinetic_energy(parts[0]))
        degrees = total_degrees_of_freedom(parts, self.conserves_momentum)
        x = end.dt / positive(self.relaxation_time)
        factor, gain = _rescaling(
            end.key, kinetic, degrees, temperature_at(self.temperature, end), x
        )
        for name, p in zip(self.names(), parts, strict=True):
            # An increment, which frozen particles ignore.
            change = (factor - 1) * p.generalized_velocity
            state = put_component(state, name, p.shift_velocity(change))
        return state, (inner, reservoir - gain * kinetic)


def _rescaling(
    key: Array,
    kinetic: Float[Array, ""],
    degrees: Float[Array, ""],
    temperature: Float[Array, ""],
    x: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The factor α of velocities after a time x = dt/τ, and α² − 1."""
    normal, gamma = jax.random.split(key)
    first = jax.random.normal(normal, (), kinetic.dtype)
    # The sum of the other N_f − 1 squares of normal numbers; none with one degree of freedom.
    others = jnp.maximum(degrees - 1, 0)
    shape = jnp.where(others > 0, others / 2, 1)
    squares = jnp.where(others > 0, 2 * gamma_variate(gamma, shape.astype(kinetic.dtype)), 0)
    at_rest = kinetic <= 0
    # (1 − c) K̄/(N_f K), of which N_f drops out; expm1, or small x would lose digits.
    spread = -jnp.expm1(-x) * ratio(temperature, 2 * jnp.where(at_rest, 1, kinetic))
    noise = first * safe_sqrt(spread)
    # Both terms together are one square, whose sign is that of the velocities.
    lead = jnp.exp(-x / 2) + noise
    gain = jnp.expm1(-x) + noise * (2 * jnp.exp(-x / 2) + noise) + spread * squares
    factor = jnp.sign(lead) * safe_sqrt(lead * lead + spread * squares)
    return jnp.where(at_rest, 1, factor), jnp.where(at_rest, 0, gain)
