"""Oscillations that spread: spirals, or turbulence of phases."""

import jax
from jax.typing import ArrayLike

from physkit.core import Key
from physkit.fields import Field
from physkit.fields.equations import ComplexGinzburgLandau
from physkit.geometry import Grid
from physkit.integrators import ETDRK4
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def complex_ginzburg_landau(
    dispersion: ArrayLike = -0.5,
    detuning: ArrayLike = 0.6,
    *,
    cells: tuple[int, ...] = (128, 128),
    dt: ArrayLike = 0.1,
    every: int = 100,
    key: Key | None = None,
) -> tuple[Simulation, Field]:
    """Oscillations near their onset, from complex noise of 0.05: spirals that turn about points where A = 0.

        ∂A/∂t = A + (1 + ib) ∇²A − (1 + ic) |A|² A

    Cells have length 1. Where 1 + bc < 0 all waves are unstable: turbulence of the phase.

    **Arguments:**

    - `dispersion`: b. `detuning`: c. (2, −1.5) is turbulent.
    - `cells`: along one, two or three axes.
    - `every`: steps between frames `amplitude`, complex, `[*cells]`.

    **Reference:** Aranson & Kramer, Rev. Mod. Phys. 74, 99 (2002).
    """
    grid = Grid([float(n) for n in cells], cells)
    key = jax.random.key(0) if key is None else key
    parts = 0.05 * jax.random.normal(key, (2, *cells))
    start = Field(jax.lax.complex(parts[0], parts[1]), grid)
    law = ComplexGinzburgLandau(dispersion=dispersion, detuning=detuning)
    watch = Every(every, amplitude=FieldValues())
    return Simulation(ETDRK4(law), dt=dt, observers=watch), start
