"""Hard disks: the virial series of the fluid."""

from typing import Any

import numpy as np

from physkit.integrators import HardSphereMonteCarlo
from physkit.observe import RadialDistribution, hard_sphere_pressure
from physkit.particles import Particles, lattice
from physkit.simulate import Simulation, run

from .._case import Case, Published

# B_k/B₂^(k−1) of hard disks, k = 2 … 10.
VIRIALS = (
    1.0,
    0.782004,
    0.53223180,
    0.33355604,
    0.1988425,
    0.1148728,
    0.0649930,
    0.0362193,
    0.0199537,
)


def hard_disks() -> dict[str, Any]:
    """The compressibility factor of 256 disks at a packing fraction of 0.3, 2 000 steps, from g(σ⁺); the series
    of ten virials, whose rest is near 1e-4 here."""
    packing, number = 0.3, 256
    density = 4 * packing / np.pi
    sites, box = lattice.square((16, 16), spacing=density**-0.5)
    g = RadialDistribution(2, 1.6, 160)
    sim = Simulation(HardSphereMonteCarlo(1.0, 0.35), dt=1.0, observers=(g,))
    disks = Particles(sites, space=box)
    carry = run(sim, disks, 100, key=0, progress=False).carry
    summary = run(sim, carry, 2000, progress=False).summary["radial_distribution"]
    found = hard_sphere_pressure(summary, density * (1 - 1 / number), dimension=2)
    series = 1 + sum(b * (2 * packing) ** (k + 1) for k, b in enumerate(VIRIALS))
    return {"Z": found.value, "virial series": series, "error of Z": found.error}


CASES = (
    Case(
        "hard-disks",
        hard_disks,
        (
            Published("Z", 2.0632, 0.03),
            Published("virial series", 2.0632, 0.0002),
            Published("error of Z", 0.01, 0.01),
        ),
        "Clisby & McCoy, J. Stat. Phys. 122, 15 (2006), table 1; Henderson, Mol. Phys. 30, 971 (1975)",
    ),
)
