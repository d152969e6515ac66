"""Trajectories of particles as H5MD, in the profile that MDAnalysis opens without help.

Reference: de Buyl, Colberg & Höfling, Comput. Phys. Commun. 185, 1546 (2014).
"""

from pathlib import Path

import h5py
import numpy as np

import physkit
from physkit.particles import AbstractBodies

from .._untrusted_hdf5 import read_attribute
from ._growing_files import FrameStream, OutputFile, StreamColumn, create_growing_dataset

TRAJECTORY_GROUP = "particles/trajectory"


def make_trajectory_file(
    path: Path,
    particles: AbstractBodies,
    position: str,
    velocity: str | None,
    cell: str | None,
    dtype: np.dtype,
) -> OutputFile:
    """The file for frames recorded as `position` and, with the same interval, `velocity` and `cell`."""
    n, d = particles.num_particles, particles.dimension
    edges = _edges(particles)

    def to_stored(x: np.ndarray) -> np.ndarray:
        return pad_to_3d(x).astype(dtype)

    def repeat_edges(steps: np.ndarray) -> np.ndarray:
        return np.broadcast_to(edges, (len(steps), *edges.shape))

    columns = [
        StreamColumn(
            f"{TRAJECTORY_GROUP}/{kind}/value",
            name,
            to_stored,
            ("time", "particle", "axis"),
            (n, d),
        )
        for kind, name in (("position", position), ("velocity", velocity))
        if name is not None
    ]
    groups = [column.path.removesuffix("/value") for column in columns]
    edges_path = f"{TRAJECTORY_GROUP}/box/edges/value"
    if cell is not None:
        edges = np.eye(3)
        axes = ("time", "vector", "axis")
        columns.append(StreamColumn(edges_path, cell, _pad_cells, axes, (d, d)))
    elif edges is not None:
        # The cell is the same in every frame; in the profile of MDAnalysis its edges still have one row each.
        columns.append(StreamColumn(edges_path, None, repeat_edges))
    if edges is not None:
        groups.append(f"{TRAJECTORY_GROUP}/box/edges")
    stream = FrameStream(
        tuple(columns),
        tuple(f"{group}/step" for group in groups),
        tuple(f"{group}/time" for group in groups),
        TRAJECTORY_GROUP,
    )

    def write_header(file: h5py.File) -> None:
        head = file.create_group("h5md")
        head.attrs["version"] = np.array([1, 1], np.int32)
        # H5MD requires an author and a creator; physkit does not know who runs it.
        head.create_group("author").attrs["name"] = np.bytes_(b"unknown")
        creator = head.create_group("creator")
        creator.attrs["name"] = np.bytes_(b"physkit")
        creator.attrs["version"] = np.bytes_(physkit.__version__.encode())
        box = file.create_group(f"{TRAJECTORY_GROUP}/box")
        box.attrs["dimension"] = 3
        periodic = particles.space.periodic_axes(d) + (False,) * (3 - d)
        # A fixed length that holds both words, whichever are there.
        box.attrs["boundary"] = np.array([b"periodic" if p else b"none" for p in periodic], "S8")
        for column in columns:
            of_box = column.path == edges_path
            shape = edges.shape if of_box else (n, 3)
            create_growing_dataset(file, column.path, shape, np.float64 if of_box else dtype)
        for group in groups:
            create_growing_dataset(file, f"{group}/step", (), np.int64)
            create_growing_dataset(file, f"{group}/time", (), np.float64)
        order = np.argsort(np.asarray(particles.id))  # frames are sorted by id
        trajectory = file[TRAJECTORY_GROUP]
        for name in ("id", "mass", "charge", "species"):
            values = getattr(particles, name)
            if values is not None:
                # Without particles there are no chunks that could have checksums.
                trajectory.create_dataset(name, data=np.asarray(values)[order], fletcher32=n > 0)
        if particles.species is not None and particles.species_names is not None:
            names = [name.encode() for name in particles.species_names]
            trajectory["species"].attrs["names"] = np.array(names)

    return OutputFile(path, "trajectory", (stream,), write_header)


def read_species_names(group: h5py.Group, path: Path) -> tuple[str, ...] | None:
    """The names of the species in a file's group of particles; None where it has none."""
    if "species" not in group or "names" not in group["species"].attrs:
        return None
    names = read_attribute(group["species"], "names", path)
    return tuple(name.decode(errors="replace") for name in np.ravel(names).tolist())


def pad_to_3d(x: np.ndarray) -> np.ndarray:
    """Vectors, on the last axis, filled up with zeros to three components: most readers know no others."""
    zeros = np.zeros((*x.shape[:-1], 3 - x.shape[-1]), x.dtype)
    return np.concatenate([x, zeros], -1)


def _pad_cells(cells: np.ndarray) -> np.ndarray:
    """Vectors `(frames, d, d)` as `(frames, 3, 3)`; axes that are not there get the largest edge."""
    d = cells.shape[-1]
    padded = np.eye(3) * np.abs(cells).max(axis=(1, 2))[:, None, None]
    padded[:, :d, :d] = cells
    return padded


def _edges(particles: AbstractBodies) -> np.ndarray | None:
    """Edge lengths `(3,)` or vectors `(3, 3)` of the cell, that of open axes included; None without a cell.

    Axes that the particles do not have get the largest edge that there is.
    """
    d = particles.dimension
    cell = particles.space.cell(d)
    if cell is None:
        return None
    vectors_3d = _pad_cells(np.asarray(cell)[None])[0]
    is_box = not np.any(vectors_3d - np.diag(np.diag(vectors_3d)))
    return np.diag(vectors_3d).copy() if is_box else vectors_3d
