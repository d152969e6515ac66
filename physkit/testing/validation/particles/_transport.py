"""Transport in a Lennard-Jones fluid, by the relation of Green and Kubo."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from physkit.core import lagged_products
from physkit.ensemble import sweep
from physkit.integrators import VelocityRescaling, VelocityVerlet
from physkit.observe import Every, HeatFlux
from physkit.particles import Particles, lattice, maxwell_boltzmann
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Simulation, run

from .._case import Case, Published

_DT, _EVERY, _RUNS = 0.004, 5, 16


def conductivity() -> dict[str, Any]:
    """108 atoms at density 0.6 and T = 1.35, as in the paper: sixteen runs of 160 time units.

    κ = V/(k_B T²) ∫ ⟨J_x(0) J_x(t)⟩ dt,   to 2 time units
    """
    temperature = 1.35
    sites, box = lattice.face_centered_cubic(3, density=0.6)
    atoms = maxwell_boltzmann(jax.random.key(0), Particles(sites, space=box), 2 * temperature)
    force = Pairwise(LennardJones(), 2.5, truncation="shifted-force", use_neighbor_list=False)
    tight = VelocityRescaling(VelocityVerlet(force), temperature, relaxation_time=0.2)
    fluid = run(Simulation(tight, dt=_DT), atoms, 4_000, key=1, progress=False).state
    # So loose that it moves the energy of a run to its temperature, and no flux.
    loose = VelocityRescaling(VelocityVerlet(force), temperature, relaxation_time=20.0)
    simulation = Simulation(loose, dt=_DT, observers=Every(_EVERY, flux=HeatFlux()))
    runs = sweep((simulation, fluid), 42_000, replicas=_RUNS, key=2, progress=False)
    flux = np.asarray(runs["flux"])[:, 2000 // _EVERY :]
    found = float(fluid.space.volume) / temperature**2 * _integral(flux, 100)
    return {"conductivity": found.mean(), "standard error": found.std(ddof=1) / np.sqrt(_RUNS)}


def _integral(flux: Float[np.ndarray, "run t k"], lags: int) -> Float[np.ndarray, " run"]:
    """∫ ⟨f(0) f(t)⟩ dt of each run, the mean over components; by the trapezoidal rule."""
    count = flux.shape[1]
    products = lagged_products(flux)[:, :lags].mean(axis=2)
    correlation = products / (count - np.arange(lags))
    return _EVERY * _DT * (correlation.sum(axis=1) - 0.5 * (correlation[:, 0] + correlation[:, -1]))


CASES = (
    Case(
        "thermal-conductivity",
        conductivity,
        (
            Published("conductivity", 3.4, 0.1, "relative"),
            Published("standard error", 0.0, 0.2, "at most"),
        ),
        "Evans, Phys. Rev. A 34, 1449 (1986), Fig. 1",
        slow=True,
    ),
)
