"""What a file of fields says of the sphere on which they lie."""

from pathlib import Path

import h5py
import numpy as np

from physkit.geometry import SphericalGrid

from .._untrusted_hdf5 import damaged_error, read_attribute
from ._growing_files import fixed_length_text

_AXES = {"x": ("longitude", "radian"), "y": ("latitude", "radian")}
_MOST = 10_000  # degrees of harmonics that a file can claim


def write_sphere(file: h5py.File, grid: SphericalGrid) -> None:
    """Name the axes of a file, and say which sphere they are of."""
    file.attrs["sphere_radius"] = float(grid.radius)
    file.attrs["sphere_truncation"] = np.int64(grid.truncation)
    for axis, (name, units) in _AXES.items():
        file[axis].attrs["standard_name"] = fixed_length_text(name)
        file[axis].attrs["units"] = fixed_length_text(units)


def read_sphere(file: h5py.File, path: Path) -> tuple[float, int] | None:
    """Radius and truncation of the sphere; None where the fields lie in a box.

    **Errors:** `DamagedFileError` for numbers that no sphere has.
    """
    if "sphere_truncation" not in file.attrs:
        return None
    try:
        radius = float(read_attribute(file, "sphere_radius", path))
        truncation = int(read_attribute(file, "sphere_truncation", path))
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_error(path, "the sphere of its fields is incomplete") from error
    if not (np.isfinite(radius) and radius > 0 and 0 < truncation < _MOST):
        raise damaged_error(path, f"its sphere has radius {radius} and truncation {truncation}")
    return radius, truncation
