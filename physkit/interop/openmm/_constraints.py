"""Fixed distances of an OpenMM system; rigid water in closed form."""

from typing import Any

import numpy as np

from physkit.particles import AbstractConstraint, DistanceConstraints, RigidWater

from ._quantities import Converter, plain


def constraints(
    system: Any, mass: np.ndarray, place: np.ndarray, to: Converter
) -> AbstractConstraint | None:
    """The constraints of the system: triangles of water by SETTLE, all others pair by pair.

    `mass` is that of the particles, `place[k]` where OpenMM's particle k is among them.
    """
    count = system.getNumConstraints()
    if not count:
        return None
    table = [system.getConstraintParameters(k) for k in range(count)]
    pairs = place[np.array([row[:2] for row in table])]
    lengths = np.array([plain(row[2]) for row in table]) * to.length
    waters, is_water = _rigid_waters(pairs, lengths, mass)
    parts: list[AbstractConstraint] = [
        RigidWater(np.array(molecules), oh, hh) for (oh, hh), molecules in waters.items()
    ]
    if not is_water.all():
        parts.append(DistanceConstraints(pairs[~is_water], lengths[~is_water]))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _rigid_waters(
    pairs: np.ndarray, lengths: np.ndarray, mass: np.ndarray
) -> tuple[dict[tuple[float, float], list[list[int]]], np.ndarray]:
    """Triangles `[O, H, H]` by lengths (oh, hh), and which of the pairs they take."""
    neighbors: dict[int, dict[int, int]] = {}
    for row, (i, j) in enumerate(pairs.tolist()):
        neighbors.setdefault(i, {})[j] = row
        neighbors.setdefault(j, {})[i] = row
    waters: dict[tuple[float, float], list[list[int]]] = {}
    is_water = np.zeros(len(pairs), bool)
    for apex, partners in neighbors.items():
        if len(partners) != 2:
            continue
        left, right = sorted(partners)
        is_triangle = (
            right in neighbors[left] and len(neighbors[left]) == len(neighbors[right]) == 2
        )
        if not is_triangle or mass[left] != mass[right] or mass[apex] == mass[left]:
            continue
        rows = [partners[left], partners[right], neighbors[left][right]]
        if lengths[rows[0]] == lengths[rows[1]]:
            waters.setdefault((lengths[rows[0]], lengths[rows[2]]), []).append([apex, left, right])
            is_water[rows] = True
    return waters, is_water
