"""Chaos in space and time: the Kuramoto–Sivashinsky equation."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.fields import Field
from physkit.fields.equations import KuramotoSivashinsky
from physkit.geometry import Grid
from physkit.integrators import ETDRK4
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def kuramoto_sivashinsky(
    length: ArrayLike = 100.53096491487338, *, cells: int = 256, dt: ArrayLike = 0.1, every: int = 5
) -> tuple[Simulation, Field]:
    """Slope of a flame front on a line: cells of length about 9 that merge and split for ever.

        ∂u/∂t = −∂²u/∂x² − ∂⁴u/∂x⁴ − u ∂u/∂x

    **Arguments:**

    - `length`, `cells`: of the line, which repeats. Chaotic for lengths above some 22.
    - `every`: steps between frames `u`.

    **Reference:** Kassam & Trefethen, SIAM J. Sci. Comput. 26, 1214 (2005), §5 (the start).
    """
    # The default length is 32π, as in the paper.
    grid = Grid(jnp.asarray(length, float).reshape(1), (cells,))
    # In the longest wave of any box; for 32π it is x/16.
    q = 2 * jnp.pi / grid.space.lengths[0]
    start = Field.from_function(grid, lambda x: jnp.cos(q * x) * (1 + jnp.sin(q * x)))
    flow = ETDRK4(KuramotoSivashinsky())
    return Simulation(flow, dt=dt, observers=Every(every, u=FieldValues())), start
