"""Clusters: constraints that share particles, found once on the host and grouped by their topology."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from physkit.core import Module, as_device_array, data, static

from ..forces.bonded._tuples import Tuples

Bonds = tuple[tuple[int, int], ...]


class ClusterGroup(Module):
    """All clusters of one topology: which particles, and which of them are bonded to one another.

    Solved together: every array has the clusters as its last axis.

    - `tuples`: the particles of each cluster. `rows`: `[c k]`, which of all constraints each bond is.
    - `bonds`: the pairs of members, the same in every cluster.
    """

    tuples: Tuples
    rows: Int[Array, "c k"] = data()
    bonds: Bonds = static()

    @staticmethod
    def of(places: np.ndarray, rows: np.ndarray, bonds: Bonds) -> "ClusterGroup":
        """Clusters of the particles `places`, `[c a]`."""
        tuples = Tuples.of(places, places.shape[1], "constraints")
        return ClusterGroup(tuples, as_device_array(rows, jnp.int32), bonds)


class _Cluster(NamedTuple):
    places: list[int]
    rows: list[int]
    bonds: Bonds


def find_clusters(pairs: np.ndarray) -> tuple[ClusterGroup, ...]:
    """The clusters of `pairs`, `[m 2]`: constraints that share a particle, directly or through others."""
    from scipy.sparse import coo_matrix  # here: it takes part of a second to import
    from scipy.sparse.csgraph import connected_components

    m = pairs.shape[0]
    if m == 0:
        return ()
    count = int(pairs.max()) + 1
    graph = coo_matrix((np.ones(m), (pairs[:, 0], pairs[:, 1])), (count, count))
    label = connected_components(graph, directed=False)[1][pairs[:, 0]]
    order = np.argsort(label, kind="stable")
    starts = np.flatnonzero(np.diff(label[order], prepend=-1))
    groups: dict[Bonds, list[_Cluster]] = {}
    for rows in np.split(order, starts[1:]):
        cluster = _number_members(pairs, rows)
        groups.setdefault(cluster.bonds, []).append(cluster)
    return tuple(
        ClusterGroup.of(
            np.array([cluster.places for cluster in same]),
            np.array([cluster.rows for cluster in same]),
            bonds,
        )
        for bonds, same in groups.items()
    )


def _number_members(pairs: np.ndarray, rows: np.ndarray) -> _Cluster:
    """One cluster, its members numbered so that molecules of one kind get the same bonds."""
    own = pairs[rows].tolist()
    degree: dict[int, int] = {}
    for place in (place for pair in own for place in pair):
        degree[place] = degree.get(place, 0) + 1
    # Those with most bonds first, then as they were given: a star has its center first.
    places = sorted(degree, key=lambda place: -degree[place])
    number = {place: k for k, place in enumerate(places)}
    bonds = [tuple(sorted((number[a], number[b]))) for a, b in own]
    in_order = sorted(range(len(bonds)), key=lambda k: bonds[k])
    return _Cluster(
        places,
        [int(rows[k]) for k in in_order],
        tuple((bonds[k][0], bonds[k][1]) for k in in_order),
    )
