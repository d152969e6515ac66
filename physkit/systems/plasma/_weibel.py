"""Counter-streaming beams that break into filaments."""

import math

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from physkit.core import ParameterError, explain_call
from physkit.fields import ElectromagneticField
from physkit.fields.equations import Maxwell
from physkit.geometry import Box, Grid
from physkit.integrators import ParticleInCell
from physkit.observe import ElectromagneticEnergy, Every, RelativisticKineticEnergy, Snapshot
from physkit.particles import Particles
from physkit.simulate import Simulation

from .._arguments import explain_system

_ROWS = 4  # cells along the beams, where nothing varies


@explain_system
def weibel_instability(
    speed: float = 0.5,
    wavenumber: float = 1.0,
    *,
    amplitude: float = 1e-4,
    cells: int = 32,
    per_cell: int = 4,
    courant: float = 0.9,
    every: int = 1,
    dtype: DTypeLike = float,
) -> tuple[Simulation, dict[str, Particles | ElectromagneticField]]:
    """Two cold beams of electrons through each other along y: currents along y attract one another, and the
    magnetic field between them grows from a weak wave along x.

        B_z ∝ e^{Γt} sin kx,   Γ: `weibel_growth_rate`

    In units of c and of the plasma frequency of both beams together; ions at rest. The box is one wave wide and
    four cells high. Frames: `magnetic`, ½∫H² dV, which grows as e^{2Γt}; `field` and `kinetic`, energies.

    **Arguments:**

    - `speed`: of either beam, below 1.
    - `wavenumber`: k.
    - `amplitude`: of the wave at the start, of H_z.
    - `cells`: along the wave. `per_cell`: particles of each beam, a square number.
    - `courant`: dt over the longest stable step. `every`: steps between frames.
    - `dtype`: precision of the state.

    **Reference:** Weibel, Phys. Rev. Lett. 2, 83 (1959); Fried, Phys. Fluids 2, 337 (1959), for cold beams.
    """
    if speed >= 1:
        raise ParameterError(f"beams are slower than light, speed below 1; got {speed}")
    h = 2 * math.pi / (wavenumber * cells)
    box = Box(jnp.asarray([cells * h, _ROWS * h], dtype))
    grid, side = Grid(box, (cells, _ROWS)), max(1, round(math.sqrt(per_cell)))
    axes = [(np.arange(n * side) + 0.5) * (h / side) for n in grid.shape]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    weight = 0.5 * (h / side) ** 2  # of a density of ½ each
    momentum = speed / math.sqrt(1 - speed**2)

    def beam(direction: float) -> Particles:
        u = np.array([0.0, direction * momentum])
        return Particles(
            jnp.asarray(places, dtype), np.tile(u, (len(places), 1)), weight, box, charge=-weight
        )

    maxwell = Maxwell(component="light")
    field = ElectromagneticField.of(
        grid,
        {"Hz": lambda x, y: amplitude * jnp.sin(wavenumber * x) + 0 * y},
        mode="TE",
        dtype=dtype,
    )
    observers = Every(
        every,
        magnetic=_magnetic_energy,
        field=ElectromagneticEnergy("light"),
        kinetic=RelativisticKineticEnergy(),
    )
    simulation = Simulation(
        ParticleInCell(maxwell, ("up", "down")),
        dt=courant * maxwell.longest_step(grid),
        observers=observers,
    )
    return simulation, {"light": field, "up": beam(1.0), "down": beam(-1.0)}


def _magnetic_energy(now: Snapshot) -> Array:
    return 0.5 * (now.state["light"].Hz ** 2).integral()


@explain_call
def weibel_growth_rate(speed: ArrayLike, wavenumber: ArrayLike) -> Float[Array, "..."]:
    """Γ of filaments in two equal cold beams, in units of the plasma frequency of both; k in units of ω_p/c.

        Γ⁴ + Γ² (k² + 1/γ³) − v² k²/γ = 0

    **Reference:** the cold limit of Fried, Phys. Fluids 2, 337 (1959), with relativistic masses.
    """
    v, k = jnp.asarray(speed, float), jnp.asarray(wavenumber, float)
    gamma = 1 / jnp.sqrt(1 - v**2)
    half = 0.5 * (k**2 + gamma**-3)
    return jnp.sqrt(jnp.sqrt(half**2 + v**2 * k**2 / gamma) - half)
