"""An advantageous gene spreads: Fisher's front."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.fields import Field
from physkit.fields.equations import Diffusion, FisherKPP
from physkit.fields.operators import Central
from physkit.geometry import Box, Grid, Neumann
from physkit.integrators import RK4
from physkit.observe import Every, FieldValues, Integral
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def fisher_front(
    growth: ArrayLike = 1.0,
    diffusivity: ArrayLike = 1.0,
    *,
    length: ArrayLike = 220.0,
    cells: int = 880,
    dt: ArrayLike = 0.02,
    every: int = 250,
) -> tuple[Simulation, Field]:
    """Logistic growth and diffusion between closed walls, from u = 1 on the first 4 % of the line.

        ∂u/∂t = D ∂²u/∂x² + r u (1 − u)

    The front settles to 2√(rD), from below: 2√(rD) (1 − 3/(4rt)). Frames: `u`, and `invaded` = ∫u dx,
    where the front is.

    **Reference:** Fisher, Ann. Eugen. 7, 355 (1937); Bramson, Mem. Am. Math. Soc. 285 (1983).
    """
    grid = Grid(Box([length], (False,)), (cells,))
    start = Field.from_function(
        grid, lambda x: jnp.where(x < 0.04 * length, 1.0, 0.0), boundary=Neumann()
    )
    # Fourth order: the front's speed depends on its thin leading edge, which second order slows.
    diffusion = Diffusion(diffusivity, scheme=Central(4))
    record = Every(every, u=FieldValues(), invaded=Integral())
    return Simulation(RK4(diffusion, FisherKPP(growth)), dt=dt, observers=record), start
