"""`check_force` where forces cancel: what is left is round-off, and nothing to compare."""

import numpy as np
import pytest

import physkit as pk
from physkit.testing import check_force


def test_relaxed_molecule():
    """All bonds at rest: energy, forces and their slopes by most leaves are 0 up to round-off."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 3
    bonds = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
    force = pk.HarmonicBonds(bonds, 50.0, float(np.linalg.norm(corners[0] - corners[1])))
    check_force(force, pk.Particles(corners))


@pytest.mark.slow
def test_perfect_crystal():
    position, box = pk.lattice.face_centered_cubic(cells=(2, 2, 2), density=0.8442)
    # Without a list, as the box leaves no room for a skin.
    force = pk.Pairwise(pk.LennardJones(), cutoff=1.5, use_neighbor_list=False)
    check_force(force, pk.Particles(position, space=box))
