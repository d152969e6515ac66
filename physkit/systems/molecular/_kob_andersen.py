"""The binary Lennard-Jones mixture of Kob and Andersen, which becomes a glass."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from physkit.core import param
from physkit.integrators import BAOAB
from physkit.observe import Every, PotentialEnergy, Pressure, RadialDistribution, Snapshot
from physkit.particles import Particles, lattice, maxwell_boltzmann
from physkit.particles.forces import AbstractPairPotential, Pairwise
from physkit.simulate import Simulation

from .._arguments import explain_system

# Kob & Andersen, Phys. Rev. E 51, 4626 (1995): between A and A, A and B, B and B. No mixing rule gives them.
_EPSILON, _SIGMA = [[1.0, 1.5], [1.5, 0.5]], [[1.0, 0.8], [0.8, 0.88]]


class CutAtEachPair(AbstractPairPotential):
    """Lennard-Jones pairs that end at 2.5 σ of their own species, where the energy is shifted to 0."""

    reach: ClassVar[float] = 2.5

    epsilon: Float[Array, "..."] = param(1.0)
    sigma: Float[Array, "..."] = param(1.0)

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        s6, end = (self.sigma / r) ** 6, self.reach**-6
        return jnp.where(s6 > end, 4 * self.epsilon * (s6 * (s6 - 1) - end * (end - 1)), 0)


@explain_system
def kob_andersen(
    cells: int = 5,
    *,
    density: ArrayLike = 1.2,
    temperature: ArrayLike = 1.0,
    friction: ArrayLike = 1.0,
    dt: ArrayLike = 0.004,
    every: int = 20,
    dtype: DTypeLike = float,
    key: Array | None = None,
) -> tuple[Simulation, Particles]:
    """The mixture of Kob and Andersen with a Langevin thermostat: four A to one B, which avoids its like.

        U_ab(r) = 4 ε_ab [(σ_ab/r)¹² − (σ_ab/r)⁶] + c_ab   for r < 2.5 σ_ab, else 0

    ε = 1, 1.5, 0.5 and σ = 1, 0.8, 0.88 between A and A, A and B, B and B; in units of A. 4 `cells`³ particles,
    at first on a crystal's sites with kinds at random. It melts within some 10 time units, whose frames should
    be left out. Records `energy`, the potential energy per particle, and `pressure` every so many steps, and
    g(r) as `AA`, `AB`, `BB`.

    Published at density 1.2 and temperature 1.028, where it coexists with a crystal of A: U/N = −5.974,
    p = 10.17. Diffusion slows down as if it would end at 0.435: below 0.6 wait thousands of time units.

    **Arguments:**

    - `cells`: crystal cells along each edge, 4 or more. `friction`: of the thermostat.

    **Reference:** Kob & Andersen, Phys. Rev. E 51, 4626 (1995); Pedersen, Schrøder & Dyre, Phys. Rev. Lett.
    120, 165501 (2018), data of figure 4.
    """
    key = jax.random.key(0) if key is None else key
    choose, speed = jax.random.split(key)
    sites, box = lattice.face_centered_cubic(cells, density=density)
    n = len(sites)
    is_b = jax.random.permutation(choose, np.arange(n) >= n - round(0.2 * n))
    mixture = Particles(
        jnp.asarray(sites, dtype), space=box, species=is_b.astype(int), species_names=("A", "B")
    )
    mixture = maxwell_boltzmann(speed, mixture, temperature)
    force = Pairwise(CutAtEachPair(_EPSILON, _SIGMA), 2.5, skin=0.4, truncation="plain")
    distributions = (
        RadialDistribution(every, r_max=2.5, bins=125, species=pair, name=name)
        for name, pair in {"AA": (0, 0), "AB": (0, 1), "BB": (1, 1)}.items()
    )
    record = Every(every, energy=_energy_per_particle, pressure=Pressure())
    thermostat = BAOAB(force, temperature=temperature, friction=friction)
    return Simulation(thermostat, dt=dt, observers=(record, *distributions)), mixture


def _energy_per_particle(now: Snapshot) -> Float[Array, ""]:
    return PotentialEnergy()(now) / now.state.num_particles
