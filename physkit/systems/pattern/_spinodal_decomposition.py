"""A mixture that parts into two phases, which coarsen."""

import jax
from jax.typing import ArrayLike

from physkit.core import Key
from physkit.fields import Field
from physkit.fields.equations import CahnHilliard
from physkit.geometry import Grid
from physkit.integrators import ETDRK2
from physkit.observe import Every, FieldValues, FreeEnergy
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def spinodal_decomposition(
    mean: ArrayLike = 0.0,
    *,
    cells: tuple[int, ...] = (128, 128),
    dt: ArrayLike = 0.5,
    every: int = 100,
    key: Key | None = None,
) -> tuple[Simulation, Field]:
    """A mixture that is quenched into its unstable range: a maze or drops, by its mean, that coarsen as t^⅓.

        ∂φ/∂t = ∇² (φ³ − φ − ∇²φ)

    Cells have length 1; an interface is tanh(x/√2). Starts from φ = `mean` and noise of 0.05.

    **Arguments:**

    - `mean`: of φ: 0 gives a maze, 0.4 drops; beyond 1/√3 the mixture is stable.
    - `cells`: along one, two or three axes.
    - `every`: steps between frames `phi`, `[*cells]`, and `free_energy`.

    **Reference:** Cahn & Hilliard, J. Chem. Phys. 28, 258 (1958); Lifshitz & Slyozov, J. Phys. Chem. Solids
    19, 35 (1961), for the exponent.
    """
    grid = Grid([float(n) for n in cells], cells)
    key = jax.random.key(0) if key is None else key
    start = Field(mean + 0.05 * jax.random.normal(key, cells), grid)
    watch = Every(every, phi=FieldValues(), free_energy=FreeEnergy())
    return Simulation(ETDRK2(CahnHilliard()), dt=dt, observers=watch), start
