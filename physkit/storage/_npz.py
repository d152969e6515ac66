"""Files of NumPy arrays by name, `.npz`."""

import io
import zipfile
from collections.abc import Mapping

import numpy as np


def write_npz_file(
    file: io.BufferedIOBase, arrays: Mapping[str, np.ndarray], *, compressed: bool = False
) -> None:
    """`numpy.savez`, which takes names as keywords, so that an array cannot be called `file` there."""
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array))
