"""An excitable sheet: a wave with an end, which curls up to a spiral."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.fields import Field
from physkit.fields.equations import Diffusion, FitzHughNagumo
from physkit.fields.operators import Central
from physkit.geometry import Box, Grid, Neumann
from physkit.integrators import RK4
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def fitzhugh_nagumo(
    current: ArrayLike = 0.0,
    slowness: ArrayLike = 0.05,
    *,
    cells: tuple[int, int] = (128, 128),
    dt: ArrayLike = 0.1,
    every: int = 100,
) -> tuple[Simulation, Field]:
    """A nerve as a sheet, half of it fired and half of it tired: the broken wave curls up to a spiral.

        ∂v/∂t = ∇²v + v − v³/3 − w + I
        ∂w/∂t = ε (v + 0.7 − 0.8 w)

    Cells have length 1, and nothing passes the sides.

    **Arguments:**

    - `current`: I; 0.33 to 1.42 fires for ever. `slowness`: ε, of the recovery.
    - `every`: steps between frames `v`, `[2, *cells]`: v and w.

    **Reference:** FitzHugh, Biophys. J. 1, 445 (1961); Winfree, Chaos 1, 303 (1991).
    """
    grid = Grid(Box([float(n) for n in cells], periodic=False), cells)
    x, y = grid.coordinates()
    v = jnp.where(x < cells[0] / 2, 1.5, -1.2) + 0 * y
    w = jnp.where(y < cells[1] / 2, 0.6, -0.6) + 0 * x
    start = Field(jnp.stack([v, w]), grid, None, Neumann(0.0))
    flow = RK4(FitzHughNagumo(current, slowness), Diffusion([1.0, 0.0], scheme=Central()))
    return Simulation(flow, dt=dt, observers=Every(every, v=FieldValues())), start
