"""Liquid water: rigid molecules of three charged sites."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from physkit.core import ParameterError, einsum, find, molecular
from physkit.coupling import ParticleMeshEwald
from physkit.integrators import BAOAB, StochasticCellRescaling, VelocityRescaling, VelocityVerlet
from physkit.observe import (
    DipoleMoment,
    Every,
    MeanSquareDisplacement,
    RadialDistribution,
    Snapshot,
    Temperature,
)
from physkit.particles import (
    Particles,
    RigidWater,
    constrain,
    lattice,
    maxwell_boltzmann,
    total_momentum,
)
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Simulation, run

from .._arguments import explain_system

_MASS = 15.99943, 1.007947, 1.007947


class WaterModel(NamedTuple):
    """Rigid water of three sites: lengths in nm, energies in kJ/mol.

    - `oh`, `hh`: distances; `charge`: of each hydrogen; `sigma`, `epsilon`: between oxygens.
    """

    oh: float
    hh: float
    charge: float
    sigma: float
    epsilon: float


# Berendsen, Grigera & Straatsma, J. Phys. Chem. 91, 6269 (1987); Jorgensen et al., J. Chem. Phys. 79, 926
# (1983).
WATER_MODELS = {
    "SPC/E": WaterModel(0.1, 0.16329809, 0.4238, 0.316557, 0.650194),
    "TIP3P": WaterModel(0.09572, 0.15139007, 0.417, 0.315061, 0.636386),
}


@explain_system
def water_box(
    cells: int = 6,
    *,
    model: str = "SPC/E",
    density: ArrayLike = 0.997,
    temperature: ArrayLike = 298.0 * molecular.kelvin,
    pressure: ArrayLike | None = None,
    cutoff: float = 0.9,
    tolerance: float = 1e-3,
    dt: ArrayLike = 0.002,
    dtype: DTypeLike = float,
    key: Array | None = None,
) -> tuple[Simulation, Particles]:
    """Liquid water: cells³ rigid molecules with charges by particle-mesh Ewald sums.

    Units: nm, ps, Da, kJ/mol (`pk.units.molecular`). The state is a cubic lattice of molecules that are
    turned at random, with thermal velocities. It melts within some 10 ps, whose frames should be left out;
    `melt_water` takes up the heat that it gives off.

    Records `kelvin`, `density` (g/cm³) and `dipole` every 0.1 ps, g(r) between oxygens as `oxygen_oxygen`, and
    at constant volume the mean-square displacement of oxygens up to 10 ps. Published for SPC/E at 298 K
    and 1 bar: 0.998 g/cm³, first peak of g(r) at 0.275 nm, D = 2.5·10⁻⁵ cm²/s in a box of 216 molecules and
    2.97 in a large one, dielectric constant 68 to 71; for TIP3P with Ewald sums 0.98 to 0.99 g/cm³, 5.5 to
    6.1·10⁻⁵ cm²/s and 94 to 97. `finite_size_correction` is what a large box adds to D. `physkit validate
    water-spce water-tip3p` computes all of these in ten minutes each.

    **Arguments:**

    - `cells`: molecules along each edge.
    - `model`: `"SPC/E"` or `"TIP3P"`; their numbers are `WATER_MODELS`.
    - `density`: of the start, g/cm³.
    - `temperature`: k_B T of velocities and thermostat.
    - `pressure`: None: constant volume. A number: that of a barostat, kJ/mol/nm³; 1 bar is
      `pk.units.molecular.bar`.
    - `cutoff`, `tolerance`: of near pairs, and of the Ewald sum; Lennard-Jones beyond it by tail corrections.

    **Errors:** `ParameterError` for another model; `CutoffError` for a box shorter than two cutoffs.

    **Reference:** `WATER_MODELS`; Vega & Abascal, Phys. Chem. Chem. Phys. 13, 19663 (2011); Tazi et al., J.
    Phys. Condens. Matter 24, 284117 (2012).
    """
    if model not in WATER_MODELS:
        raise ParameterError(f"no water model {model!r}; available: {list(WATER_MODELS)}")
    water = WATER_MODELS[model]
    key = jax.random.key(0) if key is None else key
    turn, speed = jax.random.split(key)
    # From g/cm³ to molecules per nm³.
    sites, box = lattice.simple_cubic(
        cells, density=jnp.asarray(density, float) * 602.214076 / sum(_MASS)
    )
    n = cells**3
    height = math.sqrt(water.oh**2 - water.hh**2 / 4)
    shape = jnp.array([[0, 0, 0], [water.hh / 2, height, 0], [-water.hh / 2, height, 0]], float)
    rotations = jax.random.orthogonal(turn, 3, (n,), float)
    position = sites[:, None].astype(float) + einsum("nij,kj->nki", rotations, shape)
    molecules = np.arange(3 * n).reshape(n, 3)
    state = Particles(
        position.reshape(-1, 3).astype(dtype),
        mass=np.tile(_MASS, n),
        charge=np.tile([-2 * water.charge, water.charge, water.charge], n),
        species=np.tile([0, 1, 1], n),
        space=box,
        constraints=RigidWater(molecules, water.oh, water.hh),
    )
    state = maxwell_boltzmann(speed, constrain(state), temperature)

    within = np.concatenate([molecules[:, pair] for pair in ([0, 1], [0, 2], [1, 2])])
    oxygens = LennardJones([[water.epsilon, 0], [0, 0]], [[water.sigma, 1], [1, 1]])
    force = ParticleMeshEwald(
        cutoff,
        tolerance,
        short_range=Pairwise(oxygens, cutoff, truncation="plain", tail=True),
        coulomb_constant=molecular.coulomb_constant,
        exclude=within,
    )
    motion = VelocityRescaling(VelocityVerlet(force), temperature, relaxation_time=1.0)
    observers = [
        Every(50, kelvin=_kelvin, density=_density, dipole=DipoleMoment()),
        RadialDistribution(
            100, r_max=cutoff, bins=round(cutoff / 0.005), species=(0, 0), name="oxygen_oxygen"
        ),
    ]
    if pressure is None:
        observers.append(MeanSquareDisplacement(50, lags=100, species=0))
    else:
        # The compressibility of water.
        motion = StochasticCellRescaling(motion, pressure, 1.0, 4.6e-5 / molecular.bar, interval=10)
    return Simulation(motion, dt=dt, observers=tuple(observers)), state


def melt_water(
    sim: Simulation, water: Particles, steps: int = 6000, *, key: Array, progress: bool = True
) -> Particles:
    """The liquid that the lattice of `water_box` becomes, by Langevin dynamics at half its time step.

    It is at rest as a whole: a drift of the center of mass would count as diffusion.
    """
    thermostat = find(sim, VelocityRescaling)
    force, temperature = thermostat.integrator.force, thermostat.temperature
    langevin = BAOAB(force, temperature=temperature, friction=5.0)
    stage = Simulation(langevin, dt=sim.dt / 2)
    liquid = run(stage, water, steps, key=key, progress=progress).state
    drift = total_momentum(liquid) / liquid.sum(liquid.mass)
    return liquid.replace(velocity=liquid.velocity - drift[None])


def finite_size_correction(
    length: ArrayLike, temperature: ArrayLike, viscosity: ArrayLike
) -> Array:
    """By how much a diffusion coefficient is too low in a periodic cube: 2.837297 k_B T/(6π η L).

    **Arguments:**

    - `length`: L. `temperature`: k_B T. `viscosity`: η; of water 0.73 mPa s (SPC/E), 0.32 mPa s
      (TIP3P); 1 mPa s is 602.214 in `molecular` units.

    **Reference:** Yeh & Hummer, J. Phys. Chem. B 108, 15873 (2004), eq. 12.
    """
    return 2.837297 * jnp.asarray(temperature) / (6 * jnp.pi * jnp.asarray(viscosity) * length)


def _kelvin(now: Snapshot) -> Array:
    return Temperature()(now) / molecular.kelvin


def _density(now: Snapshot) -> Array:
    particles = now.state
    return particles.sum(particles.mass) / particles.space.volume / 602.214076
