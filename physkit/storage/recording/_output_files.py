"""Choose the files of a run, and which recorded frames go to which, by how each quantity says it is stored."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from physkit.core import Frame, PyTree, State, StorageKind, get_component
from physkit.fields import Field
from physkit.observe import AbstractObserver, AbstractQuantity
from physkit.particles import AbstractBodies

from ._field_files import make_field_file
from ._growing_files import OutputFile
from ._h5md import make_trajectory_file
from ._series_files import make_series_file


def make_output_files(
    folder: Path,
    observers: Sequence[AbstractObserver],
    state: State,
    frames: Frame,
    dtype: np.dtype,
) -> list[OutputFile]:
    """The files for `frames` (shapes, by name), each frame in one of them.

    Positions, with the velocities and the cell of the same particles and interval, are a trajectory; fields of
    one component and interval share a file; everything else is a series.

    **Arguments:** `dtype`: of stored positions, velocities and fields; series keep their own.
    """
    # With several processes `frames` lacks quantities that are recorded: those that are sharded.
    recorded = recorded_quantities(observers)
    remaining = dict(frames)  # those that are in no file yet
    files: list[OutputFile] = []
    used_names: set[str] = set()

    def new_path(kind: str, component: str | None, suffix: str) -> Path:
        """`trajectory-ions.h5md`, `trajectory-ions-2.h5md`, …; `trajectory.h5md` of a state without names."""
        stem = f"{kind}-{component}" if isinstance(state, dict) and component is not None else kind
        number, name = 1, f"{stem}{suffix}"
        while name in used_names:
            number += 1
            name = f"{stem}-{number}{suffix}"
        used_names.add(name)
        return folder / name

    # Trajectories first: each takes its velocities and cell along. Those that none takes become series.
    for name, (quantity, interval) in recorded.items():
        if name in remaining and quantity.storage_kind is StorageKind.POSITIONS:
            component = _particle_component(state, quantity)
            velocity, cell = (
                _matching_frame(state, recorded, remaining, quantity, interval, kind)
                for kind in (StorageKind.VELOCITIES, StorageKind.CELL)
            )
            particles = get_component(state, component)
            if _is_of_sites(quantity):
                particles = particles.site_particles()
            path = new_path("trajectory", component, ".h5md")
            files.append(make_trajectory_file(path, particles, name, velocity, cell, dtype))
            for used in (name, velocity, cell):
                remaining.pop(used, None)
    # The fields of a file share one axis of time and their points: one interval, one place in the cells.
    groups: dict[tuple[str | None, int | None, str], dict[str, PyTree]] = {}
    for name, (quantity, interval) in recorded.items():
        if name in remaining and quantity.storage_kind is StorageKind.FIELD:
            field = quantity.stored_field(state)
            key = (quantity.stored_component(), interval, repr(field.location))
            groups.setdefault(key, {})[name] = (field, remaining.pop(name))
    for (component, _, _), group in groups.items():
        path = new_path("fields", component, ".vtkhdf")
        like = next(iter(group.values()))[0]
        shapes = {name: shape for name, (_, shape) in group.items()}
        vectors = [name for name, (field, _) in group.items() if field.vector]
        files.append(make_field_file(path, like, shapes, dtype, vectors))
    if remaining:
        files.append(make_series_file(folder / "series.h5", remaining))
    return files


def recorded_quantities(
    observers: Sequence[AbstractObserver],
) -> dict[str, tuple[AbstractQuantity, int | None]]:
    """The quantities whose values are frames, each with its observer's interval, by name."""
    return {
        name: (quantity, observer.interval)
        for observer in observers
        for name, quantity in observer.recorded_quantities().items()
    }


def recorded_fields(observers: Sequence[AbstractObserver], state: State) -> dict[str, Field]:
    """The fields that are recorded, by the names of their frames."""
    return {
        name: quantity.stored_field(state)
        for name, (quantity, _) in recorded_quantities(observers).items()
        if quantity.storage_kind is StorageKind.FIELD
    }


def _matching_frame(
    state: State,
    recorded: dict[str, tuple[AbstractQuantity, int | None]],
    remaining: Frame,
    positions: AbstractQuantity,
    interval: int | None,
    kind: StorageKind,
) -> str | None:
    """The first frame of this kind and interval, of what `positions` are of, that is in no file yet."""
    component = _particle_component(state, positions)
    for name, (quantity, found_interval) in recorded.items():
        if name not in remaining or quantity.storage_kind is not kind:
            continue
        is_fitting = kind is StorageKind.CELL or _is_of_sites(quantity) == _is_of_sites(positions)
        if (
            is_fitting
            and found_interval == interval
            and _particle_component(state, quantity) == component
        ):
            return name
    return None


def _is_of_sites(quantity: AbstractQuantity) -> bool:
    """Whether it is about the sites of rigid bodies, not about their centers."""
    return getattr(quantity, "sites", False)


def _particle_component(state: State, quantity: AbstractQuantity) -> str | None:
    """The name of a quantity's particles: the only particles of the state, where the quantity names none."""
    component = quantity.stored_component()
    if component is None and isinstance(state, dict):
        return next(name for name, part in state.items() if isinstance(part, AbstractBodies))
    return component
