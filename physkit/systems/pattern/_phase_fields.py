"""Patterns by a free energy: a boundary that shrinks, rolls and hexagons, a liquid that freezes."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import Key
from physkit.fields import Field
from physkit.fields.equations import AllenCahn, PhaseFieldCrystal, SwiftHohenberg
from physkit.geometry import Grid
from physkit.integrators import ETDRK2
from physkit.observe import Every, FieldValues, FreeEnergy
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def allen_cahn(
    radius: ArrayLike = 0.35,
    *,
    cells: tuple[int, ...] = (96, 96),
    dt: ArrayLike = 0.2,
    every: int = 50,
) -> tuple[Simulation, Field]:
    """A disk of one phase in the other, whose boundary moves by its curvature: its area falls at 2π.

        ∂φ/∂t = ∇²φ + φ − φ³

    Cells have half the length of √2, over which tanh(x/√2) changes. In space a ball: R² falls at 4.

    **Arguments:**

    - `radius`: over the length of the box; 0.1 to 0.4.
    - `cells`: along one, two or three axes.
    - `every`: steps between frames `phi`, `[*cells]`, and `free_energy`.

    **Reference:** Allen & Cahn, Acta Metall. 27, 1085 (1979).
    """
    size = math.sqrt(0.5)
    grid = Grid([size * n for n in cells], cells)
    center = [size * n / 2 for n in cells]

    def profile(*x: Array) -> Array:
        squares = [(part - c) ** 2 for part, c in zip(x, center, strict=True)]
        distance = jnp.sqrt(sum(squares[1:], squares[0])) - radius * size * min(cells)
        return -jnp.tanh(distance * math.sqrt(0.5))

    watch = Every(every, phi=FieldValues(), free_energy=FreeEnergy())
    start = Field.from_function(grid, profile)
    return Simulation(ETDRK2(AllenCahn()), dt=dt, observers=watch), start


@explain_system
def swift_hohenberg(
    drive: ArrayLike = 0.3,
    asymmetry: ArrayLike = 0.0,
    *,
    cells: tuple[int, ...] = (128, 128),
    dt: ArrayLike = 0.4,
    every: int = 100,
    key: Key | None = None,
) -> tuple[Simulation, Field]:
    """Convection near its onset, from noise of 0.05: rolls, or hexagons where up and down differ.

        ∂u/∂t = r u − (1 + ∇²)² u + g u² − u³

    Eight cells for a wave of length 2π.

    **Arguments:**

    - `drive`: r; rolls of amplitude √(4r/3). `asymmetry`: g; 1 at r = 0.1 gives hexagons.
    - `cells`: along one, two or three axes.
    - `every`: steps between frames `u`, `[*cells]`, and `free_energy`.

    **Reference:** Swift & Hohenberg, Phys. Rev. A 15, 319 (1977); Cross & Hohenberg, Rev. Mod. Phys. 65, 851
    (1993).
    """
    start = _noise(cells, math.pi / 4, 0.0, 0.05, key)
    watch = Every(every, u=FieldValues(), free_energy=FreeEnergy())
    law = SwiftHohenberg(drive, asymmetry)
    return Simulation(ETDRK2(law), dt=dt, observers=watch), start


@explain_system
def phase_field_crystal(
    drive: ArrayLike = 0.25,
    mean: ArrayLike = -0.285,
    *,
    cells: tuple[int, int] = (128, 128),
    dt: ArrayLike = 0.5,
    every: int = 100,
) -> tuple[Simulation, Field]:
    """A liquid that freezes from a seed in its middle: a triangular crystal, 7.26 from atom to atom.

        ∂ψ/∂t = ∇² [((1 + ∇²)² − r) ψ + ψ³]

    About ten cells for an atom, in a box that a perfect crystal fits; ∫ψ dA is kept. Frozen through at
    t = 300.

    **Arguments:**

    - `drive`: r, undercooling. `mean`: of ψ; −0.285 at r = 0.25 freezes, −0.4 stays liquid.
    - `every`: steps between frames `psi`, `[*cells]`, and `free_energy`.

    **Reference:** Elder, Katakowski, Haataja & Grant, Phys. Rev. Lett. 88, 245701 (2002).
    """
    # Atoms along x, and pairs of rows along y, as many as ten cells for an atom leave room for.
    periods = 4 * math.pi / math.sqrt(3), 4 * math.pi
    counts = [max(1, round(n * periods[0] / 10 / p)) for n, p in zip(cells, periods)]
    lengths = [p * n for p, n in zip(periods, counts)]
    grid = Grid(lengths, cells)

    def seeded(x: Array, y: Array) -> Array:
        x, y = x - lengths[0] / 2, y - lengths[1] / 2
        half = math.sqrt(3) / 2
        atoms = jnp.cos(half * x) * jnp.cos(0.5 * y) - 0.5 * jnp.cos(y)
        # Negative: atoms are peaks of the density, of which there are half as many as of troughs.
        return mean - 0.45 * atoms * jnp.exp(-(((x**2 + y**2) / 150.0) ** 2))

    watch = Every(every, psi=FieldValues(), free_energy=FreeEnergy())
    start = Field.from_function(grid, seeded)
    return Simulation(ETDRK2(PhaseFieldCrystal(drive)), dt=dt, observers=watch), start


def _noise(
    cells: tuple[int, ...], size: float, mean: ArrayLike, strength: float, key: Key | None
) -> Field:
    grid = Grid([size * n for n in cells], cells)
    key = jax.random.key(0) if key is None else key
    return Field(mean + strength * jax.random.normal(key, cells), grid)
