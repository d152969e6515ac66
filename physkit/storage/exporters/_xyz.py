"""Trajectories as extended XYZ, for OVITO, ASE and VMD."""

import re
from pathlib import Path
from typing import TextIO

import h5py
import numpy as np

from physkit.core import ParameterError

from .._atomic import open_atomically
from .._read_hdf5 import read_hdf5
from .._untrusted_hdf5 import get_dataset
from ..recording._frame_checksums import FileChecksums
from ..recording._h5md import TRAJECTORY_GROUP, pad_to_3d
from ..recording._load_component import is_trajectory
from ..recording._recording import open as open_file
from ._export_request import ExportRequest
from ._number_text import shortest_text

# Readers of XYZ know particles by the symbols of elements: species 0, 1, 2 … are called H, He, Li …
_ELEMENTS = re.findall(
    "[A-Z][a-z]?", "HHeLiBeBCNOFNeNaMgAlSiPSClArKCaScTiVCrMnFeCoNiCuZnGaGeAsSeBrKr"
)
# Frames are read in blocks of this size: each read opens the file, and all frames may not fit into memory.
_BLOCK_BYTES = 2**24


def write_xyz(target: Path, request: ExportRequest) -> None:
    """One trajectory as extended XYZ, with velocities where they were recorded beside it.

    **Errors:** `ParameterError` when there is none, or several and none is named.
    """
    found = [s for s in request.series if is_trajectory(s)]
    if len(found) != 1:
        available = [s.name for s in found]
        raise ParameterError(
            f"extended XYZ holds one trajectory; there are {available or 'none'}"
            + (", name one with names=[…]" if request.takes_all and available else "")
        )
    positions = found[0]
    header = read_hdf5(positions.path, lambda file: _header(file, positions.checksums))
    recording = open_file(positions.path)
    # A trajectory's file holds the velocities of the same particles and interval, if they were recorded.
    velocity = next((s for s in recording.values() if "/velocity/" in s.dataset_paths[0]), None)
    frames = request.frame_indices(positions)
    block_frames = max(1, _BLOCK_BYTES // max(1, positions.nbytes // max(1, len(positions))))
    with open_atomically(target, "w") as file:
        for first in range(0, len(frames), block_frames):
            block = frames[first : first + block_frames]
            selection = slice(block.start, block.stop, block.step)
            velocities = None if velocity is None else pad_to_3d(velocity[selection])
            steps, times = positions.step[selection], positions.time[selection]
            for k, x in enumerate(pad_to_3d(positions[selection])):
                v = None if velocities is None else velocities[k]
                _write_frame(file, x, v, header, steps[k], times[k])
            request.progress(first + len(block), len(frames))


def _header(file: h5py.File, checksums: FileChecksums) -> tuple[list[str], str]:
    """The element of each particle, and the part of the comment line that describes the cell."""
    group = file[TRAJECTORY_GROUP]
    count = len(checksums.read_constant(file, f"{TRAJECTORY_GROUP}/id"))
    species = [0] * count
    if "species" in group:
        species = checksums.read_constant(file, f"{TRAJECTORY_GROUP}/species").tolist()
    names = ["X" if "species" not in group else _element(k) for k in species]
    if "edges" not in group["box"]:
        return names, 'pbc="F F F"'
    edges = get_dataset(group, "box/edges/value", checksums.path)
    if not len(edges):
        return names, 'pbc="F F F"'
    edges = checksums.read_rows(file, f"{TRAJECTORY_GROUP}/box/edges/value", slice(0, 1))
    # The cell is the same in all frames, so that one header serves them all.
    # (frames, 3, 3) for the edge vectors of a triclinic cell, (frames, 3) for the edge lengths of a box.
    cell = edges[0] if edges.ndim == 3 else np.diag(edges[0])
    numbers = " ".join(shortest_text(x) for x in np.ravel(cell))
    return names, f'Lattice="{numbers}" pbc="T T T"'


def _element(species: int) -> str:
    """The symbol that stands for a species; X, "unknown", beyond the table."""
    return _ELEMENTS[species] if 0 <= species < len(_ELEMENTS) else "X"


def _write_frame(
    file: TextIO,
    x: np.ndarray,
    v: np.ndarray | None,
    header: tuple[list[str], str],
    step: np.integer,
    time: np.floating,
) -> None:
    """Write one frame: the number of particles, the comment line, and a line per particle."""
    names, cell = header
    columns = "species:S:1:pos:R:3" + ("" if v is None else ":velo:R:3")
    file.write(f"{len(x)}\n{cell} Properties={columns} Step={step} Time={shortest_text(time)}\n")
    rows = x if v is None else np.concatenate([x, v], axis=1)
    for name, row in zip(names, rows, strict=True):
        file.write(f"{name} {' '.join(shortest_text(a) for a in row)}\n")
