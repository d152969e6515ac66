"""Checks for HDF5 files that are not trusted: read nothing outside of them, allocate no absurd sizes.

A file from elsewhere may be hostile: external links and virtual datasets would copy private files into results,
and a few bytes may claim terabytes. So links are not followed, and no dataset may be larger than its file.
"""

import math
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.core import DamagedFileError, FileError, warn

from ._atomic import file_error, open_regular

_MAX_OBJECTS = 100_000
_KINDS = "biufc"
# What a description from a file may raise that is not of the form that it should have.
MALFORMED = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, OSError,
    RuntimeError,
)  # fmt: skip
# No compression, so that a dataset cannot be larger than the file that holds it.
_FILTERS = (h5py.h5z.FILTER_FLETCHER32, h5py.h5z.FILTER_SHUFFLE)


def damaged_error(
    path: Path, what: str, remedy: str = "take it from a backup, or write it anew"
) -> DamagedFileError:
    """The error for a file that is not what it should be: `what` is wrong with it, and the `remedy`."""
    return DamagedFileError(f"{path}: {what}; {remedy}")


def set_aside(path: Path, error: DamagedFileError, then: str) -> None:
    """Rename a damaged file, `a.h5` to `a.damaged`, and warn of it and of what happens `then`.

    Nothing where another process has done so before.

    **Errors:** the one given, where the file cannot be renamed.
    """
    aside = path.with_suffix(".damaged")
    try:
        path.replace(aside)
    except FileNotFoundError:
        return
    except OSError:
        raise error from None
    warn(f"{error}. It was set aside as {aside.name}; {then}")


def read_head_and_body(path: Path, head: int) -> tuple[bytes, bytes]:
    """The first `head` bytes of a file, and the rest.

    **Errors:** `FileError` when it does not exist, is no regular file, or cannot be read.
    """
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            return file.read(head), file.read()
    except FileNotFoundError as error:
        raise FileError(f"{path} is not there") from error
    except OSError as error:
        raise error if isinstance(error, FileError) else file_error(path, error) from error


def get_member(group: h5py.Group, name: str, path: Path) -> h5py.HLObject:
    """The object `name` of a group, which must lie in this very file.

    **Errors:** `DamagedFileError` when it is missing, or a link to elsewhere.
    """
    full_name = f"{group.name.rstrip('/')}/{name}"
    try:
        link = group.get(name, getlink=True)
        if link is None:
            raise damaged_error(path, f"{full_name} is missing")
        if not isinstance(link, h5py.HardLink):
            raise damaged_error(
                path, f"{full_name} is a link ({type(link).__name__}), which is never followed"
            )
        return group[name]
    except FileError:  # ours, from the checks above
        raise
    except (KeyError, OSError, RuntimeError, ValueError) as error:
        raise damaged_error(path, f"{full_name} cannot be read ({error})") from error


def get_dataset(group: h5py.Group, name: str, path: Path) -> h5py.Dataset:
    """The dataset `name` of a group, checked with `check_dataset`."""
    found = get_member(group, name, path)
    if not isinstance(found, h5py.Dataset):
        raise damaged_error(path, f"{group.name.rstrip('/')}/{name} is no dataset")
    check_dataset(found, path)
    return found


