"""A particle in a double well: the simplest rare event."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Bool, Float

from physkit.core import Cache, Clock, State, as_device_array, param, static
from physkit.integrators import Brownian
from physkit.observe import FirstPassage, Snapshot
from physkit.particles import Particles
from physkit.particles.forces import AbstractExternalForce
from physkit.simulate import Simulation

from .._arguments import explain_system

# Exact quadrature, 1 / ⟨time from −1 to +1⟩ for D = 0.05; Kramers' asymptote is 1.5166e-3.
DOUBLE_WELL_RATE = 1.3705e-3


def double_well_passage(diffusion: float, barrier: float = 0.25) -> float:
    """Mean first-passage time from −1 to +1 in the double well, by quadrature (host only).

        τ = (1/D) ∫₋₁¹ dy e^{V(y)/D} ∫₋∞^y dz e^{−V(z)/D}

    **Reference:** Gardiner, Handbook of Stochastic Methods, eq. 5.2.160.
    """
    # From −3, where the potential is so high that the integrand is below rounding.
    z, step = np.linspace(-3.0, 1.0, 40_001, retstep=True)
    potential = barrier * (z**4 - 2 * z**2) / diffusion
    weight = np.exp(-potential)
    inner = (np.cumsum(weight) - 0.5 * weight) * step  # trapezoids up to each z
    outer = np.where(z >= -1.0, np.exp(potential) * inner, 0.0)
    return float(np.trapezoid(outer, z) / diffusion)


class DoubleWell(AbstractExternalForce):
    """A quartic potential with two wells, along the first axis.

        U = h (x⁴ − 2 x²)

    Wells at ±1, depth h each, with a barrier at 0 between them.

    **Arguments:**

    - `barrier`: h, energy.
    - `component`: name of the particle component; None where the state is one component.
    """

    barrier: Float[Array, ""] = param(0.25)
    component: str | None = static(default=None)

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        particles = self.particles(state)
        x2 = particles.position[:, 0] ** 2
        return self.barrier * particles.space.sum(jnp.sum(x2 * (x2 - 2)))


@explain_system
def double_well(
    diffusion: ArrayLike = 0.05,
    *,
    barrier: ArrayLike = 0.25,
    particles: int = 1,
    dt: ArrayLike = 0.1,
    dtype: DTypeLike = float,
) -> tuple[Simulation, Particles]:
    """A Brownian particle in the left well, and when it first reaches the right one.

        dx = −V′ dt + √(2D) dW,   V = h (x⁴ − 2x²)

    Summary `escape`: per particle the time of its first visit to x ≥ 1, NaN before. By default V is
    x⁴/4 − x²/2, and 1/(mean first passage) = 1.3705·10⁻³ for D = 0.05.

    **Arguments:**

    - `diffusion`: D, the temperature of unit mass and friction.
    - `barrier`: h, energy.
    - `particles`: independent ones in one state.

    **Reference:** Kramers, Physica 7, 284 (1940); Gardiner, Handbook of Stochastic Methods, §5.2.7.
    """
    thermostat = Brownian(DoubleWell(barrier), temperature=diffusion, friction=1.0)
    escape = FirstPassage(1, escape=_has_escaped)
    # At the bottom of the left well; the quadrature of the mean passage starts there, too.
    start = Particles(as_device_array(-np.ones((particles, 1)), dtype))
    return Simulation(thermostat, dt=dt, observers=escape), start


def _has_escaped(now: Snapshot) -> Bool[Array, " n"]:
    return now.state.position[:, 0] >= 1.0
