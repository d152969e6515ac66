"""The energy of smooth clouds of charge in a periodic cell, from sums over charges and the cell.

In units of length in which the clouds have α = 1, so that no power of a length leaves the range of float32.
Energies are then multiples of k α, with k Coulomb's constant.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import matmul
from physkit.geometry import determinant, inverse_matrix


class Modes(NamedTuple):
    """Fourier modes of a cell: their numbers along each axis, ready to broadcast.

    - `weight`: what |S|² of each mode counts for: 2 where that of its conjugate is not among them, 0 for the
      mean and for padding, times what a mesh makes of the mode.
    """

    numbers: tuple[Array | np.ndarray, ...]
    weight: Array


class ChargeSums(NamedTuple):
    """Sums over all charges: all that the energy of a cell depends on, apart from the cell.

    - `power`: |S|² of this device's modes. `total`, `squares`: Σ q, Σ q².
    - `dipole`, `second`: Σ q s, Σ q s², with s the place between the sides of a slab, 0 to 1; else 0.
    """

    power: Float[Array, "..."]
    total: Float[Array, ""]
    squares: Float[Array, ""]
    dipole: Float[Array, ""]
    second: Float[Array, ""]


class Clouds(NamedTuple):
    """Charges, positions and cell in the units of their clouds, and all sums over them.

    - `unit`: of energy, k α; `damping`: α, the unit of 1 / length.
    """

    cell: Float[Array, "3 3"]
    charge: Float[Array, " n"]
    fraction: Float[Array, "n 3"]
    factors: Float[Array, "2 p q r"]
    sums: ChargeSums
    modes: Modes
    unit: Float[Array, ""]
    damping: Float[Array, ""]


def influence(cell: Float[Array, "3 3"], modes: Modes) -> Float[Array, "..."]:
    """2π/V · exp(−k²/4)/k² times the weight of each mode: its energy for |S|² = 1."""
    inverse = inverse_matrix(cell)
    numbers = [jnp.asarray(n, cell.dtype) for n in modes.numbers]
    k2 = None
    for a in range(3):
        k = sum(2 * math.pi * inverse[a, i] * numbers[i] for i in range(3))
        k2 = k * k if k2 is None else k2 + k * k
    # Divide by 1 where a mode does not count: of the mean k² is 0.
    counts = modes.weight != 0
    k2 = jnp.where(counts, k2, 1)
    strength = 2 * math.pi / jnp.abs(determinant(cell))
    return strength * modes.weight * jnp.where(counts, jnp.exp(-k2 / 4) / k2, 0)


def energy_of_modes(cell: Float[Array, "3 3"], power: Array, modes: Modes) -> Float[Array, ""]:
    """Σ 2π/V · exp(−k²/4)/k² |S|² over this device's modes."""
    return jnp.sum(influence(cell, modes) * power)


def energies_without_modes(
    cell: Float[Array, "3 3"], sums: ChargeSums, slab: int | None
) -> dict[str, Float[Array, ""]]:
    """What a cell's clouds have beside their waves.

    - `"self"`: minus the energy of each cloud with itself. `"background"`: that of the uniform charge which
      makes the cell neutral. `"slab"`: what takes away the cell's images along axis `slab`, its open one.
    """
    volume = jnp.abs(determinant(cell))
    out = {
        "self": -sums.squares / math.sqrt(math.pi),
        "background": -math.pi / 2 * sums.total * sums.total / volume,
    }
    if slab is not None:
        charge = sums.total * (sums.second + sums.total / 12)
        out["slab"] = (
            2 * math.pi * _slab_strength(cell, slab) * (sums.dipole * sums.dipole - charge)
        )
    return out


def slab_slopes(
    cell: Float[Array, "3 3"],
    sums: ChargeSums,
    slab: int,
    charge: Float[Array, " n"],
    place: Float[Array, " n"],
) -> Float[Array, " n"]:
    """The derivative of the slab's energy by the place s of each charge."""
    strength = 4 * math.pi * _slab_strength(cell, slab)
    return strength * charge * (sums.dipole - sums.total * place)


def _slab_strength(cell: Float[Array, "3 3"], slab: int) -> Float[Array, ""]:
    """The square of the distance between images of a slab, divided by the volume."""
    reciprocal = inverse_matrix(cell)[:, slab]
    return 1 / (jnp.sum(reciprocal * reciprocal) * jnp.abs(determinant(cell)))


def strain_slopes(
    cell: Float[Array, "3 3"], sums: ChargeSums, modes: Modes, slab: int | None
) -> tuple[Float[Array, "3 3"], Float[Array, "3 3"]]:
    """−∂U/∂ε of the modes on this device, and of the rest, for a strain x → (1 + ε) x of charges and cell."""

    # A charge keeps its place relative to the cell, and so all sums stay as they are.
    def modes_at(strain: Float[Array, "3 3"]) -> Float[Array, ""]:
        return energy_of_modes(cell + matmul(cell, strain.T), sums.power, modes)

    def rest_at(strain: Float[Array, "3 3"]) -> Float[Array, ""]:
        parts = energies_without_modes(cell + matmul(cell, strain.T), sums, slab)
        return sum(parts.values(), jnp.zeros((), strain.dtype))

    zero = jnp.zeros((3, 3), cell.dtype)
    return -jax.grad(modes_at)(zero).T, -jax.grad(rest_at)(zero).T