def check_dataset(found: h5py.Dataset, path: Path) -> None:
    """Refuse a dataset whose numbers are in other files, or that claims more of them than the file holds.

    **Errors:** `DamagedFileError`.
    """
    name = found.name
    try:
        creation = found.id.get_create_plist()
        layout, external_count = creation.get_layout(), creation.get_external_count()
        filters = [creation.get_filter(k)[0] for k in range(creation.get_nfilters())]
        # Python's integers: a hostile shape would overflow int64 and look small.
        size = int(np.prod(found.shape, dtype=object) * found.dtype.itemsize)
        kind, chunks = found.dtype.kind, found.chunks
        file_size = path.stat().st_size
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise damaged_error(path, f"{name} cannot be read ({error})") from error
    if external_count or layout == h5py.h5d.VIRTUAL:
        raise damaged_error(path, f"{name} keeps its numbers in other files, which are never read")
    if kind not in _KINDS:
        raise damaged_error(path, f"{name} holds {found.dtype}, no numbers")
    if set(filters) - set(_FILTERS):
        raise damaged_error(path, f"{name} has filters {filters} that physkit does not use")
    chunk = int(np.prod(chunks, dtype=object) * found.dtype.itemsize) if chunks else 0
    # libhdf5 allocates a whole chunk to read any of it. A dataset without frames has a chunk size and no
    # chunk yet, so a small file may honestly declare chunks larger than itself.
    if size > file_size or chunk > max(file_size, 2**24):
        raise damaged_error(
            path, f"{name} claims {size} bytes (chunks of {chunk}) in a file of {file_size}"
        )


def read_attribute(found: h5py.HLObject, name: str, path: Path) -> Any:
    """An attribute, after a check that it is no larger than its file.

    **Errors:** `DamagedFileError`; `KeyError` where there is none.
    """
    if name not in found.attrs:
        raise KeyError(name)
    stored = found.attrs.get_id(name)
    size = math.prod(stored.shape) * stored.dtype.itemsize
    if size > path.stat().st_size or stored.dtype.kind not in _KINDS + "S":
        raise damaged_error(path, f"the attribute {name} claims {size} bytes of {stored.dtype}")
    return found.attrs[name]


def read_count(found: h5py.HLObject, name: str, path: Path) -> int:
    """An attribute that is one whole number.

    **Errors:** `DamagedFileError`.
    """
    try:
        value = read_attribute(found, name, path)
    except KeyError as error:
        raise damaged_error(path, f"{found.name} does not say {name}") from error
    if np.ndim(value) or not np.issubdtype(np.asarray(value).dtype, np.integer):
        raise damaged_error(path, f"{found.name}: {name} reads {value!r}")
    return int(value)


def read_small_array(file: h5py.File, name: str, path: Path, file_size: int) -> np.ndarray:
    """All numbers of a dataset at the root of a file of `file_size` bytes, checked as by `get_dataset`.

    It uses libhdf5's low-level interface, which is several times as fast: a sweep reads thousands of files.

    **Errors:** `DamagedFileError`.
    """
    key = name.encode()
    try:
        if file.id.links.get_info(key).type != h5py.h5l.TYPE_HARD:
            raise damaged_error(path, f"/{name} is a link, which is never followed")
        found = h5py.h5d.open(file.id, key)
        creation, dtype, shape = found.get_create_plist(), found.dtype, found.shape
        is_elsewhere = creation.get_external_count() or creation.get_layout() == h5py.h5d.VIRTUAL
        if is_elsewhere or creation.get_nfilters() or dtype.kind not in "biufc":
            raise damaged_error(
                path, f"/{name} is no array of numbers without filters, all in this file"
            )
        if math.prod(shape) * dtype.itemsize > file_size:
            raise damaged_error(path, f"/{name} claims {shape} in a file of {file_size} bytes")
        values = np.empty(shape, dtype)
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
    unvisited, addresses = [file], set()
    while unvisited:
        group = unvisited.pop()
        try:
            names = list(group)
        except (OSError, RuntimeError) as error:
            raise damaged_error(path, f"{group.name} cannot be listed ({error})") from error
        for name in names:
            found = get_member(group, name, path)
            # An object may have several hard links, and hard links of groups may form a cycle.
            address = h5py.h5o.get_info(found.id).addr
            if address in addresses:
                continue
            addresses.add(address)
            if len(addresses) > _MAX_OBJECTS:
                raise damaged_error(path, f"it holds more than {_MAX_OBJECTS} objects")
            if isinstance(found, h5py.Group):
                unvisited.append(found)
