"""Bonds, angles, torsions and torsion maps of an OpenMM system.

`place[k]` is where OpenMM's particle k is among particles and sites.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from physkit.core import ParameterError
from physkit.particles.forces import (
    AbstractForce,
    HarmonicAngles,
    HarmonicBonds,
    PeriodicTorsions,
    RyckaertBellemansTorsions,
    TorsionMaps,
)

from ._quantities import Converter, plain_array, rows


def harmonic_bonds(force: Any, place: np.ndarray, to: Converter) -> AbstractForce:
    """½ k (r − r₀)²."""
    table = np.array(rows(force.getNumBonds(), force.getBondParameters))
    return HarmonicBonds(
        place[table[:, :2].astype(int)],
        table[:, 3] * to.energy / to.length**2,
        table[:, 2] * to.length,
    )


def harmonic_angles(force: Any, place: np.ndarray, to: Converter) -> AbstractForce:
    """½ k (θ − θ₀)²."""
    table = np.array(rows(force.getNumAngles(), force.getAngleParameters))
    return HarmonicAngles(place[table[:, :3].astype(int)], table[:, 4] * to.energy, table[:, 3])


def periodic_torsions(force: Any, place: np.ndarray, to: Converter) -> AbstractForce:
    """k [1 + cos(n φ − φ₀)]."""
    table = np.array(rows(force.getNumTorsions(), force.getTorsionParameters))
    return PeriodicTorsions(
        place[table[:, :4].astype(int)],
        table[:, 6] * to.energy,
        table[:, 4].astype(int),
        table[:, 5],
    )


def ryckaert_bellemans_torsions(force: Any, place: np.ndarray, to: Converter) -> AbstractForce:
    """Σ C_q cos^q ψ."""
    table = np.array(rows(force.getNumTorsions(), force.getTorsionParameters))
    return RyckaertBellemansTorsions(place[table[:, :4].astype(int)], table[:, 4:] * to.energy)


def torsion_maps(force: Any, place: np.ndarray, to: Converter) -> AbstractForce:
    """Bicubic splines of two dihedral angles.

    **Errors:** `ParameterError` for two angles that do not follow one another, and maps of different sizes.
    """
    maps = []
    for k in range(force.getNumMaps()):
        size, energy = force.getMapParameters(k)
        # OpenMM's first angle runs fastest.
        maps.append(plain_array(energy).reshape(size, size).T * to.energy)
    if len({x.shape for x in maps}) != 1:
        raise ParameterError(
            f"CMAPTorsionForce has maps of sizes {sorted({x.shape[0] for x in maps})}; one size is needed"
        )
    places, which = [], []
    for k in range(force.getNumTorsions()):
        number, *atoms = force.getTorsionParameters(k)
        if atoms[1:4] != atoms[4:7]:
            raise ParameterError(
                f"CMAPTorsionForce, torsion {k}: the second angle, {atoms[4:]}, does not follow the "
                f"first, {atoms[:4]}"
            )
        places.append(place[[*atoms[:4], atoms[7]]])
        which.append(number)
    return TorsionMaps(np.array(places), np.stack(maps), which)


# OpenMM's classes → how many tuples such a force has, and what becomes of it.
BONDED: dict[str, tuple[str, Callable[[Any, np.ndarray, Converter], AbstractForce]]] = {
    "HarmonicBondForce": ("getNumBonds", harmonic_bonds),
    "HarmonicAngleForce": ("getNumAngles", harmonic_angles),
    "PeriodicTorsionForce": ("getNumTorsions", periodic_torsions),
    "RBTorsionForce": ("getNumTorsions", ryckaert_bellemans_torsions),
    "CMAPTorsionForce": ("getNumTorsions", torsion_maps),
}
