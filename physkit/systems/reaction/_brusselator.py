"""Turing's patterns in the Brusselator."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.fields import Field
from physkit.fields.equations import Brusselator, Diffusion
from physkit.geometry import Grid
from physkit.integrators import ETDRK4
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def brusselator(
    a: ArrayLike = 4.5,
    b: ArrayLike = 7.5,
    diffusivity: ArrayLike = (2.0, 16.0),
    *,
    length: ArrayLike = 60.0,
    cells: tuple[int, ...] = (64, 64),
    dt: ArrayLike = 0.02,
    every: int = 500,
    key: Array | None = None,
) -> tuple[Simulation, Field]:
    """Two reacting species, of which the inhibitor diffuses faster: rest is unstable, spots appear.

        ∂u/∂t = D_u ∇²u + a − (b + 1) u + u² v
        ∂v/∂t = D_v ∇²v + b u − u² v

    From rest, u = a and v = b/a, with noise of 1 %. Rest is unstable above
    b_T = (1 + a√(D_u/D_v))² = 6.71323, first to waves of k² = a/√(D_u D_v), k = 0.89191.

    **Arguments:**

    - `a`, `b`: what is fed; `diffusivity`: D_u, D_v.
    - `length`, `cells`: of the square (or line, or cube), which repeats.
    - `every`: steps between frames `u`, `[2, *cells]`.
    - `key`: of the noise.

    **Reference:** Turing, Phil. Trans. R. Soc. B 237, 37 (1952); Nicolis & Prigogine,
    Self-Organization in Nonequilibrium Systems (1977), §7.4.
    """
    key = jax.random.key(0) if key is None else key
    a, b = jnp.asarray(a, float), jnp.asarray(b, float)
    rest = jnp.stack([a, b / a]).reshape(2, *[1] * len(cells))  # (species, 1, …), to broadcast
    start = rest * (1 + 0.01 * jax.random.normal(key, (2, *cells)))
    # Exact for diffusion, whose D_v would limit explicit steps more than the reaction does.
    flow = ETDRK4(Diffusion(jnp.asarray(diffusivity, float)), Brusselator(a, b))
    grid = Grid(jnp.full(len(cells), length, float), cells)
    return Simulation(flow, dt=dt, observers=Every(every, u=FieldValues())), Field(start, grid)
