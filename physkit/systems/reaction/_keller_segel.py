"""Cells that gather, following what they emit."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.core import Key, safe_maximum
from physkit.fields import Field
from physkit.fields.equations import Diffusion, KellerSegel
from physkit.geometry import Grid
from physkit.integrators import ETDRK2
from physkit.observe import Every, FieldValues, Integral
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def keller_segel(
    sensitivity: ArrayLike = 2.0,
    decay: ArrayLike = 0.4,
    *,
    cells: tuple[int, ...] = (96, 96),
    dt: ArrayLike = 0.01,
    every: int = 100,
    key: Key | None = None,
) -> tuple[Simulation, Field]:
    """Chemotaxis from an even density with noise of 0.1: spots that grow, until one falls into a point.

        ∂n/∂t = 0.9 ∇²n − χ ∇·(n ∇c)
        ∂c/∂t = ∇²c + n − βc

    Cells have length 3/8. Waves with k² < χ/0.9 − β grow; spots are resolved until t ≈ 13.

    **Arguments:**

    - `sensitivity`: χ. `decay`: β of the signal.
    - `cells`: along one, two or three axes.
    - `every`: steps between frames `n`, `[2, *cells]`: cells and signal; and `total`, of both.

    **Reference:** Keller & Segel, J. Theor. Biol. 26, 399 (1970).
    """
    grid = Grid([0.375 * n for n in cells], cells)
    key = jax.random.key(0) if key is None else key
    noise = 0.1 * jax.random.normal(key, cells)
    start = Field(jnp.stack([1 + noise, 1 / safe_maximum(decay, 0.1) + 0 * noise]), grid)
    flow = ETDRK2(KellerSegel(sensitivity, decay=decay), Diffusion([0.9, 1.0]))
    watch = Every(every, n=FieldValues(), total=Integral())
    return Simulation(flow, dt=dt, observers=watch), start
