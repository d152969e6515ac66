"""Spots that split: Gray and Scott's reaction with diffusion."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.fields import Field
from physkit.fields.equations import Diffusion, GrayScott
from physkit.fields.operators import Central
from physkit.geometry import Grid
from physkit.integrators import SSPRK2
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def gray_scott(
    feed: ArrayLike = 0.0367,
    kill: ArrayLike = 0.0649,
    diffusivity: ArrayLike = (0.2, 0.1),
    *,
    cells: tuple[int, int] = (128, 128),
    dt: ArrayLike = 1.0,
    every: int = 500,
) -> tuple[Simulation, Field]:
    """U + 2V → 3V, fed with U, V decaying: spots that grow, split and fill the plane.

        ∂u/∂t = D_u ∇²u − u v² + F (1 − u)
        ∂v/∂t = D_v ∇²v + u v² − (F + k) v

    Cells have length 1. Starts from u = 1, v = 0 but for one spot in the middle, a little longer than wide.

    **Arguments:**

    - `feed`, `kill`: F and k. (0.0367, 0.0649) splits spots, (0.055, 0.062) grows mazes.
    - `every`: steps between frames `u`, `[2, *cells]`.

    **Reference:** Pearson, Science 261, 189 (1993).
    """
    grid = Grid([float(n) for n in cells], cells)
    x, y = grid.coordinates()
    # u = ½ and v = ¼ in the middle, as in the paper; the paper's square is a smooth spot here.
    seed = jnp.exp(-(((x - cells[0] / 2) / 6.0) ** 2) - ((y - cells[1] / 2) / 4.0) ** 2)
    start = jnp.stack([1 - 0.5 * seed, 0.25 * seed])
    flow = SSPRK2(Diffusion(diffusivity, scheme=Central()), GrayScott(feed, kill))
    return Simulation(flow, dt=dt, observers=Every(every, u=FieldValues())), Field(start, grid)
