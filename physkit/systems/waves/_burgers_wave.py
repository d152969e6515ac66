"""A wave that steepens and decays, with its exact solution."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import explain_call
from physkit.fields import Field
from physkit.fields.equations import Burgers
from physkit.geometry import Grid
from physkit.integrators import ETDRK4
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def burgers_wave(
    viscosity: ArrayLike = 0.05, *, cells: int = 128, dt: ArrayLike = 0.005, every: int = 20
) -> tuple[Simulation, Field]:
    """Burgers' equation from a state whose future Cole and Hopf's transform knows, on 0 … 2.

        ∂u/∂t = −u ∂u/∂x + ν ∂²u/∂x²,   u = −2ν ∂ ln φ/∂x,   φ = a + e^{−π²νt} cos πx

    `cole_hopf_wave` is the exact solution.

    **Reference:** Hopf, Commun. Pure Appl. Math. 3, 201 (1950); Cole, Q. Appl. Math. 9, 225 (1951);
    Wood, Commun. Numer. Methods Eng. 22, 797 (2006).
    """
    grid = Grid([2.0], (cells,))
    start = Field.from_function(grid, lambda x: cole_hopf_wave(x=x, t=0.0, viscosity=viscosity))
    sim = Simulation(ETDRK4(Burgers(viscosity)), dt=dt, observers=Every(every, u=FieldValues()))
    return sim, start


@explain_call
def cole_hopf_wave(
    *, x: ArrayLike, t: ArrayLike, viscosity: ArrayLike, a: ArrayLike = 1.1
) -> Float[Array, "..."]:
    """2πν e^{−π²νt} sin πx / (a + e^{−π²νt} cos πx), a > 1: the closer to 1, the steeper."""
    decay = jnp.exp(-(jnp.pi**2) * viscosity * t)
    wave = decay * jnp.sin(jnp.pi * x)
    return 2 * jnp.pi * viscosity * wave / (a + decay * jnp.cos(jnp.pi * x))
