"""Molecules: what rigid bonds do to the angle between them, and water at constant energy."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import molecular
from physkit.coupling import ParticleMeshEwald
from physkit.integrators import BAOAB, VelocityVerlet
from physkit.observe import Average, Every, TotalEnergy
from physkit.particles import DistanceConstraints, Particles, degrees_of_freedom
from physkit.particles.forces import HarmonicTrap, LennardJones, Pairwise
from physkit.simulate import Simulation, run, simulate
from physkit.systems import WATER_MODELS, melt_water, water_box

from .._case import Case, Published


def angle_between_rigid_bonds() -> dict[str, Any]:
    """4 000 chains of three equal atoms and two rigid bonds, with no force but that of the heat bath.

    The bonds' mass matrix depends on the angle θ between them: its cosine c is not uniform, as between stiff
    springs (⟨c²⟩ = 1/3), but has the density √(4 − c²).
    """
    n = 4000
    bonds = np.asarray(jax.random.normal(jax.random.key(1), (n, 2, 3)))
    bonds = bonds / np.linalg.norm(bonds, axis=2, keepdims=True)
    x = np.stack([bonds[:, 0], np.zeros((n, 3)), bonds[:, 1]], axis=1).reshape(-1, 3)
    middle = 3 * np.arange(n) + 1
    pairs = np.stack([np.tile(middle, 2), np.concatenate([middle - 1, middle + 1])], axis=1)
    chains = Particles(x, constraints=DistanceConstraints(pairs, 1.0))

    def mean_square_cosine(now):
        ends = now.state.position.reshape(-1, 3, 3)
        return jnp.mean(jnp.sum((ends[:, 0] - ends[:, 1]) * (ends[:, 2] - ends[:, 1]), axis=1) ** 2)

    thermostat = BAOAB(HarmonicTrap(0.0), temperature=1.0, friction=1.0)
    warm = Simulation(thermostat, dt=0.1)
    chains = jax.jit(lambda p: simulate(warm, p, 200, key=jax.random.key(2)).state)(chains)
    sim = Simulation(thermostat, dt=0.1, observers=Average(10, square=mean_square_cosine))
    result = jax.jit(lambda p: simulate(sim, p, 3000, key=jax.random.key(0)))(chains)
    return {"⟨cos²θ⟩": result.summary["square"]["mean"]}


def drift_of_water() -> dict[str, Any]:
    """64 rigid SPC/E molecules at constant energy for 100 ps, 2 fs a step: the slope of the total energy, per
    degree of freedom, in k_B T/ns.

    Every force is smooth to rounding but for erfc at the cutoff, 2e-8: the mesh is a coarse one, whose forces
    are the slopes of its energy all the same.
    """
    water, cutoff = WATER_MODELS["SPC/E"], 0.6
    temperature = 298 * molecular.kelvin
    sim, lattice = water_box(4, cutoff=cutoff)
    liquid = melt_water(sim, lattice, 3000, key=jax.random.key(0), progress=False)
    molecules = np.arange(liquid.num_particles).reshape(-1, 3)
    oxygens = LennardJones([[water.epsilon, 0], [0, 0]], [[water.sigma, 1], [1, 1]])
    force = ParticleMeshEwald(
        cutoff,
        1e-6,
        order=6,
        mesh=20,
        short_range=Pairwise(oxygens, cutoff, truncation="switch"),
        coulomb_constant=molecular.coulomb_constant,
        exclude=np.concatenate([molecules[:, pair] for pair in ([0, 1], [0, 2], [1, 2])]),
    )
    record = Every(10, energy=TotalEnergy())
    free = Simulation(VelocityVerlet(force), dt=0.002, observers=record)
    energy = np.asarray(run(free, liquid, 50_000, progress=False)["energy"])
    time = 0.02e-3 * np.arange(len(energy))
    slope = np.polyfit(time, energy, 1)[0]
    return {"drift": abs(slope) / temperature / float(degrees_of_freedom(liquid, True))}


# ∫ c² √(4 − c²) dc / ∫ √(4 − c²) dc from −1 to 1
_RIGID = (2 * math.pi / 3 - math.sqrt(3) / 2) / (2 * math.pi / 3 + math.sqrt(3))

CASES = (
    Case(
        "rigid-bonds",
        angle_between_rigid_bonds,
        # 4 000 chains over some 150 correlation times: a standard error of 4·10⁻⁴; springs have 0.3333.
        (Published("⟨cos²θ⟩", _RIGID, 1.5e-3),),
        "Fixman, Proc. Natl. Acad. Sci. 71, 3050 (1974); Helfand, J. Chem. Phys. 71, 5000 (1979)",
    ),
    Case(
        "water-drift",
        drift_of_water,
        # The energy of all swings by 0.1 k_B T, which leaves an error of the slope.
        (Published("drift", 0.0, 1e-3, "at most"),),
        "rigid water at constant energy, 2 fs: k_B T per nanosecond and degree of freedom",
        slow=True,
    ),
)
