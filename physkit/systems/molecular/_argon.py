"""Liquid argon as Rahman simulated it, the first molecular dynamics of a real liquid."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from physkit.integrators import BAOAB, VelocityVerlet
from physkit.observe import (
    Estimate,
    Every,
    KineticEnergy,
    MeanSquareDisplacement,
    PotentialEnergy,
    RadialDistribution,
    Snapshot,
    Temperature,
    TotalEnergy,
    diffusion_coefficient,
)
from physkit.particles import (
    Particles,
    kinetic_energy,
    lattice,
    maxwell_boltzmann,
    remove_drift,
)
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Run, Simulation, run

from .._arguments import explain_system

# Ångström, picosecond and atomic mass unit; energies in u Å²/ps².
K_B = 0.831446261815324  # per kelvin
MASS = 39.948
# Rahman's argon: ε/k_B = 120 K, σ = 3.4 Å, at 94.4 K and 1.374 g/cm³.
EPSILON = 120 * K_B
SIGMA = 3.4
TEMPERATURE = 94.4 * K_B
DENSITY = 1.374 * 0.602214076 / MASS  # atoms per Å³, from g/cm³

ARGON_FIRST_PEAK = 3.7  # Å
ARGON_DIFFUSION = 0.243  # Å²/ps, that is 2.43e-5 cm²/s


@explain_system
def liquid_argon(
    cells: int = 6,
    *,
    temperature: ArrayLike = TEMPERATURE,
    dtype: DTypeLike = float,
    key: Array | None = None,
) -> tuple[Simulation, Particles]:
    """Argon at 94.4 K and 1.374 g/cm³: 864 atoms with 12–6 forces, at constant energy.

    Units: Å, ps, u. Records energy and temperature (in kelvin) every 0.1 ps, g(r) every 0.5 ps and the
    mean-square displacement up to 5 ps. The state is a crystal with thermal velocities: melt it
    with `melt` first. Published: first peak of g(r) at 3.7 Å, D = 2.43·10⁻⁵ cm²/s.

    **Arguments:**

    - `cells`: crystal cells along each edge, 4·cells³ atoms.
    - `temperature`: k_B T of the initial velocities.

    **Notes:** forces are shifted to vanish at 2.5 σ; Rahman cut them at 2.25 σ.

    **Reference:** Rahman, Phys. Rev. 136, A405 (1964).
    """
    sites, box = lattice.face_centered_cubic(cells, density=DENSITY)
    atoms = Particles(jnp.asarray(sites, dtype), mass=MASS, space=box)
    atoms = maxwell_boltzmann(0 if key is None else key, atoms, temperature)
    force = Pairwise(LennardJones(EPSILON, SIGMA), cutoff=2.5 * SIGMA)
    # Whole ångströms up to half of the box, beyond which g(r) would count images.
    r_max = float(np.floor(np.min(np.asarray(box.lengths)) / 2))
    observers = (
        Every(10, energy=TotalEnergy(), kelvin=_kelvin),
        MeanSquareDisplacement(10, lags=50),  # 50 lags of 0.1 ps: up to 5 ps
        RadialDistribution(50, r_max=r_max, bins=round(r_max / 0.05)),
    )
    # 10⁻¹⁴ s, Rahman's time step.
    return Simulation(VelocityVerlet(force), dt=0.01, observers=observers), atoms


def _kelvin(now: Snapshot) -> Float[Array, ""]:
    return Temperature()(now) / K_B


def melt(
    sim: Simulation,
    atoms: Particles,
    steps: int,
    *,
    temperature: ArrayLike = TEMPERATURE,
    key: Array,
    progress: bool = True,
) -> Particles:
    """The liquid that the crystal becomes: hot for a third of the steps, then at `temperature`.

    A Langevin thermostat leaves a random total energy, ±2 % in temperature for some 1000 atoms, at which
    constant-energy dynamics would stay for good. So velocities are scaled to the mean energy of the
    second half of the last stage.
    """
    record = Every(10, potential=PotentialEnergy(), kinetic=KineticEnergy())
    # A key for each stage: the second would otherwise be driven by the noise of the first.
    stages = (2.0, steps // 3), (1.0, steps - steps // 3)
    for (factor, stage_steps), stage_key in zip(stages, jax.random.split(key), strict=True):
        thermostat = BAOAB(sim.integrator.force, temperature=factor * temperature, friction=1.0)
        stage = dataclasses.replace(sim, integrator=thermostat, observers=(record,))
        # A multiple of the observer's interval.
        done = run(stage, atoms, stage_steps // 10 * 10, key=stage_key, progress=progress)
        atoms = done.state
    energy = np.asarray(done["potential"] + done["kinetic"], float)
    # Only kinetic energy can be chosen: what the mean total leaves beside the last potential energy.
    kinetic = np.mean(energy[len(energy) // 2 :]) - float(done["potential"][-1])
    atoms = remove_drift(atoms)
    scale = np.sqrt(kinetic / float(kinetic_energy(atoms)))
    return atoms.replace(velocity=jnp.asarray(scale, atoms.velocity.dtype) * atoms.velocity)


class ArgonResults(NamedTuple):
    """What is read off a run of `liquid_argon`.

    - `peak`: position of the first maximum of g(r), Å; `height`: its value.
    - `diffusion`: D in Å²/ps, with standard error.
    - `temperature`: mean, in kelvin; `drift`: of the energy per atom, in kelvin per ns.
    """

    peak: float
    height: float
    diffusion: Estimate
    temperature: float
    drift: float


def argon_results(done: Run) -> ArgonResults:
    """Peak of g(r), diffusion coefficient from 1 to 5 ps of the displacement, temperature, drift."""
    radial = done["radial_distribution"]
    r, g = np.asarray(radial["r"]), np.asarray(radial["value"])
    # A parabola through the top 15 % finds the peak between bins, and averages their noise.
    top = g > 0.85 * np.max(g)
    a, b, c = np.polyfit(r[top], g[top], 2)
    energy = np.asarray(done["energy"], float) / done.state.num_particles / K_B
    return ArgonResults(
        peak=float(-b / (2 * a)),
        height=float(c - b * b / (4 * a)),
        diffusion=diffusion_coefficient(done["mean_square_displacement"], 3, start=1.0, stop=5.0),
        temperature=float(np.mean(done["kelvin"])),
        drift=float(1000 * np.polyfit(done.times["energy"], energy, 1)[0]),
    )
