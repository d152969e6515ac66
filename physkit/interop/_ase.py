"""Particles from and to `ase.Atoms`."""

from typing import Any

import numpy as np
from jax.typing import DTypeLike

from physkit.core import (
    ParameterError,
    UnitSystem,
    as_device_array,
    describe,
    explain_call,
    import_extra,
    metal,
)
from physkit.geometry import AbstractSpace, Box, Free, Triclinic
from physkit.particles import DistanceConstraints, Particles, RigidWater, element_symbol

from ._wrapping import unwrapped_with_cell, wrap_with_image

# ASE's unit of time, Å √(Da/eV) by older constants, is that of `metal` to 1e-8: the two are taken as the same.


def require_ase() -> Any:
    """The package ase.

    **Errors:** `MissingExtraError` without the extra `physkit[md]`.
    """
    return import_extra("ase", "md", "this")


@explain_call
def from_ase(
    atoms: Any,
    units: UnitSystem = metal,
    *,
    dtype: DTypeLike = float,
    species_names: tuple[str, ...] | None = None,
) -> Particles:
    """The particles of an `ase.Atoms`.

    Positions, momenta, masses, initial charges, cell and periodic axes are taken over. Species are numbered in
    the order in which symbols come up, and `species_names` holds the symbols. Atoms outside of the cell are
    wrapped into it; their images are counted, so that `unwrapped` are the positions given. Atoms fixed by
    `FixAtoms` are frozen; `FixBondLengths` become `DistanceConstraints`, of lengths that are given, or that the
    atoms have.

    **Arguments:**

    - `atoms`: of `ase.io.read`, `ase.build.bulk` …
    - `units`: of the particles; ASE's are Å, eV and Da, which are `metal`.
    - `dtype`: precision.
    - `species_names`: the numbers of the species by name, where tables of a force are already in an order.

    **Errors:** `ParameterError` for a tilted cell that is periodic along some axes only, and for constraints
    other than these two, which it names, and for what is no Atoms or has none; `MissingExtraError` without ASE.
    """
    ase = require_ase()
    if not isinstance(atoms, ase.Atoms):
        raise ParameterError(
            f"from_ase takes an ase.Atoms; got {describe(atoms)}. Of a list, as ase.io.read(…, index=':') "
            "gives, take one frame"
        )
    if len(atoms) == 0:
        raise ParameterError("from_ase: there are no atoms")
    length = metal.length / units.length
    speed = length * units.time / metal.time
    position = length * np.asarray(atoms.positions, float)
    space = _space(length * np.asarray(atoms.cell), np.asarray(atoms.pbc), position)
    image = None
    if space.periodic_axes(3) != (False,) * 3:
        wrapped, crossed = wrap_with_image(space, as_device_array(position, dtype))
        position, image = np.asarray(wrapped), np.asarray(crossed)
    charges = atoms.arrays.get("initial_charges")
    return Particles(
        as_device_array(position, dtype),
        speed * np.asarray(atoms.get_velocities(), float),
        metal.mass / units.mass * np.asarray(atoms.get_masses(), float),
        space,
        charge=None if charges is None else metal.charge / units.charge * np.asarray(charges),
        species=atoms.get_chemical_symbols(),
        species_names=species_names,
        frozen=_frozen(atoms),
        image=image,
        constraints=_constraints(atoms, length),
    )


def _space(cell: np.ndarray, periodic: np.ndarray, position: np.ndarray) -> AbstractSpace:
    """The space of a cell `[3 3]` with these periodic axes; rows of 0 are axes without a length."""
    has_length = np.any(cell != 0, axis=1)
    if np.any(periodic & ~has_length):
        raise ParameterError(f"the cell has no length along a periodic axis: {cell.tolist()}")
    if not has_length.any():
        return Free()
    # An open axis may lack a length: that of the atoms' extent serves pictures and lattices only.
    extent = np.ptp(position, axis=0).max(initial=0) or 1.0
    filled = np.where(has_length[:, None], cell, extent * np.eye(3))
    if np.all(filled == np.diag(np.diag(filled))) and np.all(np.diag(filled) > 0):
        return Box(np.diag(filled), tuple(periodic.tolist()))
    if periodic.all():
        return Triclinic(cell)
    if not periodic.any():
        return Free()
    raise ParameterError(
        f"a tilted cell that is periodic along some axes only, {periodic.tolist()}, has no space here: "
        "give it vacuum and make it periodic along all axes (atoms.pbc = True), or make it rectangular"
    )


