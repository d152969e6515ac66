"""The bytes of a checkpoint: an HDF5 image of arrays and a table, behind a header with its checksum."""

import contextlib
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.core import MismatchError

from .._untrusted_hdf5 import damaged_error, get_dataset, read_head_and_body

FORMAT = 1
HEADER_BYTES = 512  # where libhdf5 looks next for the beginning of a file
_WORDS = re.compile(rb"physkit-checkpoint (\d{1,9})\nlength=(\d{1,18})\ncrc32=([0-9a-f]{8})\n +\n")
_NATIVE = "biufc"
_BLOCK = 2**22


def pack_checkpoint(arrays: dict[str, np.ndarray], table: dict[str, Any]) -> tuple[bytes, bytes]:
    """Arrays by name, and a table for JSON, as the two parts of a file: header and HDF5 image."""
    with h5py.File(
        "image", "w", driver="core", backing_store=False, block_size=_BLOCK, libver=("v110", "v110")
    ) as file:
        for name, array in arrays.items():
            file.create_dataset(f"leaves/{name}", data=to_storable(array))
        text = json.dumps({**table, "format": FORMAT}, allow_nan=False).encode()
        file.create_dataset("table", data=np.frombuffer(text, np.uint8))
        file.flush()
        image = file.id.get_file_image()
    words = f"physkit-checkpoint {FORMAT}\nlength={len(image)}\ncrc32={zlib.crc32(image):08x}\n"
    return words.encode().ljust(HEADER_BYTES - 1) + b"\n", image


@contextlib.contextmanager
def open_checkpoint(path: Path) -> Iterator[tuple[dict[str, Any], h5py.Group, Path]]:
    """The table and the arrays of a checkpoint, and its path.

    libhdf5, which damaged files may crash, sees the bytes only once length and checksum are found right.

    **Errors:** `FileError`, `DamagedFileError`; `MismatchError` for a file of a later format.
    """
    head, image = read_head_and_body(path, HEADER_BYTES)
    remedy = "use the checkpoint before it"
    words = _WORDS.fullmatch(head)
    if words is None:
        raise damaged_error(
            path, "it is not a checkpoint of physkit, or its beginning is damaged", remedy
        )
    if int(words[1]) > FORMAT:
        raise MismatchError(
            f"{path} has format {int(words[1])}, this physkit reads up to {FORMAT}: upgrade physkit"
        )
    if len(image) != int(words[2]):
        raise damaged_error(path, f"it is cut short: {len(image)} of {int(words[2])} bytes", remedy)
    if zlib.crc32(image) != int(words[3], 16):
        raise damaged_error(path, "its checksum is wrong: bytes have changed", remedy)
    try:
        file = h5py.File(h5py.h5f.open_file_image(image))
    except (OSError, RuntimeError, ValueError) as error:
        raise damaged_error(path, f"it is no HDF5 file ({error})", remedy) from error
    with file:
        yield _table(file, path), file, path


def _table(file: h5py.File, path: Path) -> dict[str, Any]:
    try:
        table = json.loads(get_dataset(file, "table", path)[()].tobytes())
    except (ValueError, AttributeError, RecursionError, TypeError) as error:
        raise damaged_error(path, f"its table cannot be read ({error})") from error
    expected = {
        "leaves": dict, "numbers": dict, "caches": dict, "structure": dict, "simulation": dict,
        "outputs": dict, "provenance": dict, "step": int, "begin": int,
    }  # fmt: skip
    for name, kind in expected.items():
        if not isinstance(table, dict) or not isinstance(table.get(name), kind):
            raise damaged_error(path, f"its table has no {name}")
    return table


def to_storable(array: np.ndarray) -> np.ndarray:
    """`array` in a type that HDF5 knows; bfloat16 and its like as unsigned integers."""
    if array.dtype.kind in _NATIVE and array.dtype.isbuiltin == 1:
        return array
    return array.view(f"u{array.dtype.itemsize}")


def read_storable(group: h5py.Group, name: str, dtype: np.dtype, path: Path) -> np.ndarray:
    """The array `name`, as it was before `to_storable`."""
    found = get_dataset(group, name, path)
    array = np.asarray(found[()])
    return (
        array
        if array.dtype == dtype or array.dtype.itemsize != dtype.itemsize
        else array.view(dtype)
    )
