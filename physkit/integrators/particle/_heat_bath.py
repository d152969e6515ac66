"""What integrators with a heat bath share: their parameters, how those are checked, and the noise."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ComponentError,
    State,
    get_component,
    poison_where,
    require_nonnegative,
    safe_divide,
    safe_sqrt,
)
from physkit.particles import AbstractBodies
from physkit.particles.forces import Forces

from .._integrator import AbstractIntegrator
from ._kicks_and_drifts import ForceByComponent


class AbstractHeatBath(AbstractIntegrator):
    """Particles with friction and noise, at a temperature."""

    force: eqx.AbstractVar[Forces]
    temperature: eqx.AbstractVar[Float[Array, ""]]
    friction: eqx.AbstractVar[Float[Array, "..."]]

    def __check_init__(self):
        require_nonnegative(self, "temperature", "friction")

    @property
    def conserves_momentum(self) -> bool:
        return False  # noise kicks every particle by itself

    def draw_noise(
        self, clock: Clock, state: State, amplitude: Float[Array, "..."]
    ) -> ForceByComponent:
        """amplitude · ξ/√M of every component acted on, `[n k]`, with ξ standard normal numbers."""
        noise = {}
        # Sorted, so that the tags do not depend on the order in which forces are added.
        for tag, name in enumerate(sorted(self.force.components, key=str)):
            particles = get_component(state, name)
            # A tag per component: particles of equal id in two components draw different numbers.
            tagged = clock.substep(0.0, 1.0, tag)
            u, mass = particles.generalized_velocity, particles.generalized_mass
            xi = tagged.random_normal(particles.id, u.shape[1:], u.dtype)
            # A rigid line does not turn about itself: there its mass is 0.
            noise[name] = xi * safe_divide(as_factor(amplitude, particles), jnp.sqrt(mass))
        return noise


def as_factor(value: Float[Array, "..."], particles: AbstractBodies) -> Float[Array, "..."]:
    """`value`, one number for all or `[n]`, ready to multiply vectors `[n d]`."""
    return _rows(value, particles)[:, None] if value.ndim else value


def _rows(value: Float[Array, "..."], particles: AbstractBodies) -> Float[Array, "..."]:
    # Parameters per particle are whole on every device: each takes the rows of its own particles.
    return particles.local_rows(value) if value.ndim else value


def require_points(
    integrator: AbstractIntegrator, state: State, names: Sequence[str | None]
) -> None:
    """**Errors:** `ComponentError` for rigid bodies, where an integrator moves points alone."""
    for name in names:
        part = get_component(state, name)
        if isinstance(part, AbstractBodies) and part.num_rotations:
            raise ComponentError(
                f"{type(integrator).__name__} moves point particles; {name or 'the state'} is "
                f"{type(part).__name__}: use VelocityVerlet, BAOAB or another integrator of drifts and kicks"
            )


def noise_amplitude(variance: Float[Array, "..."]) -> Float[Array, "..."]:
    """√variance of noise, with derivative 0 at 0; NaN where the variance is negative."""
    # In a sweep or a fit a trace hides negative temperatures from `require_nonnegative`. `safe_sqrt`
    # alone would silently make the noise zero there.
    return poison_where(safe_sqrt(variance), variance < 0)