def _frozen(atoms: Any) -> np.ndarray | None:
    frozen = np.zeros(len(atoms), bool)
    for constraint in atoms.constraints:
        kind = type(constraint).__name__
        if kind not in ("FixAtoms", "FixBondLengths"):
            raise ParameterError(
                f"the atoms have a constraint {kind}, and only FixAtoms and FixBondLengths become part of "
                "particles: remove it here, atoms.set_constraint()"
            )
        if kind == "FixAtoms":
            frozen[constraint.get_indices()] = True
    return frozen if frozen.any() else None


def _constraints(atoms: Any, length: float) -> DistanceConstraints | None:
    pairs, lengths = [], []
    for constraint in atoms.constraints:
        if type(constraint).__name__ != "FixBondLengths":
            continue
        given = constraint.bondlengths
        if given is None:
            given = [atoms.get_distance(i, j, mic=True) for i, j in constraint.pairs]
        pairs.append(np.asarray(constraint.pairs))
        lengths.append(np.asarray(given, float))
    if not pairs:
        return None
    return DistanceConstraints(np.concatenate(pairs), length * np.concatenate(lengths))


@explain_call
def to_ase(particles: Particles, units: UnitSystem = metal) -> Any:
    """An `ase.Atoms` of these particles, at their unwrapped positions.

    Symbols are `species_names`, up to a colon; one that is no element, or particles without names, are X.
    Velocities become momenta, charges initial charges, frozen particles `FixAtoms`, constraints
    `FixBondLengths`. One- and two-dimensional particles get zeros for the other axes.

    **Arguments:**

    - `particles`: on one device.
    - `units`: those that their numbers are in.

    **Errors:** `DeclarationError` for particles that are sharded; `ParameterError` for constraints that ASE
    lacks; `MissingExtraError` without ASE.
    """
    ase = require_ase()
    from ase.constraints import (  # pyright: ignore[reportMissingImports]
        FixAtoms,
        FixBondLengths,
    )
    from ase.data import atomic_numbers  # pyright: ignore[reportMissingImports]

    particles.require_single_device("to_ase")
    n, d = particles.num_particles, particles.dimension
    length = units.length / metal.length
    mass = units.mass / metal.mass * np.asarray(particles.mass, float)
    speed = length * metal.time / units.time
    periodic = particles.space.periodic_axes(d)
    unwrapped, cell = unwrapped_with_cell(particles)
    cell_3d = np.zeros((3, 3))
    if cell is not None:
        cell_3d[:d, :d] = length * np.asarray(cell, float)
    names, species = particles.species_names, particles.species
    symbols = ["X"] * n
    if names is not None and species is not None:
        known = [x if x in atomic_numbers else "X" for x in map(element_symbol, names)]
        symbols = [known[k] for k in species.tolist()]
    atoms = ase.Atoms(
        symbols,
        _to_3d(length * np.asarray(unwrapped, float)),
        masses=mass,
        momenta=mass[:, None] * _to_3d(speed * np.asarray(particles.velocity, float)),
        cell=cell_3d,
        pbc=(*periodic, *(False,) * (3 - d)),
    )
    if particles.charge is not None:
        charge = units.charge / metal.charge * np.asarray(particles.charge, float)
        atoms.set_initial_charges(charge)
    constraints = []
    if particles.frozen is not None:
        constraints.append(FixAtoms(np.flatnonzero(np.asarray(particles.frozen))))
    if particles.constraints is not None:
        pairs, lengths = _fixed_bonds(particles.constraints)
        constraints.append(FixBondLengths(pairs, bondlengths=length * lengths))
    atoms.set_constraint(constraints)
    return atoms


def _fixed_bonds(constraints: Any) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of particles whose distances are fixed, and these."""
    pairs, lengths = [], []
    for part in constraints.parts:
        if isinstance(part, DistanceConstraints):
            pairs.append(np.asarray(part.pairs))
            lengths.append(np.broadcast_to(np.asarray(part.lengths, float), len(part.pairs)))
        elif isinstance(part, RigidWater):
            for group in part.groups:
                places = np.asarray(group.tuples.places)
                pairs += [places[:, bond] for bond in group.bonds]
                lengths += [np.full(len(places), float(x)) for x in (part.oh, part.oh, part.hh)]
        else:
            raise ParameterError(
                f"{type(part).__name__} has no counterpart among ASE's constraints"
            )
    return np.concatenate(pairs), np.concatenate(lengths)


def _to_3d(x: np.ndarray) -> np.ndarray:
    return np.pad(x, ((0, 0), (0, 3 - x.shape[1])))
