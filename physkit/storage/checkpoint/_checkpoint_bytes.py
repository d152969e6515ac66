"""The bytes of a checkpoint: a header with a checksum, then an HDF5 image of the arrays and a table."""

import contextlib
import json
import re
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.core import FileError, MismatchError

from .._hdf5_transaction import HDF5_VERSIONS
from .._untrusted_hdf5 import MALFORMED, damaged_error, get_dataset, read_head_and_body

FORMAT = 1
# libhdf5 looks for the beginning of its data at 0, 512, 1024, …: other programs open the file as it is.
HEADER_BYTES = 512
_HEADER = re.compile(rb"physkit-checkpoint (\d{1,9})\nlength=(\d{1,18})\ncrc32=([0-9a-f]{8})\n +\n")
_NATIVE_KINDS = "biufc"
_BLOCK_BYTES = 2**22  # by which the image grows in memory


def pack_checkpoint(arrays: dict[str, np.ndarray], table: dict[str, Any]) -> tuple[bytes, bytes]:
    """Arrays by name, and a table of types that JSON knows, as the parts of a file: header and HDF5 image."""
    # In memory: libhdf5 writes to no disk, which may be full, and the checksum is known before the first byte.
    with h5py.File(
        # libhdf5 takes files of one name for one file, although they are in memory: threads need their own.
        f"image-{secrets.token_hex(8)}",
        "w",
        driver="core",
        backing_store=False,
        block_size=_BLOCK_BYTES,
        libver=HDF5_VERSIONS,
    ) as file:
        for name, array in arrays.items():
            file.create_dataset(f"leaves/{name}", data=to_storable(array))
        text = json.dumps({**table, "format": FORMAT}, allow_nan=False).encode()
        file.create_dataset("table", data=np.frombuffer(text, np.uint8))
        file.flush()
        image = file.id.get_file_image()
    header = f"physkit-checkpoint {FORMAT}\nlength={len(image)}\ncrc32={zlib.crc32(image):08x}\n"
    return header.encode().ljust(HEADER_BYTES - 1) + b"\n", image


@contextlib.contextmanager
def open_checkpoint(path: Path) -> Iterator[tuple[dict[str, Any], h5py.Group, Path]]:
    """The table and the open HDF5 image of a checkpoint, and its path.

    Damaged files may crash libhdf5: it gets the bytes only after their length and checksum are found right.

    **Errors:** `FileError`, `DamagedFileError`; `MismatchError` for a file of a later format.
    """
    head, image = read_head_and_body(path, HEADER_BYTES)
    remedy = "use the checkpoint before it"
    header = _HEADER.fullmatch(head)
    if header is None:
        raise damaged_error(
            path, "it is not a checkpoint of physkit, or its beginning is damaged", remedy
        )
    if int(header[1]) > FORMAT:
        raise MismatchError(
            f"{path} has format {int(header[1])}, this physkit reads up to {FORMAT}: upgrade physkit"
        )
    if len(image) != int(header[2]):
        raise damaged_error(
            path, f"it is cut short: {len(image)} of {int(header[2])} bytes", remedy
        )
    if zlib.crc32(image) != int(header[3], 16):
        raise damaged_error(path, "its checksum is wrong: bytes have changed", remedy)
    try:
        file = h5py.File(h5py.h5f.open_file_image(image))
    except (OSError, RuntimeError, ValueError) as error:
        raise damaged_error(path, f"it is no HDF5 file ({error})", remedy) from error
    with file:
        yield _table(file, path), file, path


def _table(file: h5py.File, path: Path) -> dict[str, Any]:
    """The table, with all of its entries and of the right types: a checksum does not stop a forger.

    **Errors:** `DamagedFileError`.
    """
    try:
        table = json.loads(get_dataset(file, "table", path)[()].tobytes())
    except FileError:
        raise
    except MALFORMED as error:
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
    """`array` in a type that HDF5 knows: bfloat16 and the other types of `ml_dtypes` as unsigned integers."""
    if array.dtype.kind in _NATIVE_KINDS and array.dtype.isbuiltin == 1:
        return array
    return array.view(f"u{array.dtype.itemsize}")


def read_storable(group: h5py.Group, name: str, dtype: np.dtype, path: Path) -> np.ndarray:
    """The array `name` as it was before `to_storable`, where it can be viewed as `dtype`; the caller checks."""
    found = get_dataset(group, name, path)
    array = np.asarray(found[()])
    can_view = array.dtype != dtype and array.dtype.itemsize == dtype.itemsize
    return array.view(dtype) if can_view else array
