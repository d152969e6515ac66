"""The Lorenz system."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Function, PyTree, as_parameter
from physkit.integrators import RK4
from physkit.observe import Every, Snapshot
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def lorenz(
    sigma: ArrayLike = 10.0, rho: ArrayLike = 28.0, beta: ArrayLike = 8 / 3, *, dt: ArrayLike = 0.01
) -> tuple[Simulation, Float[Array, "3"]]:
    """Convection with three degrees of freedom: the first strange attractor.

        ẋ = σ (y − x),   ẏ = x (ρ − z) − y,   ż = x y − β z

    Chaotic for the default values: nearby states separate as e^{0.906 t}. Differentiable in σ, ρ and β.

    **Reference:** Lorenz, J. Atmos. Sci. 20, 130 (1963), eqs. 25–27.
    """
    # Arguments of `Function` rather than a closure: leaves of the simulation, which fits and derivatives find.
    parameters = tuple(map(as_parameter, (sigma, rho, beta)))
    record = Every(1, position=position_of)
    flow = RK4(Function(lorenz_flow, parameters))
    return Simulation(flow, dt=dt, observers=record), as_parameter([1.0, 1.0, 1.0])


def position_of(now: Snapshot) -> Float[Array, "3"]:
    """The state, which is recorded."""
    return now.state


def lorenz_flow(t: ArrayLike, state: Float[Array, "3"], parameters: PyTree) -> Float[Array, "3"]:
    """The right-hand side of the Lorenz equations."""
    del t
    x, y, z = state
    sigma, rho, beta = parameters
    return jnp.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])
