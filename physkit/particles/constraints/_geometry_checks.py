"""Whether constraints fit the particles that they are given to, checked where their numbers can be seen."""

import numpy as np
from jaxtyping import Array, Float

from physkit.core import ParameterError, concrete_value

from .._particles import Particles
from ..forces.bonded._start_checks import vectors_at_start
from ..neighbors import space_numbers
from ._clusters import Bonds, ClusterGroup

# A bond this much off its length is another bond, a wrong unit or a broken molecule, no rounded coordinate.
_MAX_STRETCH = 0.1
# Smallest ratio of eigenvalues of J M⁻¹ Jᵀ at which the constraints of a cluster count as independent.
_MIN_CONDITION = 1e-9


def require_disjoint(groups: list[ClusterGroup], num_particles: int) -> None:
    """**Errors:** `ParameterError` where two constraints bind a particle in different parts of a sum."""
    places = [concrete_value(group.tuples.places) for group in groups]
    known = [np.ravel(x) for x in places if x is not None]
    if not known:
        return
    counts = np.bincount(np.concatenate(known), minlength=num_particles)
    if np.any(counts > 1):
        worst = int(np.argmax(counts))
        raise ParameterError(
            f"particle {worst} is in {counts[worst]} clusters of constraints: overlapping constraints are one "
            "cluster. Give all distances that name it to one DistanceConstraints(pairs, lengths)"
        )


def require_mobile(group: ClusterGroup, particles: Particles) -> None:
    """**Errors:** `ParameterError` for constraints on frozen particles."""
    if particles.frozen is None:
        return
    frozen, places = concrete_value(particles.frozen), concrete_value(group.tuples.places)
    if frozen is None or places is None:
        return
    bound = frozen[places]
    if np.any(bound):
        worst = int(places[bound][0])
        raise ParameterError(
            f"particle {worst} is frozen and has constraints, which cannot move it; freeze all particles of "
            "its molecule and leave out their constraints, or none"
        )


def check_clusters(group: ClusterGroup, lengths: Float[Array, "k c"], particles: Particles) -> None:
    """**Errors:** `ParameterError` for lengths that are not those of the particles; dependent constraints."""
    wanted, mass, places = (
        concrete_value(x) for x in (lengths, particles.mass, group.tuples.places)
    )
    vectors = vectors_at_start(group.tuples, group.bonds, particles)
    if wanted is None or mass is None or places is None or vectors is None:
        return
    first, second = (np.array([bond[end] for bond in group.bonds]) for end in (0, 1))
    ends = places[:, first].T, places[:, second].T  # (bonds, clusters)
    _check_lengths(np.broadcast_to(wanted, ends[0].shape), vectors, ends, particles)
    _check_independent(group.bonds, vectors, mass[places].astype(float), places)


def _check_lengths(
    wanted: np.ndarray,
    vectors: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray],
    particles: Particles,
) -> None:
    def name(mask: np.ndarray) -> tuple[str, tuple[int, int]]:
        k, c = (int(i) for i in np.argwhere(mask)[0])
        return f"the constraint between particles {ends[0][k, c]} and {ends[1][k, c]}", (k, c)

    if not np.all(wanted > 0):
        which, at = name(~(wanted > 0))
        raise ParameterError(f"{which} has the length {wanted[at]:g}; lengths must be positive")
    limit = space_numbers(particles.space, particles.dimension).max_cutoff
    if np.any(wanted > limit):
        which, at = name(wanted > limit)
        raise ParameterError(
            f"{which} has the length {wanted[at]:g}, beyond half the box, {limit:g}"
        )
    distance = np.linalg.norm(vectors, axis=-1)
    stretch = np.abs(distance / wanted - 1)
    if not np.all(stretch <= _MAX_STRETCH):
        which, at = name(~(stretch <= _MAX_STRETCH))
        raise ParameterError(
            f"{which} has the length {wanted[at]:g}, but they are {distance[at]:g} apart. Another unit, a "
            "wrong pair, constraints that contradict each other, or a molecule split over the border of a box "
            "that the particles do not have (space=Box(…))?"
        )


def _check_independent(
    bonds: Bonds, vectors: np.ndarray, masses: np.ndarray, places: np.ndarray
) -> None:
    signs = np.zeros((len(bonds), masses.shape[1]))
    for k, (a, b) in enumerate(bonds):
        signs[k, a], signs[k, b] = 1, -1
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    mobility = np.einsum("ka,la,ca->ckl", signs, signs, 1 / masses)
    matrix = np.einsum("kcd,lcd->ckl", unit, unit) * mobility
    eigenvalues = np.linalg.eigvalsh(matrix)
    is_singular = eigenvalues[:, 0] < _MIN_CONDITION * eigenvalues[:, -1]
    if np.any(is_singular):
        which = places[int(np.argmax(is_singular))].tolist()
        raise ParameterError(
            f"the {len(bonds)} constraints between particles {which} are not independent of one another: one "
            "follows from the others, or the particles are on a line or in a plane. Leave out some of them"
        )
