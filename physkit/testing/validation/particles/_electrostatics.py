"""Charges in periodic cells: crystals, and a configuration of water."""

from typing import Any

import jax
import numpy as np

from physkit.core import Clock, StepCount
from physkit.coupling import ParticleMeshEwald
from physkit.geometry import Box
from physkit.particles import Particles
from physkit.particles.forces import AbstractEwaldSum, Ewald, LennardJones, Pairwise

from .._case import Case, Published, reference_data

# CODATA 2010: k_B in kJ/(mol K); e²/(4π ε₀ k_B) in K Å.
GAS_CONSTANT = 8.3144621e-3
COULOMB_CONSTANT = 1.602176565e-19**2 / (4 * np.pi * 8.854187817620e-12) / 1.3806488e-23 * 1e10


def rock_salt() -> Particles:
    """Eight ions of sodium chloride, with nearest neighbors at distance 1."""
    sites = np.stack(np.meshgrid(*[np.arange(2.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    return Particles(sites, charge=(-1) ** sites.sum(axis=1), space=Box([2.0] * 3))


def cesium_chloride() -> Particles:
    """Two ions of cesium chloride, with nearest neighbors at distance 1."""
    edge = 2 / np.sqrt(3)
    return Particles([[0.0] * 3, [edge / 2] * 3], charge=[1.0, -1.0], space=Box([edge] * 3))


def madelung(ions: Particles, force: AbstractEwaldSum) -> Any:
    """Minus the energy of a pair of ions."""
    force = force.for_start(ions)
    energy = jax.jit(lambda ions: force.energy(_clock(), ions))(ions)
    return -2 * energy / ions.num_particles


def madelung_constants() -> dict[str, Any]:
    """Energies of crystals of ions by Ewald's sum, for nearest neighbors at distance 1."""
    return {
        "NaCl": madelung(rock_salt(), Ewald(1.0, 1e-13)),
        "CsCl": madelung(cesium_chloride(), Ewald(0.57, 1e-13)),
        "NaCl, mesh": madelung(rock_salt(), ParticleMeshEwald(1.0, 1e-4)),
        "CsCl, mesh": madelung(cesium_chloride(), ParticleMeshEwald(0.57, 1e-4)),
    }


def water() -> Particles:
    """100 molecules of SPC/E water in a cube of edge 20 Å."""
    path = reference_data() / "nist" / "spce_m100_l20.xyz"
    rows = [line.split() for line in path.read_text().splitlines()]
    edges = [float(x) for x in rows[1][1:4]]
    positions = np.array([[float(x) for x in row[1:4]] for row in rows[2:]])
    is_oxygen = np.array([row[4] == "O" for row in rows[2:]])
    charge = np.where(is_oxygen, -0.8476, 0.4238)
    space = Box(edges)
    return Particles(positions, charge=charge, space=space, species=np.where(is_oxygen, 0, 1))


def molecules_of_three(n: int) -> np.ndarray:
    """The pairs of particles within molecules of three."""
    first = 3 * np.arange(n // 3)[:, None]
    return np.concatenate([first + np.array(pair) for pair in ((0, 1), (0, 2), (1, 2))])


def nist_spce_1() -> dict[str, Any]:
    """Energies / k_B of 100 SPC/E molecules, each part: α = 5.6/L, modes with n² < 27, cutoff 10 Å."""
    state = water()
    bonded = molecules_of_three(state.num_particles)
    depth = np.array([[0.650169581 / GAS_CONSTANT, 0.0], [0.0, 0.0]])
    dispersion = Pairwise(
        LennardJones(depth, 3.16555789), 10.0, 0.0, "plain", tail=True, exclude=bonded
    )
    # The tolerance whose α is 5.6/20 at this cutoff.
    force = Ewald(
        10.0, 6 * np.exp(-(2.8**2)), coulomb_constant=COULOMB_CONSTANT, exclude=bonded,
        waves=np.sqrt(26.5), skin=0.0,
    )  # fmt: skip

    @jax.jit
    def energies(state):
        parts = force.energies_by_part(_clock(), state)
        with_tail = dispersion.energy(_clock(), state)
        return parts | {"dispersion and tail": with_tail}

    return dict(energies(state))


def openmm_water() -> dict[str, Any]:
    """The same water by a particle mesh: its energy in kJ/mol, and the error of forces against Ewald's sum."""
    state = water()
    settings: dict[str, Any] = {
        "coulomb_constant": 1389.3545764438198,
        "exclude": molecules_of_three(state.num_particles),
    }
    mesh = ParticleMeshEwald(9.0, 1e-4, **settings).for_start(state)
    direct = Ewald(9.0, 1e-10, **settings).for_start(state)

    def values(force: AbstractEwaldSum) -> tuple[Any, Any]:
        cache = jax.jit(lambda state: force.init(state))(state)
        evaluate = jax.jit(
            lambda cache: (force(_clock(), state, cache)[0], force.energy(_clock(), state, cache))
        )
        return evaluate(cache)

    (found, energy), (expected, _) = values(mesh), values(direct)
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    return {"energy": energy, "error of forces": error}


def _clock() -> Clock:
    return Clock.at(StepCount.of(0), 0.0, 1.0)


CASES = (
    Case(
        "madelung",
        madelung_constants,
        (
            Published("NaCl", 1.7475645946331822, 1e-10),
            Published("CsCl", 1.7626747730709, 1e-10),
            Published("NaCl, mesh", 1.7475645946331822, 1e-4),
            Published("CsCl, mesh", 1.7626747730709, 1e-4),
        ),
        "Crandall & Buhler 1987; Borwein et al. 1985",
    ),
    Case(
        "nist-spce-1",
        nist_spce_1,
        (
            Published(
                "dispersion and tail", 99538.736236886805 - 823.71499511652326, 1e-5, "relative"
            ),
            Published("pairs", -5.58889e5, 1e-5, "relative"),
            Published("waves", 6.27009e3, 1e-5, "relative"),
            Published("self", -2.84469e6, 1e-5, "relative"),
            Published("excluded", 2.80999e6, 1e-5, "relative"),
            Published("background", 0.0, 1e-6),
        ),
        "NIST SRSW, SPC/E water configuration 1",
        needs_reference_data=True,
    ),
    Case(
        "openmm-water",
        openmm_water,
        (
            # Converged: its Ewald and mesh sums agree to 1e-9 at an error tolerance of 1e-7.
            Published("energy", -4883.22687, 1e-5, "relative"),
            Published("error of forces", 0.0, 1e-4, "at most"),
        ),
        "OpenMM 8, Reference platform, NonbondedForce with PME; positions of NIST's SPC/E configuration 1",
        slow=True,
        needs_reference_data=True,
    ),
)
