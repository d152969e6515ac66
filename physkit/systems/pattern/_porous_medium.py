"""A spot in a porous medium: diffusion whose coefficient is what diffuses."""

from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import safe_maximum
from physkit.fields import Field
from physkit.fields.equations import NonlinearDiffusion, PowerLaw
from physkit.geometry import Box, Grid, Neumann
from physkit.integrators import SSPRK2
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


def barenblatt_spot(t: ArrayLike, *x: Array, exponent: float = 1.0) -> Array:
    """Barenblatt's solution of ∂u/∂t = ∇·(uᵐ ∇u) at time t: u(0) = t^(−dβ), its edge at √(2(d + 2/m)) t^β.

        u = t^(−dβ) max(1 − (β m/2) r² t^(−2β), 0)^(1/m),   β = 1/(dm + 2)

    **Arguments:** `x`: coordinates relative to the middle of the spot, one array per axis. `exponent`: m > 0.

    **Reference:** Barenblatt, Prikl. Mat. Mekh. 16, 67 (1952); Vázquez, The Porous Medium Equation (2007).
    """
    d, beta = len(x), 1 / (len(x) * exponent + 2)
    square = sum((part**2 for part in x[1:]), x[0] ** 2)
    inside = safe_maximum(1 - beta * exponent / 2 * square * t ** (-2 * beta), 0)
    return t ** (-d * beta) * inside ** (1 / exponent)


@explain_system
def porous_medium(
    *, cells: int = 64, dimension: int = 2, every: int = 50
) -> tuple[Simulation, Field]:
    """A spot that spreads with an edge, from Barenblatt's solution at t = 1, D = u; between walls.

        ∂u/∂t = ∇·(u ∇u)

    The box is 16 long and the spot in its middle; steps are 0.7 of what is stable.

    **Arguments:**

    - `cells`: along each axis. `dimension`: 1, 2 or 3.
    - `every`: steps between frames `u`, `[*cells]`.

    **Reference:** Barenblatt, Prikl. Mat. Mekh. 16, 67 (1952); `barenblatt_spot` is the solution.
    """
    length = 16.0
    grid = Grid(Box([length] * dimension, periodic=False), (cells,) * dimension)
    start = Field.from_function(
        grid, lambda *x: barenblatt_spot(1.0, *(c - length / 2 for c in x)), boundary=Neumann(0.0)
    )
    dt = 0.7 * (length / cells) ** 2 / (2 * dimension)
    law = NonlinearDiffusion(PowerLaw(1.0, 1.0))
    return Simulation(SSPRK2(law), dt=dt, observers=Every(every, u=FieldValues())), start
