"""Lennard-Jones liquids: single configurations to all digits, and averages."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import Clock, StepCount
from physkit.geometry import Box
from physkit.integrators import BAOAB
from physkit.observe import Average, Every, PotentialEnergy, Pressure, TotalEnergy
from physkit.particles import Particles, lattice, maxwell_boltzmann
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Simulation, run
from physkit.systems import (
    ARGON_DIFFUSION,
    ARGON_FIRST_PEAK,
    argon_results,
    kob_andersen,
    lennard_jones_melt,
    liquid_argon,
    melt,
)

from .._case import Case, Published, reference_data

# Density → U/N and p at T* = 0.85: NIST Standard Reference Simulation Website, molecular dynamics.
NIST_STATE_POINTS = {0.776: (-5.5121, 0.00677), 0.820: (-5.7947, 0.5536), 0.860: (-6.0305, 1.2660)}


def lammps_step_0() -> dict[str, Any]:
    """The benchmark in.lj: 32 000 atoms on a crystal of density 0.8442, cut plainly at 2.5, T = 1.44."""
    sim, atoms = lennard_jones_melt(20)
    record = Every(1, total=TotalEnergy(), potential=PotentialEnergy(), pressure=Pressure())
    sim = dataclasses.replace(sim, observers=(record,))
    first = run(sim, atoms, 1, progress=False).frames
    return {
        "E_pair/N": first["potential"][0] / atoms.num_particles,
        "E_total/N": first["total"][0] / atoms.num_particles,
        "pressure": first["pressure"][0],
    }


def nist_configuration_4() -> dict[str, Any]:
    """30 atoms in a cubic box of edge 8: energy, virial and tail, cut in three ways."""
    atoms = _read_xyz(reference_data() / "nist" / "lj_n30_l8.xyz")
    out: dict[str, Any] = {}
    for label, cutoff, truncation in (
        ("rc 3", 3.0, "plain"),
        ("rc 4", 4.0, "plain"),
        ("rc 3 shifted force", 3.0, "shifted-force"),
    ):
        energy, virial = _energy_and_virial(atoms, cutoff, truncation, tail=False)
        out |= {f"{label}: U": energy, f"{label}: W": virial}
        if truncation == "plain":
            with_tail, _ = _energy_and_virial(atoms, cutoff, truncation, tail=True)
            out[f"{label}: tail"] = with_tail - energy
    return out


def _energy_and_virial(atoms: Particles, cutoff: float, truncation: str, tail: bool):
    force = Pairwise(LennardJones(), cutoff, 0.0, truncation, tail=tail)

    @jax.jit
    def energy_and_virial(atoms):
        clock, cache = Clock.at(StepCount.of(0), 0.0, 1.0), force.init(atoms)
        virial = force.virial(clock, atoms, cache)
        return force.energy(clock, atoms, cache), jnp.trace(virial)

    return energy_and_virial(atoms)


def _read_xyz(path) -> Particles:
    """A configuration as NIST prints it: a number, "1" and the edges, then label and coordinates."""
    rows = [[float(x) for x in line.split()] for line in path.read_text().splitlines()]
    return Particles(np.array([row[1:4] for row in rows[2:]]), space=Box(rows[1][1:4]))


def nist_state_points() -> dict[str, Any]:
    """500 atoms cut plainly at 3 σ, with tail corrections, thermostatted at temperature 0.85.

    Per density 30 time units of Langevin dynamics to melt, then 150 to average over. Dynamics
    feels no force at the cut and so samples the shifted potential: U and p are averaged with the
    plain one.
    """
    out: dict[str, Any] = {}
    for density in NIST_STATE_POINTS:
        sites, box = lattice.face_centered_cubic(5, density=density)
        atoms = maxwell_boltzmann(jax.random.key(0), Particles(sites, space=box), 1.7)
        force = Pairwise(LennardJones(), cutoff=3.0, truncation="plain", tail=True, skin=0.4)
        thermostat = BAOAB(force, temperature=0.85, friction=1.0)
        mean = Average(10, potential=PotentialEnergy(), pressure=Pressure())
        melting = Simulation(thermostat, dt=0.005)
        sim = Simulation(thermostat, dt=0.005, observers=mean)
        liquid = run(melting, atoms, 6_000, key=jax.random.key(1), progress=False).state
        done = run(sim, liquid, 30_000, key=jax.random.key(2), progress=False)
        out[f"ρ {density:.3f}: U"] = done["potential"]["mean"] / atoms.num_particles
        out[f"ρ {density:.3f}: p"] = done["pressure"]["mean"]
    return out


def mixture() -> dict[str, Any]:
    """500 particles of the Kob–Andersen mixture at its melting point: 20 time units to melt, then 160."""
    sim, crystal = kob_andersen(temperature=1.028, friction=0.5)
    liquid = run(sim, crystal, 5_000, key=jax.random.key(1), progress=False).state
    found = run(sim, liquid, 40_000, key=jax.random.key(2), progress=False)
    return {"U/N": np.mean(found["energy"]), "p": np.mean(found["pressure"])}


def argon() -> dict[str, Any]:
    """864 atoms at 94.4 K and 1.374 g/cm³: 60 ps to melt, 240 ps at constant energy."""
    sim, crystal = liquid_argon()
    liquid = melt(sim, crystal, 6_000, key=jax.random.key(1), progress=False)
    found = argon_results(run(sim, liquid, 24_000, progress=False))
    return {"first peak of g(r), Å": found.peak, "D, Å²/ps": found.diffusion.value}


CASES = (
    Case(
        "lammps-step-0",
        lammps_step_0,
        (
            Published("E_pair/N", -6.7733681, 1e-7),
            Published("E_total/N", -4.6134356, 1e-7),
            Published("pressure", -5.0197073, 1e-7),
        ),
        "LAMMPS bench/in.lj",
    ),
    Case(
        "nist-lj-4",
        nist_configuration_4,
        (
            # To all printed digits: half a unit of the last one.
            Published("rc 3: U", -16.790321304625856, 5e-14),
            Published("rc 3: W", -46.249, 5e-4),
            Published("rc 3: tail", -0.5451660014945704, 5e-15),
            Published("rc 4: U", -17.060, 5e-4),
            Published("rc 4: W", -47.869, 5e-4),
            Published("rc 4: tail", -0.23008, 5e-6),
            Published("rc 3 shifted force: U", -15.001, 5e-4),
            Published("rc 3 shifted force: W", -43.096, 5e-4),
        ),
        "NIST SRSW, Lennard-Jones configuration 4",
        needs_reference_data=True,
    ),
    Case(
        "nist-lj-liquid",
        nist_state_points,
        tuple(
            number
            for density, (energy, pressure) in NIST_STATE_POINTS.items()
            for number in (
                Published(f"ρ {density:.3f}: U", energy, 3e-3, "relative"),
                Published(f"ρ {density:.3f}: p", pressure, 0.03),
            )
        ),
        "NIST SRSW, T* = 0.85",
        slow=True,
    ),
    Case(
        "kob-andersen",
        mixture,
        (
            # Three standard errors of this run.
            Published("U/N", -5.974, 0.025),
            Published("p", 1.2 * (1.028 + 7.444), 0.17),
        ),
        "Pedersen, Schrøder & Dyre, Phys. Rev. Lett. 120, 165501 (2018), data of figure 4",
        slow=True,
    ),
    Case(
        "argon",
        argon,
        (
            Published("first peak of g(r), Å", ARGON_FIRST_PEAK, 0.02, "relative"),
            # Rahman gives no error and cuts forces at 2.25 σ; D of 240 ps has an error of its own.
            Published("D, Å²/ps", ARGON_DIFFUSION, 0.10, "relative"),
        ),
        "Rahman 1964",
        slow=True,
    ),
)
