"""One leaf of a checkpoint: compare its shape and dtype, and read it from the files that hold its rows."""

from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from physkit.core import PyTree, as_device_array, is_random_key

from .._untrusted_hdf5 import damaged_error
from ._checkpoint_bytes import read_storable
from ._checkpoint_shards import CheckpointSource, assemble_rows
from ._tree_description import checksum

Number = bool | int | float | complex


def leaf_spec(leaf: PyTree) -> tuple[tuple[int, ...], np.dtype, str | None]:
    """Shape and dtype of the stored array, and the generator of a random key; None where it is no key."""
    if is_random_key(leaf):
        data = jax.eval_shape(jax.random.key_data, leaf)
        return data.shape, np.dtype(data.dtype), str(jax.random.key_impl(leaf))
    return tuple(leaf.shape), np.dtype(leaf.dtype), None


def describe_leaf(leaf: PyTree) -> str:
    """A leaf as text for errors: `float64[3, 2]`."""
    shape, dtype, key = leaf_spec(leaf)
    return f"{dtype}{list(shape)}" + (f" {key}" if key else "")


def shape_fits(given: Sequence[object], shape: tuple[int, ...], elastic: tuple[int, ...]) -> bool:
    """Whether an array of shape `given` may replace one of `shape`: equal but for the `elastic` axes."""
    return len(given) == len(shape) and all(
        k in elastic or a == b for k, (a, b) in enumerate(zip(given, shape, strict=True))
    )


def read_array(
    sources: list[CheckpointSource], leaf_path: str, leaf: PyTree, elastic: tuple[int, ...]
) -> jax.Array | np.ndarray:
    """The stored array that replaces `leaf`, its rows gathered from all files of the checkpoint.

    **Arguments:** `sources`: the files, the first one's first. `elastic`: axes whose length may differ.

    **Errors:** `DamagedFileError`.
    """
    shape, dtype, key = leaf_spec(leaf)
    pieces = []
    for table, group, path in sources:
        row = table["leaves"].get(leaf_path, {})
        array = read_storable(group, str(row.get("name")), dtype, path)
        stored_shape = (
            row.get("shape") if row.get("rows") is None else [len(row["rows"]), *row["shape"][1:]]
        )
        if array.dtype != dtype or list(array.shape) != stored_shape:
            raise damaged_error(
                path, f"{leaf_path} is {array.dtype}{list(array.shape)}, not as its table says"
            )
        if not shape_fits(row["shape"], shape, elastic):
            raise damaged_error(
                path, f"{leaf_path} has shape {row['shape']}, expected {list(shape)}"
            )
        if checksum(array, leaf_path) != row.get("crc32"):
            raise damaged_error(
                path, f"{leaf_path}: its checksum is wrong", "use the checkpoint before it"
            )
        pieces.append((row.get("rows"), array))
    array = assemble_rows(
        pieces, sources[0][0]["leaves"][leaf_path]["shape"], leaf_path, sources[0][2]
    )
    if key:
        return jax.random.wrap_key_data(as_device_array(array), impl=jax.random.key_impl(leaf))
    return as_device_array(array) if isinstance(leaf, jax.Array) else array


def read_number(row: object, leaf: Number, leaf_path: str, path: Path) -> Number:
    """The stored Python number that replaces `leaf`.

    **Arguments:** `row`: `[type, text]` from the table, which is not trusted.

    **Errors:** `DamagedFileError`.
    """
    try:
        kind, text = row
        # `bool("False")` is True.
        value = {"True": True, "False": False}[text] if kind == "bool" else type(leaf)(text)
        if kind != type(leaf).__name__:
            raise ValueError(kind)
    except (TypeError, ValueError, KeyError) as error:
        raise damaged_error(
            path, f"{leaf_path} reads {row!r}, expected a {type(leaf).__name__}"
        ) from error
    return value
