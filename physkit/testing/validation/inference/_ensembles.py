"""Ensembles: rare events, and state points with replicas."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.ensemble import SweepAxis, ensemble_statistics, passage_rate, sweep
from physkit.integrators import BAOAB
from physkit.observe import Every, PotentialEnergy, Pressure
from physkit.particles import Particles, lattice, maxwell_boltzmann
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Simulation, simulate
from physkit.systems import DOUBLE_WELL_RATE, double_well

from .._case import Case, Published
from ..particles._liquids import NIST_STATE_POINTS


def escape_from_a_double_well() -> dict[str, Any]:
    """4096 members over three mean escape times, in steps of 0.1: each has noise of its own key.

    The number of members that reached +1 over the time that all were waiting; 5 % never do.
    """
    return {"rate": _escape_rate(4096, 0.1)}


def escape_from_a_double_well_large() -> dict[str, Any]:
    """The same with 20 000 members in steps of 0.05: standard error 0.7 %."""
    return {"rate": _escape_rate(20_000, 0.05)}


def _escape_rate(members: int, dt: float) -> Any:
    sim, start = double_well(jnp.float32(0.05), dt=jnp.float32(dt), dtype=jnp.float32)
    steps = round(3 / DOUBLE_WELL_RATE / dt)

    def escape_time(key):
        return simulate(sim, start, steps, key=key).summary["escape"][0]

    times = jax.jit(jax.vmap(escape_time))(jax.random.split(jax.random.key(0), members))
    return passage_rate(times, steps * dt, key=jax.random.key(1)).value


def nist_state_points_by_a_sweep() -> dict[str, Any]:
    """Three densities, four replicas of 256 atoms each, in one sweep; error bars by bootstrap.

    Cut plainly at 3 σ with tail corrections, thermostatted at temperature 0.85: 20 time units to melt, then 60
    to average over. Dynamics feels no force at the cut and so samples the shifted potential: U and p are
    averaged with the plain one.
    """
    states = []
    for density in NIST_STATE_POINTS:
        sites, box = lattice.face_centered_cubic(4, density=density)
        atoms = Particles(jnp.asarray(sites, jnp.float32), space=box)
        states.append(maxwell_boltzmann(jax.random.key(0), atoms, 4.0))
    force = Pairwise(LennardJones(), 3.0, skin=0.3, truncation="plain", tail=True, capacity=160)
    energy = PotentialEnergy()
    record = Every(20, U=lambda now: energy(now) / now.state.num_particles, p=Pressure())
    sim = Simulation(BAOAB(force, temperature=0.85, friction=1.0), dt=0.005, observers=record)
    over = SweepAxis("state", states)
    done = sweep(
        (sim, states[0]), 16_000, over=over, replicas=4, key=jax.random.key(1), progress=False
    )
    out: dict[str, Any] = {}
    for name in ("U", "p"):
        # (members, frames); the first 200 frames are of melting.
        mean = np.mean(np.asarray(done[name], float)[:, 200:], axis=1)
        by = {"density": done.coordinates["state_row"]}
        found = ensemble_statistics(mean, key=jax.random.key(2), by=by, ok=done.ok)
        for row, density in enumerate(NIST_STATE_POINTS):
            out[f"ρ {density:.3f}: {name}"] = found.mean.value[row]
        out[f"largest standard error of {name}"] = np.max(found.mean.error)
    return out


CASES = (
    Case(
        "double-well-escape",
        escape_from_a_double_well,
        (Published("rate", DOUBLE_WELL_RATE, 0.05, "relative"),),
        "quadrature of the mean first-passage time; Kramers 1940",
    ),
    Case(
        "double-well-escape-large",
        escape_from_a_double_well_large,
        (Published("rate", DOUBLE_WELL_RATE, 0.02, "relative"),),
        "quadrature of the mean first-passage time; Kramers 1940",
        slow=True,
    ),
    Case(
        "nist-lj-sweep",
        nist_state_points_by_a_sweep,
        (
            *(
                number
                for density, (energy, pressure) in NIST_STATE_POINTS.items()
                for number in (
                    Published(f"ρ {density:.3f}: U", energy, 3e-3, "relative"),
                    Published(f"ρ {density:.3f}: p", pressure, 0.03),
                )
            ),
            Published("largest standard error of U", 0.0, 0.01, "at most"),
            Published("largest standard error of p", 0.0, 0.03, "at most"),
        ),
        "NIST SRSW, T* = 0.85",
        slow=True,
    ),
)
