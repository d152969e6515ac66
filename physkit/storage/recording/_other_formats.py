"""Files that are no recordings: what they are, and what reads them."""

import os
from pathlib import Path

from physkit.core import FileError

from .._atomic import open_regular

RECORDING_SUFFIXES = (".h5", ".h5md", ".vtkhdf")
_HDF5 = b"\x89HDF\r\n\x1a\n"
_CHECKPOINT = b"physkit-checkpoint"
_READERS = {
    "np.load reads it": (".npy", ".npz"),
    "np.loadtxt or pandas.read_csv reads it": (".csv", ".dat", ".tsv", ".txt"),
    "ase.io.read reads it, and pk.Particles takes the positions": (
        ".cif", ".data", ".dump", ".extxyz", ".gro", ".lammpstrj", ".pdb", ".poscar", ".traj", ".xyz",
    ),
    "MDAnalysis.Universe reads it, and pk.Particles takes the positions": (".dcd", ".trr", ".xtc"),
    "ParaView or pyvista.read reads it": (".pvd", ".vti", ".vtk", ".vtp", ".vtu"),
    "xarray.open_dataset reads it": (".grb", ".nc", ".zarr"),
    "json.load reads it": (".json",),
}  # fmt: skip


def require_recording_format(path: Path) -> None:
    """Refuse a file that by its content and ending is of a format that is not read here.

    **Errors:** `FileError` says what is read here, and what to use instead; `FileNotFoundError`.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        head = file.read(len(_CHECKPOINT))
    if head.startswith(_CHECKPOINT):
        raise FileError(
            f"{path} is a checkpoint, which holds no frames: run(…, resume=True) goes on from it, and "
            "pk.load_checkpoint reads it"
        )
    suffix = path.suffix.lower()
    if head.startswith(_HDF5) or suffix in RECORDING_SUFFIXES:  # if not HDF5, then damaged
        return
    remedy = next((text for text, known in _READERS.items() if suffix in known), None)
    raise FileError(
        f"{path} is no recording: the folder of a run or of a sweep is read, and the files that a run writes "
        f"({', '.join(RECORDING_SUFFIXES)}); " + (remedy or "use the program that wrote it")
    )
