"""Trajectories as extended XYZ, for OVITO, ASE and VMD."""

import re
from functools import partial
from pathlib import Path
from typing import NamedTuple, TextIO

import h5py
import numpy as np

from physkit.core import ParameterError
from physkit.particles import element_symbol

from .._atomic import open_atomically
from .._read_hdf5 import read_hdf5
from .._untrusted_hdf5 import read_attribute
from ..recording._frame_checksums import FileChecksums
from ..recording._h5md import TRAJECTORY_GROUP, pad_to_3d, read_species_names
from ..recording._load_component import is_trajectory, recorded_velocities
from ._export_request import ExportRequest
from ._number_text import shortest_text

# Readers of XYZ know particles by the symbols of elements: species 0, 1, 2 … without names are H, He, Li …
_ELEMENTS = re.findall(
    "[A-Z][a-z]?",
    "HHeLiBeBCNOFNeNaMgAlSiPSClArKCaScTiVCrMnFeCoNiCuZnGaGeAsSeBrKrRbSrYZrNbMoTcRuRhPdAgCdInSnSbTeIXe"
    "CsBaLaCePrNdPmSmEuGdTbDyHoErTmYbLuHfTaWReOsIrPtAuHgTlPbBiPoAtRnFrRaAcThPaUNpPuAmCmBkCfEsFmMdNoLr",
)
# Frames are read in blocks of this size: each read opens the file, and all frames may not fit into memory.
_BLOCK_BYTES = 2**24


class _Header(NamedTuple):
    """What is the same in all frames.

    - `elements`: of each particle.
    - `properties`, `columns`: further columns, as the comment line names them, and their text, by particle.
    - `mass`: of each particle.
    """

    elements: list[str]
    properties: str
    columns: list[str]
    mass: np.ndarray


def write_xyz(target: Path, request: ExportRequest) -> None:
    """One trajectory as extended XYZ, with velocities where they were recorded beside it.

    ASE finds momenta, masses and charges under the names that it uses itself; OVITO finds velocities.

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
    velocity = recorded_velocities(positions)
    frames = request.frame_indices(positions)
    block_frames = max(1, _BLOCK_BYTES // max(1, positions.nbytes // max(1, len(positions))))
    with open_atomically(target, "w") as file:
        for first in range(0, len(frames), block_frames):
            block = frames[first : first + block_frames]
            # A part of a range may end beyond the last frame.
            selection = slice(block.start, block[-1] + 1, block.step)
            velocities = None if velocity is None else pad_to_3d(velocity[selection])
            steps, times = positions.step[selection], positions.time[selection]
            read_cells = partial(_cells, checksums=positions.checksums, rows=selection)
            cells = read_hdf5(positions.path, read_cells)
            for k, x in enumerate(pad_to_3d(positions[selection])):
                v = None if velocities is None else velocities[k]
                _write_frame(file, x, v, header, cells[k], steps[k], times[k])
            request.progress(first + len(block), len(frames))


def _header(file: h5py.File, checksums: FileChecksums) -> _Header:
    group = file[TRAJECTORY_GROUP]
    constants = {
        name: checksums.read_constant(file, f"{TRAJECTORY_GROUP}/{name}")
        for name in ("id", "mass", "charge", "species")
        if name in group
    }
    count = len(constants["id"])
    species = constants.get("species")
    names = read_species_names(group, checksums.path)
    numbers = [-1] * count if species is None else species.tolist()
    properties, rows = "", []
    if names is not None and not set(names) <= set(_ELEMENTS):
        properties, rows = ":species_name:S:1", [[names[k] for k in numbers]]
    # The number of a species beside its element, which stands for it and is not its name.
    for name, column in (
        ("masses:R:1", "mass"), ("initial_charges:R:1", "charge"), ("species_number:I:1", "species"),
        ("id:I:1", "id"),
    ):  # fmt: skip
        if column in constants:
            properties += f":{name}"
            rows.append([shortest_text(x) for x in constants[column]])
    columns = ["".join(f" {x}" for x in row) for row in zip(*rows, strict=True)]
    mass = constants.get("mass", np.ones(count))
    elements = [_element(k, names) for k in numbers]
    return _Header(elements, properties, columns, mass)


def _cells(file: h5py.File, checksums: FileChecksums, rows: slice) -> list[str]:
    """The cell and its periodic axes in these frames, for their comment lines."""
    box = file[f"{TRAJECTORY_GROUP}/box"]
    if "edges" not in box:
        return ['pbc="F F F"'] * len(range(*rows.indices(rows.stop)))
    edges = checksums.read_rows(file, f"{TRAJECTORY_GROUP}/box/edges/value", rows)
    boundary = np.ravel(read_attribute(box, "boundary", checksums.path))
    periodic = " ".join("T" if kind == b"periodic" else "F" for kind in boundary)
    # (frames, 3, 3) for the edge vectors of a triclinic cell, (frames, 3) for the edge lengths of a box.
    cells = edges if edges.ndim == 3 else [np.diag(lengths) for lengths in edges]
    numbers = [" ".join(shortest_text(x) for x in np.ravel(cell)) for cell in cells]
    return [f'Lattice="{vectors}" pbc="{periodic}"' for vectors in numbers]


def _element(species: int, names: tuple[str, ...] | None) -> str:
    """The symbol of a species, by name or else by number; X, "unknown", for what is none."""
    if names is not None:
        symbol = element_symbol(names[species])
        return symbol if symbol in _ELEMENTS else "X"
    return _ELEMENTS[species] if 0 <= species < len(_ELEMENTS) else "X"


def _write_frame(
    file: TextIO,
    x: np.ndarray,
    v: np.ndarray | None,
    header: _Header,
    cell: str,
    step: np.integer,
    time: np.floating,
) -> None:
    """Write one frame: the number of particles, the comment line, and a line per particle."""
    moving = "" if v is None else ":velo:R:3:momenta:R:3"
    properties = f"species:S:1:pos:R:3{moving}{header.properties}"
    file.write(f"{len(x)}\n{cell} Properties={properties} Step={step} Time={shortest_text(time)}\n")
    rows = x
    if v is not None:
        rows = np.concatenate([x, v, v * header.mass[:, None].astype(v.dtype)], axis=1)
    for name, row, columns in zip(header.elements, rows, header.columns, strict=True):
        file.write(f"{name} {' '.join(shortest_text(a) for a in row)}{columns}\n")
