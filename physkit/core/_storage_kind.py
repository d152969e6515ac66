"""The kind of file that a recorded quantity goes to, and the bytes of a frame there."""

import enum
import math

import numpy as np


class StorageKind(enum.Enum):
    """The file that frames of a quantity go to.

    - `POSITIONS`, `VELOCITIES`: `[n d]` of all particles of a component, sorted by id: a trajectory (H5MD).
    - `CELL`: `[d d]`, lattice vectors as rows: the box of the trajectory of the same particles and interval.
    - `FIELD`: `[*components, *points]` of a field: a file of fields (netCDF-4 and VTKHDF).
    - `SERIES`: arrays of any shape.
    """

    POSITIONS = "positions"
    VELOCITIES = "velocities"
    CELL = "cell"
    FIELD = "field"
    SERIES = "series"

    def stored_bytes(self, shape: tuple[int, ...], dtype: np.dtype) -> int:
        """Bytes of an array in its file: trajectories and fields are stored in single precision."""
        if self in (StorageKind.POSITIONS, StorageKind.VELOCITIES):
            # H5MD readers expect three axes, so that planes and lines are padded.
            return math.prod(shape) // shape[-1] * 3 * 4
        if self is StorageKind.CELL:
            return 9 * 8
        if self is StorageKind.FIELD:
            return math.prod(shape) * (8 if dtype.kind == "c" else 4)
        return math.prod(shape) * dtype.itemsize
