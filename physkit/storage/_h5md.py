"""Trajectories of particles as H5MD, in the profile that MDAnalysis opens without help.

Reference: de Buyl, Colberg & Höfling, Comput. Phys. Commun. 185, 1546 (2014).
"""

from pathlib import Path

import h5py
import numpy as np

import physkit
from physkit.particles import Particles

from ._tracks import Book, Column, Track, growing

GROUP = "particles/trajectory"


def trajectory_book(
    path: Path, particles: Particles, position: str, velocity: str | None, dtype: np.dtype
) -> Book:
    """The file for frames recorded as `position` and, with the same cadence, `velocity`."""
    n, d = particles.count, particles.dimension
    # Most readers want three dimensions.
    deep = lambda x: np.concatenate([x, np.zeros((*x.shape[:-1], 3 - d), x.dtype)], -1).astype(
        dtype
    )
    edges = _edges(particles)
    columns = [
        Column(f"{GROUP}/{kind}/value", name, deep, ("time", "particle", "axis"), (n, d))
        for kind, name in (("position", position), ("velocity", velocity))
        if name is not None
    ]
    groups = [column.path.removesuffix("/value") for column in columns]
    if edges is not None:
        repeat = lambda steps: np.broadcast_to(edges, (len(steps), *edges.shape))
        columns.append(Column(f"{GROUP}/box/edges/value", None, repeat))
        groups.append(f"{GROUP}/box/edges")
    track = Track(
        tuple(columns),
        tuple(f"{group}/step" for group in groups),
        tuple(f"{group}/time" for group in groups),
        GROUP,
    )

    def begin(file: h5py.File) -> None:
        head = file.create_group("h5md")
        head.attrs["version"] = np.array([1, 1], np.int32)
        head.create_group("author").attrs["name"] = np.bytes_(b"unknown")
        creator = head.create_group("creator")
        creator.attrs["name"] = np.bytes_(b"physkit")
        creator.attrs["version"] = np.bytes_(physkit.__version__.encode())
        box = file.create_group(f"{GROUP}/box")
        box.attrs["dimension"] = 3
        kind = b"none" if edges is None else b"periodic"
        box.attrs["boundary"] = np.array([kind] * 3)
        for column in columns:
            shape = (n, 3) if column.source is not None else edges.shape
            growing(file, column.path, shape, dtype if column.source is not None else np.float64)
        for group in groups:
            growing(file, f"{group}/step", (), np.int64)
            growing(file, f"{group}/time", (), np.float64)
        order = np.argsort(np.asarray(particles.id))  # frames are sorted by id
        whole = file[GROUP]
        for name in ("id", "mass", "charge", "species"):
            values = getattr(particles, name)
            if values is not None:
                whole.create_dataset(name, data=np.asarray(values)[order], fletcher32=n > 0)

    return Book(path, "trajectory", (track,), begin)


def _edges(particles: Particles) -> np.ndarray | None:
    """Edge lengths or vectors of the cell; None where it does not repeat along every axis.

    Axes that the particles do not have get the largest edge that there is.
    """
    d = particles.dimension
    cell = particles.space.cell(d)
    if cell is None or not all(particles.space.periodic(d)):
        return None
    vectors = np.asarray(cell, np.float64)
    whole = np.eye(3) * np.abs(vectors).max()
    whole[:d, :d] = vectors
    is_box = not np.any(whole - np.diag(np.diag(whole)))
    return np.diag(whole).copy() if is_box else whole
