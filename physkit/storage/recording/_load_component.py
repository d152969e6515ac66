"""Load one frame of a recording as the particles or the field from which it was taken."""

from typing import Any

import h5py
import numpy as np

from physkit.core import ParameterError, as_device_array, warn
from physkit.fields import Field
from physkit.geometry import Box, Free, Grid, Location, SphericalGrid, Triclinic
from physkit.particles import Particles

from .._read_hdf5 import read_hdf5
from .._untrusted_hdf5 import read_attribute
from ._h5md import TRAJECTORY_GROUP, read_species_names
from ._recorded_series import Series
from ._recording import open as open_file
from ._spherical_files import read_sphere


def load_component(series: Series, frame: int = -1, *, quiet: bool = False) -> Particles | Field:
    """The particles or the field of one recorded frame, to plot or to start a run from.

    Particles get the cell, masses, charges and species of their file, in the order of their ids, and the
    velocities that were recorded with them; where none were, they are zero, with a warning. Fields are
    periodic along every axis: their boundary conditions are not in the file.

    **Arguments:** `series`: positions of particles, or a field. `frame`: its index; the last by default.
    `quiet`: leave out the warning, where velocities do not matter.

    **Errors:** `ParameterError` for series that are neither; `FileError`.
    """
    if series.kind == "fields":
        return _field(series, frame)
    if is_trajectory(series):
        return _particles(series, frame, quiet)
    raise ParameterError(f"{series.name} holds neither positions of particles nor a field")


def is_trajectory(series: Series) -> bool:
    """Whether a series holds positions of particles."""
    return series.kind == "trajectory" and "/position/" in series.dataset_paths[0]


def _field(series: Series, frame: int) -> Field:
    """The grid is not in the file: find it from the coordinates of the points."""
    values = series[frame]
    axes = series.coordinates()
    sphere = None
    # Frames of several processes are in a folder; a sphere lies on one device.
    if len(axes) == 2 and series.path.is_file():
        sphere = read_hdf5(series.path, lambda file: read_sphere(file, series.path))
    if sphere is not None:
        radius, truncation = sphere
        # Fields and box have one precision.
        return Field(as_device_array(values), SphericalGrid(values.dtype.type(radius), truncation))
    coordinates = list(axes.values())
    counts = values.shape[values.ndim - len(axes) :]
    # The width of a single cell cannot be seen from its one point: take that of the widest.
    widths = [float(x[1] - x[0]) if len(x) > 1 else 0.0 for x in coordinates]
    widths = [w or max(widths) or 1.0 for w in widths]
    # The first point is at 0 where values are on faces, at half a cell where they are at centers.
    staggered = tuple(bool(abs(x[0]) < 0.25 * w) for x, w in zip(coordinates, widths, strict=True))
    lengths = [n * w for n, w in zip(counts, widths, strict=True)]
    grid = Grid(Box(np.asarray(lengths, values.real.dtype)), counts)
    return Field(as_device_array(values), grid, Location(staggered), vector=series.is_vector)


def recorded_velocities(series: Series) -> Series | None:
    """The velocities that were recorded together with these positions; None where none were."""
    velocity_path = f"{series.dataset_paths[0].removesuffix('/position/value')}/velocity/value"
    found = open_file(series.path).values()
    return next((s for s in found if s.dataset_paths == (velocity_path,)), None)


def _particles(series: Series, frame: int, quiet: bool) -> Particles:
    position = series[frame]
    velocities = recorded_velocities(series)
    if velocities is None and not quiet:
        warn(
            f"{series.name} was recorded without velocities, which are zero here: to start a run from it, "
            "record Velocities with the same interval, or draw new ones"
        )

    def read(file: h5py.File) -> dict[str, Any]:
        group = file[TRAJECTORY_GROUP]
        names = [name for name in ("id", "mass", "charge", "species") if name in group]
        read_constant, read_rows = series.checksums.read_constant, series.checksums.read_rows
        found = {name: read_constant(file, f"{TRAJECTORY_GROUP}/{name}") for name in names}
        if "edges" in group["box"]:
            k = frame % len(series)
            edges = read_rows(file, f"{TRAJECTORY_GROUP}/box/edges/value", slice(k, k + 1))
            found["edges"] = edges[0]
            found["boundary"] = read_attribute(group["box"], "boundary", series.path)
        found["species_names"] = read_species_names(group, series.path)
        return found

    found = read_hdf5(series.path, read)
    # Masses and charges are stored in the run's precision, positions mostly in single.
    properties = {k: found[k].astype(position.dtype) for k in ("mass", "charge") if k in found}
    return Particles(
        position,
        None if velocities is None else velocities[frame],
        properties.get("mass", 1.0),
        _space(found.get("edges"), found.get("boundary"), position.shape[1]),
        charge=properties.get("charge"),
        species=found.get("species"),
        species_names=found["species_names"],
        id=found["id"],  # frames, masses, charges and species are sorted by it
    )


def _space(edges: np.ndarray | None, boundary: np.ndarray | None, d: int) -> Box | Triclinic | Free:
    """The space of a cell with these edges, of which the first `d` are real axes."""
    if edges is None or boundary is None:
        return Free()
    edges = edges.astype(np.float32)
    if edges.ndim == 2 and not np.any(edges - np.diag(np.diag(edges))):
        edges = np.diag(edges)  # of a box that changed, which is stored as vectors
    periodic = tuple(bool(kind == b"periodic") for kind in np.ravel(boundary)[:d])
    return Box(edges[:d], periodic) if edges.ndim == 1 else Triclinic(edges[:d, :d])
