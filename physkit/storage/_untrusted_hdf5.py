"""Reading HDF5 files that are not trusted: nothing outside of them is read, nothing absurd allocated."""

import errno
import math
from pathlib import Path

import h5py
import numpy as np

from physkit.core import DamagedFileError, FileError

_MAX_OBJECTS = 100_000
_KINDS = "biufcSO"  # O: text of any length
_FILTERS = (h5py.h5z.FILTER_FLETCHER32, h5py.h5z.FILTER_SHUFFLE)


def damaged_error(
    path: Path, what: str, remedy: str = "take it from a backup, or write it anew"
) -> DamagedFileError:
    """The error for a file that is not what it should be."""
    return DamagedFileError(f"{path}: {what}; {remedy}")


def read_head_and_body(path: Path, head: int) -> tuple[bytes, bytes]:
    """The first `head` bytes of a file, and the rest.

    **Errors:** `FileError` when it is not there or not a file.
    """
    try:
        if path.exists() and not path.is_file():
            raise FileError(f"{path} is not a file")
        with open(path, "rb") as file:
            return file.read(head), file.read()
    except OSError as error:
        if isinstance(error, FileError):
            raise
        hint = "is not there" if error.errno == errno.ENOENT else f"cannot be read ({error})"
        raise FileError(f"{path} {hint}") from error


def get_member(group: h5py.Group, name: str, path: Path) -> h5py.HLObject:
    """The object `name` of a group, which must lie in this very file.

    **Errors:** `DamagedFileError` when it is missing, or a link to elsewhere.
    """
    full = f"{group.name.rstrip('/')}/{name}"
    try:
        link = group.get(name, getlink=True)
        if link is None:
            raise damaged_error(path, f"{full} is missing")
        if not isinstance(link, h5py.HardLink):
            raise damaged_error(
                path, f"{full} is a link ({type(link).__name__}), which is never followed"
            )
        return group[name]
    except FileError:
        raise
    except (KeyError, OSError, RuntimeError, ValueError) as error:
        raise damaged_error(path, f"{full} cannot be read ({error})") from error


def get_dataset(group: h5py.Group, name: str, path: Path) -> h5py.Dataset:
    """The dataset `name` of a group, checked with `check_dataset`."""
    found = get_member(group, name, path)
    if not isinstance(found, h5py.Dataset):
        raise damaged_error(path, f"{group.name.rstrip('/')}/{name} is no dataset")
    check_dataset(found, path)
    return found


def check_dataset(found: h5py.Dataset, path: Path) -> None:
    """Refuse a dataset whose numbers lie elsewhere, or that claims more of them than the file holds.

    **Errors:** `DamagedFileError`.
    """
    where = found.name
    try:
        plan = found.id.get_create_plist()
        layout, outside = plan.get_layout(), plan.get_external_count()
        filters = [plan.get_filter(k)[0] for k in range(plan.get_nfilters())]
        size = int(np.prod(found.shape, dtype=object) * found.dtype.itemsize)
        kind, chunks = found.dtype.kind, found.chunks
        held = path.stat().st_size
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise damaged_error(path, f"{where} cannot be read ({error})") from error
    if outside or layout == h5py.h5d.VIRTUAL:
        raise damaged_error(path, f"{where} keeps its numbers in other files, which are never read")
    if kind not in _KINDS or (kind == "O" and h5py.check_string_dtype(found.dtype) is None):
        raise damaged_error(path, f"{where} holds {found.dtype}, no numbers or text")
    if set(filters) - set(_FILTERS):
        raise damaged_error(
            path, f"{where} is packed with filters {filters} that physkit does not use"
        )
    chunk = int(np.prod(chunks, dtype=object) * found.dtype.itemsize) if chunks else 0
    # What is written in chunks may be as much as one chunk larger than what it holds.
    if size > held or chunk > max(held, 2**24):
        raise damaged_error(
            path, f"{where} claims {size} bytes (chunks of {chunk}) in a file of {held}"
        )


def read_small_array(file: h5py.File, name: str, path: Path, held: int) -> np.ndarray:
    """All numbers of a dataset at the root of a file of `held` bytes, checked as by `get_dataset`.

    It uses libhdf5's low-level interface, several times as fast: a sweep reads thousands of such files.

    **Errors:** `DamagedFileError`.
    """
    key = name.encode()
    try:
        if file.id.links.get_info(key).type != h5py.h5l.TYPE_HARD:
            raise damaged_error(path, f"/{name} is a link, which is never followed")
        found = h5py.h5d.open(file.id, key)
        plan, kind, shape = found.get_create_plist(), found.dtype, found.shape
        outside = plan.get_external_count() or plan.get_layout() == h5py.h5d.VIRTUAL
        if outside or plan.get_nfilters() or kind.kind not in "biufc":
            raise damaged_error(path, f"/{name} is no plain array of numbers of its own")
        if math.prod(shape) * kind.itemsize > held:
            raise damaged_error(path, f"/{name} claims {shape} in a file of {held} bytes")
        values = np.empty(shape, kind)
        found.read(h5py.h5s.ALL, h5py.h5s.ALL, values)
    except FileError:
        raise
    except (KeyError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise damaged_error(path, f"/{name} cannot be read ({error})") from error
    return values


def check_links(file: h5py.Group, path: Path) -> None:
    """Refuse a file with any link that leads out of it, or with absurdly many objects.

    **Errors:** `DamagedFileError`.
    """
    waiting, seen = [file], set()
    while waiting:
        group = waiting.pop()
        try:
            names = list(group)
        except (OSError, RuntimeError) as error:
            raise damaged_error(path, f"{group.name} cannot be listed ({error})") from error
        for name in names:
            found = get_member(group, name, path)
            place = h5py.h5o.get_info(found.id).addr
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > _MAX_OBJECTS:
                raise damaged_error(path, f"it holds more than {_MAX_OBJECTS} objects")
            if isinstance(found, h5py.Group):
                waiting.append(found)
