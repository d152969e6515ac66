"""Spins on lattices: Onsager's and Yang's numbers, and the duality of the Potts model."""

from typing import Any

import jax
import numpy as np

from physkit.observe import spin_averages
from physkit.simulate import simulate
from physkit.systems import ising_model, onsager_solution, potts_model, potts_temperature

from .._case import Case, Published

SIDE = 64


def ising_below() -> dict[str, Any]:
    """The Ising model on 64² sites at k_B T = 2 J, 4 000 steps of Swendsen and Wang: the lattice is twenty
    times longer than what is correlated, and the standard errors are 0.0008 of u and 0.0006 of M."""
    simulation, spins = ising_model(2.0, cells=(SIDE, SIDE))
    frames = jax.jit(lambda: simulate(simulation, spins, 4000, key=1).frames)()
    found = spin_averages(
        frames["energy"][100:], frames["magnetization"][100:], 2.0, num_sites=SIDE**2
    )
    exact = onsager_solution(2.0)
    return {
        "u": found.energy.value,
        "M": found.magnetization.value,
        "c": found.heat_capacity.value,
        "Onsager's u": exact.energy,
        "Yang's M": exact.magnetization,
    }


def potts_duality() -> dict[str, Any]:
    """The Potts model of three states at K = 1.15 K_c and at the dual K*, (e^K − 1)(e^K* − 1) = 3, on 32²
    sites: what the share of like bonds e(K) = (dK*/dK) e(K*) + e^K/(e^K − 1) is off by, 0.002 by chance."""
    q, side = 3, 32
    K = 1.15 / potts_temperature(q)
    dual = float(np.log1p(q / np.expm1(K)))

    @jax.jit
    @jax.vmap
    def like_bonds(temperature: Any, key: Any) -> Any:
        simulation, spins = potts_model(q, temperature, cells=(side, side))
        return -simulate(simulation, spins, 2000, key=key).frames["energy"]

    series = like_bonds(1 / np.array([K, dual]), jax.random.split(jax.random.key(3), 2))
    bonds = np.asarray(series)[:, 100:].mean(axis=1) / (2 * side**2)
    slope = -np.exp(K - dual) * q / np.expm1(K) ** 2
    return {"duality": bonds[0] - slope * bonds[1] - np.exp(K) / np.expm1(K)}


CASES = (
    Case(
        "ising",
        ising_below,
        (
            Published("u", -1.745564575313, 0.0024),
            Published("M", 0.911319377877, 0.0018),
            Published("c", 0.724871448602, 0.1),
            Published("Onsager's u", -1.745564575313, 1e-11),
            Published("Yang's M", 0.911319377877, 1e-11),
        ),
        "Onsager, Phys. Rev. 65, 117 (1944); Yang, Phys. Rev. 85, 808 (1952)",
        slow=True,
    ),
    Case(
        "potts-duality",
        potts_duality,
        (Published("duality", 0.0, 0.006),),
        "Potts, Proc. Camb. Phil. Soc. 48, 106 (1952): T_c as the self-dual point",
    ),
)
