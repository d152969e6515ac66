"""Spins on lattices: Onsager's and Yang's numbers, and the duality of the Potts model."""

from typing import Any

import jax
import numpy as np

from physkit.observe import jackknife, spin_averages
from physkit.simulate import simulate
from physkit.systems import (
    ISING_TEMPERATURE,
    ising_model,
    onsager_solution,
    potts_model,
    potts_temperature,
)

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


def critical_temperature() -> dict[str, Any]:
    """Where the curves of Binder's cumulant of 32² and 64² sites cross: at five temperatures within 0.012 J of
    T_c, 6 000 steps of Swendsen and Wang each, by a line through their differences."""
    offsets = np.linspace(-0.012, 0.012, 5)
    found = {}
    for side in (32, 64):

        @jax.jit
        @jax.vmap
        def series(temperature: Any, key: Any, side: int = side) -> Any:
            simulation, spins = ising_model(temperature, cells=(side, side))
            return simulate(simulation, spins, 6000, key=key).frames["magnetization"]

        keys = jax.random.split(jax.random.key(side), len(offsets))
        m = np.asarray(series(ISING_TEMPERATURE + offsets, keys))[:, 300:]
        cumulants = [jackknife(lambda a, b: 1 - b / (3 * a**2), x**2, x**4) for x in m]
        found[side] = np.array([(float(c.value), float(c.error)) for c in cumulants])
    difference = found[64][:, 0] - found[32][:, 0]
    error = np.hypot(found[64][:, 1], found[32][:, 1])
    design = np.stack([np.ones_like(offsets), offsets], axis=1) / error[:, None]
    covariance = np.linalg.inv(design.T @ design)
    at, slope = covariance @ design.T @ (difference / error)
    crossing = -at / slope
    gradient = np.array([-1 / slope, at / slope**2])
    spread = float(np.sqrt(gradient @ covariance @ gradient))
    return {
        "T_c": ISING_TEMPERATURE + crossing,
        "deviation in standard errors": crossing / spread,
        "standard error": spread,
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
        "ising-critical",
        critical_temperature,
        (
            Published("T_c", 2.269185314213, 0.005),
            Published("deviation in standard errors", 0, 3),
            Published("standard error", 0, 0.0025, "at most"),
        ),
        "Onsager, Phys. Rev. 65, 117 (1944); Binder, Z. Phys. B 43, 119 (1981)",
        slow=True,
    ),
    Case(
        "potts-duality",
        potts_duality,
        (Published("duality", 0.0, 0.006),),
        "Potts, Proc. Camb. Phil. Soc. 48, 106 (1952): T_c as the self-dual point",
    ),
)
