"""The Ising and the Potts model, and what Onsager found of the first."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import Key, ParameterError, as_count, explain_call
from physkit.geometry import Grid
from physkit.integrators import AbstractSpinUpdate, SwendsenWang
from physkit.observe import Every, Magnetization, SpinEnergy
from physkit.simulate import Simulation
from physkit.spins import AbstractSpinModel, IsingModel, PottsModel, Spins

from .._arguments import explain_system

ISING_TEMPERATURE = 2 / math.log(1 + math.sqrt(2))  # k_B T_c / J of the square lattice

Update = Callable[[AbstractSpinModel, ArrayLike], AbstractSpinUpdate]


def potts_temperature(states: int) -> float:
    """k_B T_c / J of the Potts model on the square lattice, 1 / ln(1 + √q).

    **Reference:** Wu, Rev. Mod. Phys. 54, 235 (1982), eq. 3.1.
    """
    return 1 / math.log(1 + math.sqrt(as_count(states, "states", ParameterError)))


class OnsagerSolution(NamedTuple):
    """The Ising model on an infinite square lattice, per site, of the shape of the temperatures.

    `energy` u, J. `heat_capacity` c, k_B; infinite at T_c. `magnetization` M ≥ 0.
    """

    energy: np.ndarray
    heat_capacity: np.ndarray
    magnetization: np.ndarray


@explain_call
def onsager_solution(temperature: ArrayLike) -> OnsagerSolution:
    """Energy, heat capacity and magnetization of the Ising model without a field, J = 1, in the plane.

        u = −coth(2K) [1 + (2/π) (2 tanh² 2K − 1) K₁(κ)],   κ = 2 sinh 2K / cosh² 2K,   K = 1/T
        c = (4/π) (K coth 2K)² {K₁ − E₁ − (1 − tanh² 2K) [π/2 + (2 tanh² 2K − 1) K₁]}
        M = [1 − sinh⁻⁴ 2K]^{1/8} below T_c

    with the complete elliptic integrals K₁ and E₁ of modulus κ.

    **Arguments:** `temperature`: k_B T / J, of any shape, positive.

    **Reference:** Onsager, Phys. Rev. 65, 117 (1944), eq. 116, 117; Yang, Phys. Rev. 85, 808 (1952), eq. 96.
    """
    from scipy.special import ellipe, ellipk  # here: it takes part of a second to import

    T = np.asarray(temperature, np.float64)
    if not np.all(T > 0):
        raise ParameterError(f"temperatures are positive; got {temperature}")
    x = 2 / T
    tanh, sinh = np.tanh(x), np.sinh(x)
    squared = np.minimum((2 * sinh / np.cosh(x) ** 2) ** 2, 1.0)
    first, second = ellipk(squared), ellipe(squared)
    # At T_c the integral is infinite, its factor 0, and their product 0.
    product = (2 * tanh**2 - 1) * np.where(np.isinf(first), 0.0, first)
    energy = -(1 + 2 / np.pi * product) / tanh
    bracket = first - second - (1 - tanh**2) * (np.pi / 2 + product)
    heat_capacity = 4 / np.pi * (1 / T / tanh) ** 2 * bracket
    magnetization = np.maximum(1 - sinh**-4.0, 0.0) ** 0.125
    return OnsagerSolution(energy, heat_capacity, magnetization)


@explain_system
def ising_model(
    temperature: ArrayLike = 2.0,
    *,
    cells: tuple[int, ...] = (64, 64),
    field: ArrayLike = 0.0,
    update: Update = SwendsenWang,
    disordered: bool = False,
    every: int = 1,
    key: Key | None = None,
) -> tuple[Simulation, Spins]:
    """The Ising model on a periodic lattice, J = 1, recorded sweep by sweep.

        E = −Σ_⟨ij⟩ s_i s_j − h Σ_i s_i

    **Arguments:**

    - `temperature`: k_B T / J; in the plane it orders below `ISING_TEMPERATURE`.
    - `cells`: sites along one, two or three axes.
    - `field`: h / J.
    - `update`: `SwendsenWang`, `SpinHeatBath` or `SpinMetropolis`; or a function of model and temperature.
    - `disordered`: whether spins start at random instead of all up.
    - `every`: steps between frames `energy` (of the whole lattice) and `magnetization` (per site).
    - `key`: of a disordered start.

    **Reference:** Onsager, Phys. Rev. 65, 117 (1944).
    """
    return _lattice(IsingModel(1.0, field), temperature, cells, update, 1, disordered, every, key)


@explain_system
def potts_model(
    states: int = 3,
    temperature: ArrayLike | None = None,
    *,
    cells: tuple[int, ...] = (64, 64),
    update: Update = SwendsenWang,
    disordered: bool = False,
    every: int = 1,
    key: Key | None = None,
) -> tuple[Simulation, Spins]:
    """The Potts model on a periodic lattice, J = 1, recorded sweep by sweep.

        E = −Σ_⟨ij⟩ δ(s_i, s_j)

    **Arguments:** `states`: q. `temperature`: k_B T / J; T_c of the square lattice if left out. All
    others as of `ising_model`.

    **Reference:** Wu, Rev. Mod. Phys. 54, 235 (1982).
    """
    temperature = potts_temperature(states) if temperature is None else temperature
    return _lattice(PottsModel(states), temperature, cells, update, 0, disordered, every, key)


def _lattice(
    model: AbstractSpinModel,
    temperature: ArrayLike,
    cells: tuple[int, ...],
    update: Update,
    ordered: int,
    disordered: bool,
    every: int,
    key: Key | None,
) -> tuple[Simulation, Spins]:
    start = jnp.int8(ordered)
    if disordered:
        key = jax.random.key(0) if key is None else key
        start = jax.random.choice(key, jnp.asarray(model.values, jnp.int8), cells)
    spins = Spins(start, Grid([float(n) for n in cells], cells))
    watch = Every(every, energy=SpinEnergy(), magnetization=Magnetization())
    return Simulation(update(model, temperature), dt=1.0, observers=watch), spins
