"""A plucked string."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.fields import Field
from physkit.fields.equations import Wave
from physkit.fields.operators import Central
from physkit.geometry import Box, Dirichlet, Grid
from physkit.integrators import Euler, Strang
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def plucked_string(
    speed: ArrayLike = 1.0, *, cells: int = 200, courant: float = 0.5, every: int = 10
) -> tuple[Simulation, dict[str, Field]]:
    """A hump on a string of length 1, held at both ends, let go at rest.

        ∂²u/∂t² = c² ∂²u/∂x²

    Halves of it run both ways at c, return upside down from the ends, and meet again upside down
    in the mirror's place after 1/c, as they were after 2/c (d'Alembert). The steps are symplectic.

    **Arguments:**

    - `courant`: c dt/h, up to 1.
    - `every`: steps between frames `u`.

    **Reference:** d'Alembert, Hist. Acad. Sci. Berlin 3, 214 (1747).
    """
    grid, fixed_ends = Grid(Box([1.0], (False,)), (cells,)), Dirichlet(0.0)

    def hump(x):
        return jnp.exp(-(((x - 0.3) / 0.05) ** 2))

    wave = Wave(speed, scheme=Central())
    state = {
        "displacement": Field.from_function(grid, hump, boundary=fixed_ends),
        "velocity": Field(0.0, grid, boundary=fixed_ends),
    }
    sim = Simulation(
        # Kick and drift are exact for the part that moves, so that Euler steps of them are, too.
        Strang(Euler(wave.kick), Euler(wave.drift)),
        dt=courant / cells / jnp.asarray(speed, float),
        observers=Every(every, u=FieldValues("displacement")),
    )
    return sim, state
