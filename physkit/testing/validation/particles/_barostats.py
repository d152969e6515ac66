"""Barostats: density and compressibility of a Lennard-Jones fluid, from the fluctuations of its volume."""

from typing import Any

import jax
import numpy as np

from physkit.integrators import (
    BoxMotion,
    MartynaTobiasKlein,
    MonteCarloBarostat,
    StochasticCellRescaling,
    ThermostatChain,
    VelocityRescaling,
    VelocityVerlet,
)
from physkit.observe import Every
from physkit.particles import Particles, lattice, maxwell_boltzmann
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Simulation, simulate
from physkit.systems import lennard_jones_equation_of_state

from .._case import Case, Published

_DENSITY, _TEMPERATURE = 0.6, 2.0
_BATHS = ("StochasticCellRescaling", "MonteCarloBarostat", "MartynaTobiasKlein")


def volumes_of_a_fluid() -> dict[str, Any]:
    """32 boxes of 108 atoms at T = 2 and the pressure of density 0.6, under each barostat.

    β = var V/(⟨V⟩ k_B T) beside 1/(ρ ∂p/∂ρ) of Johnson's equation of state.
    """
    state_at = lambda rho: lennard_jones_equation_of_state(rho, _TEMPERATURE).pressure
    pressure = float(state_at(_DENSITY))
    slope = (float(state_at(_DENSITY + 1e-3)) - float(state_at(_DENSITY - 1e-3))) / 2e-3
    out: dict[str, Any] = {}
    for name in _BATHS:
        volume = _volumes(name, pressure)
        compressibility = np.var(volume) / (np.mean(volume) * _TEMPERATURE)
        out[f"density: {name}"] = 108 / np.mean(volume)
        out[f"compressibility: {name}"] = compressibility * _DENSITY * slope
    return out


def _volumes(name: str, pressure: float) -> np.ndarray:
    """Volumes `[box time]` after relaxation."""
    deterministic = name == "MartynaTobiasKlein"
    force = Pairwise(
        LennardJones(), 2.6, truncation="switch", tail=True, use_neighbor_list=False,
        component="atoms" if deterministic else None,
    )  # fmt: skip
    thermostat = VelocityRescaling(VelocityVerlet(force), _TEMPERATURE, relaxation_time=0.3)
    barostat = {
        "StochasticCellRescaling": StochasticCellRescaling(
            thermostat, pressure, 0.4, 0.15, interval=5
        ),
        "MonteCarloBarostat": MonteCarloBarostat(thermostat, pressure, 0.06, interval=5),
        "MartynaTobiasKlein": MartynaTobiasKlein(force, _TEMPERATURE, pressure, 0.4, 1.5),
    }[name]
    position, box = lattice.face_centered_cubic(3, density=_DENSITY)

    def atoms_of(state: Any) -> Particles:
        return state["atoms"] if deterministic else state

    record = Every(20, volume=lambda now: atoms_of(now.state).space.volume)
    simulation = Simulation(barostat, dt=0.005, observers=record)

    def replica(key: jax.Array) -> jax.Array:
        atoms = maxwell_boltzmann(key, Particles(position, space=box), _TEMPERATURE)
        state = atoms
        if deterministic:
            state = {
                "atoms": atoms,
                "thermostat": ThermostatChain.at_rest(),
                "barostat": BoxMotion.at_rest(3),
            }
        return simulate(simulation, state, 8000, key=key).frames["volume"][50:]

    return np.asarray(jax.jit(jax.vmap(replica))(jax.random.split(jax.random.key(0), 32)))


CASES = (
    Case(
        "barostat-compressibility",
        volumes_of_a_fluid,
        # Some thousand independent volumes: standard errors of 0.2 % and 5 %.
        (
            *(Published(f"density: {name}", _DENSITY, 0.01, "relative") for name in _BATHS),
            *(Published(f"compressibility: {name}", 1.0, 0.12) for name in _BATHS),
        ),
        "Johnson, Zollweg & Gubbins 1993; compressibilities over theirs",
        slow=True,
    ),
)
