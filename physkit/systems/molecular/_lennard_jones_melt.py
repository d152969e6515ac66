"""The Lennard-Jones melt, a standard benchmark of molecular dynamics."""

import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from physkit.integrators import VelocityVerlet
from physkit.observe import Every, TotalEnergy
from physkit.particles import Particles, lattice, maxwell_boltzmann
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def lennard_jones_melt(
    cells: int = 20,
    *,
    density: ArrayLike = 0.8442,
    temperature: ArrayLike = 1.44,
    cutoff: float = 2.5,
    truncation: str = "plain",
    dt: ArrayLike = 0.005,
    dtype: DTypeLike = float,
    key: Array | None = None,
) -> tuple[Simulation, Particles]:
    """A Lennard-Jones crystal, face-centered cubic, that melts as soon as it is let go.

    4·cells³ atoms in reduced units ε = σ = m = 1; half of the kinetic energy soon becomes potential
    energy. The default is the benchmark `in.lj` of LAMMPS, 32 000 atoms, whose step 0 is published:
    E_pair/N = −6.7733681, E/N = −4.6134356, P = −5.0197073.

    **Arguments:**

    - `cells`: crystal cells along each edge.
    - `density`, `temperature`: reduced.
    - `cutoff`, `truncation`: of the pair potential; `"shifted-force"` for dynamics over a long time.
    - `dtype`: precision of the state, and so of the run.
    - `key`: of the initial velocities.

    **Reference:** `bench/in.lj` and its logs in the LAMMPS distribution.
    """
    sites, box = lattice.face_centered_cubic(cells, density=density)
    atoms = Particles(jnp.asarray(sites, dtype), space=box)
    atoms = maxwell_boltzmann(0 if key is None else key, atoms, temperature)
    # The skin is that of `in.lj`; results do not depend on it but for rounding.
    force = Pairwise(LennardJones(), cutoff=cutoff, truncation=truncation, skin=0.3)
    record = Every(10, energy=TotalEnergy())
    return Simulation(VelocityVerlet(force), dt=dt, observers=record), atoms
