"""An OpenMM system as particles and forces."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jax.typing import DTypeLike

from physkit.core import (
    ParameterError,
    UnitSystem,
    as_device_array,
    describe,
    explain_call,
    molecular,
)
from physkit.geometry import AbstractSpace, Box, Free, Triclinic
from physkit.particles import Particles
from physkit.particles.forces import Forces

from .._wrapping import wrap_with_image
from ._bonded import BONDED
from ._constraints import constraints
from ._nonbonded import Nonbonded, nonbonded_forces
from ._quantities import Converter, plain, plain_array, require_openmm
from ._sites import Numbering, number_particles

# Parts of a System that are no forces between particles, with what does their work here.
_NO_FORCES = {
    "AndersenThermostat": "a thermostat is an integrator",
    "MonteCarloBarostat": "a barostat is an integrator",
    "MonteCarloAnisotropicBarostat": "a barostat is an integrator",
    "MonteCarloMembraneBarostat": "a barostat is an integrator",
}


class MolecularSystem(NamedTuple):
    """What `from_openmm` found.

    - `particles`: with masses, charges, species, constraints and the box.
    - `force`: the sum of all forces, each with a name: `find(force, "torsions")`.
    """

    particles: Particles
    force: Forces


@explain_call
def from_openmm(
    system: Any,
    topology: Any = None,
    positions: Any = None,
    velocities: Any = None,
    *,
    units: UnitSystem = molecular,
    dtype: DTypeLike = float,
    background: bool = False,
) -> MolecularSystem:
    """The particles and forces of an `openmm.System`: every force field that OpenMM reads, differentiable.

        pdb = PDBFile("protein.pdb")
        system = ForceField("amber14-all.xml").createSystem(pdb.topology, constraints=HBonds)
        particles, force = from_openmm(system, pdb.topology, pdb.positions)

    Takes `HarmonicBondForce`, `HarmonicAngleForce`, `PeriodicTorsionForce`, `RBTorsionForce`,
    `CMAPTorsionForce`, `NonbondedForce` (exceptions, reaction field, Ewald, PME, dispersion correction) and
    constraints and virtual sites (averages of two or three particles, and out of their plane). Species are
    element and Lennard-Jones parameters together: `C`, `C:2`, …

    **Arguments:**

    - `system`: of `ForceField.createSystem`, `AmberPrmtopFile`, `CharmmPsfFile` …
    - `topology`: for the names of elements.
    - `positions`: `[n 3]`, a quantity or nm.
    - `velocities`: `[n 3]`, a quantity or nm/ps; at rest if left out.
    - `units`: of the result; OpenMM's are nm, ps, Da and kJ/mol, which are `molecular`.
    - `dtype`: precision.
    - `background`: whether a net charge, such as that of a protein without counterions, is neutralized by a
      uniform one, as OpenMM does in silence; an error where the run starts if left out.

    **Errors:** `ParameterError` for a force, a kind of site or a setting that has no counterpart here, by name;
    `MissingExtraError` without OpenMM.

    **Notes:** exceptions are between nearest images; OpenMM takes the places as they are, unless its
    `setExceptionsUsePeriodicBoundaryConditions` says otherwise, so that molecules must be whole there. Virtual
    sites exist within the forces that act on them (`VirtualSites`), and are no particles. Rigid water becomes
    `RigidWater`. Positions are those given: `constrain(particles)` moves the few-digit coordinates of a file to
    where the constraints hold. `CMMotionRemover` becomes nothing: `RemoveMomentum` is an integrator.

    **Reference:** Eastman et al., PLoS Comput. Biol. 13, e1005659 (2017).
    """
    openmm = require_openmm()
    if not isinstance(system, openmm.System):
        raise ParameterError(
            f"from_openmm takes an openmm.System, as ForceField.createSystem makes; got {describe(system)}"
        )
    if positions is None:
        raise ParameterError("from_openmm needs positions=…, a quantity or [n 3] in nm")
    to = Converter(units)
    numbering = number_particles(system, to)
    elements = _elements(topology, numbering)
    names, forces, nonbonded = [], [], None
    for force in system.getForces():
        kind = type(force).__name__
        if kind == "CMMotionRemover":
            continue
        if kind == "NonbondedForce" and nonbonded is None:
            nonbonded = nonbonded_forces(force, elements, numbering, background, to)
            names += nonbonded.forces
            forces += nonbonded.forces.values()
        elif kind in BONDED:
            count, convert = BONDED[kind]
            if getattr(force, count)():
                names.append(_unused(_NAMES[kind], names))
                forces.append(convert(force, numbering.place, to))
        else:
            why = _NO_FORCES.get(kind, "no force here does the same")
            raise ParameterError(
                f"the system has a {kind}: {why}; remove it, or add your own force"
            )
    particles = _particles(system, elements, nonbonded, numbering, positions, velocities, to, dtype)
    return MolecularSystem(particles, Forces(tuple(forces), tuple(names)))


_NAMES = {
    "HarmonicBondForce": "bonds",
    "HarmonicAngleForce": "angles",
    "PeriodicTorsionForce": "torsions",
    "RBTorsionForce": "ryckaert_bellemans_torsions",
    "CMAPTorsionForce": "torsion_maps",
}


def _unused(name: str, taken: Iterable[str]) -> str:
    """`name`, numbered where a force has it already."""
    taken = set(taken)
    numbered = (f"{name}_{k}" for k in range(2, len(taken) + 3))
    return name if name not in taken else next(x for x in numbered if x not in taken)


def _particles(
    system: Any,
    elements: list[str],
    nonbonded: Nonbonded | None,
    numbering: Numbering,
    positions: Any,
    velocities: Any,
    to: Converter,
    dtype: DTypeLike,
) -> Particles:
    m, n, order = len(numbering.order), numbering.count, numbering.order
    position = plain_array(positions) * to.length
    if position.shape != (m, 3):
        raise ParameterError(
            f"the system has {m} particles, the positions have shape {position.shape}"
        )
    position = position[order[:n]]
    if velocities is not None:
        velocities = plain_array(velocities)[order[:n]] * to.length / to.time
    mass = np.array([plain(system.getParticleMass(int(k))) for k in order[:n]]) * to.mass
    space = _space(system, to)
    # OpenMM's particles of mass 0 never move.
    frozen = mass == 0
    names, species = _species(elements, None if nonbonded is None else nonbonded.species)
    image = None
    if not isinstance(space, Free):
        wrapped, crossed = wrap_with_image(space, as_device_array(position, dtype))
        position, image = np.asarray(wrapped), np.asarray(crossed)
    return Particles(
        as_device_array(position, dtype),
        velocities,
        np.where(frozen, to.mass, mass),
        space,
        charge=None if nonbonded is None else nonbonded.charge[:n],
        species=species[:n],
        species_names=names,
        frozen=frozen if frozen.any() else None,
        image=image,
        constraints=constraints(system, mass, numbering.place, to),
    )


def _space(system: Any, to: Converter) -> AbstractSpace:
    if not system.usesPeriodicBoundaryConditions():
        return Free()
    vectors = np.array([plain_array(v) for v in system.getDefaultPeriodicBoxVectors()]) * to.length
    is_box = np.all(vectors == np.diag(np.diag(vectors)))
    return Box(np.diag(vectors)) if is_box else Triclinic(vectors)


def _elements(topology: Any, numbering: Numbering) -> list[str]:
    """The elements of particles and sites, X where there is none."""
    count = len(numbering.order)
    if topology is None:
        return ["X"] * count
    symbols = ["X" if a.element is None else a.element.symbol for a in topology.atoms()]
    if len(symbols) != count:
        raise ParameterError(f"the system has {count} particles, the topology {len(symbols)} atoms")
    return [symbols[k] for k in numbering.order]


def _species(elements: list[str], species: np.ndarray | None) -> tuple[tuple[str, ...], np.ndarray]:
    """Names and numbers of the species: of the elements alone, or of the rows of tables."""
    if species is None:
        names = tuple(dict.fromkeys(elements))
        return names, np.array([names.index(x) for x in elements])
    first = [elements[int(np.argmax(species == k))] for k in range(species.max() + 1)]
    names, counts = [], {}
    for element in first:
        counts[element] = counts.get(element, 0) + 1
        names.append(element if counts[element] == 1 else f"{element}:{counts[element]}")
    return tuple(names), species
