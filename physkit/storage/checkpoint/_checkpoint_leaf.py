"""One leaf of a checkpoint: the shape and type it must have, and its numbers from the files that hold them."""

from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import PyTree

from .._untrusted_hdf5 import damaged_error
from ._checkpoint_bytes import read_storable
from ._checkpoint_shards import CheckpointSource, assemble_rows
from ._tree_description import checksum, is_key

Number = bool | int | float | complex


def leaf_spec(leaf: PyTree) -> tuple[tuple[int, ...], np.dtype, str | None]:
    """Shape and dtype as stored, and the kind of random key."""
    if is_key(leaf):
        data = jax.eval_shape(jax.random.key_data, leaf)
        return data.shape, np.dtype(data.dtype), str(jax.random.key_impl(leaf))
    return tuple(leaf.shape), np.dtype(leaf.dtype), None


def describe_leaf(leaf: PyTree) -> str:
    """A leaf in a word, for errors: `float64[3, 2]`."""
    shape, dtype, key = leaf_spec(leaf)
    return f"{dtype}{list(shape)}" + (f" {key}" if key else "")


def shape_fits(given: Sequence[object], shape: tuple[int, ...], elastic: tuple[int, ...]) -> bool:
    """Whether an array of shape `given` may take the place of one of `shape`."""
    return len(given) == len(shape) and all(
        k in elastic or a == b for k, (a, b) in enumerate(zip(given, shape, strict=True))
    )


def read_array(
    sources: list[CheckpointSource], where: str, leaf: PyTree, elastic: tuple[int, ...]
) -> jax.Array | np.ndarray:
    """The stored array for the place of `leaf`, its rows gathered from all files of the checkpoint.

    **Errors:** `DamagedFileError`.
    """
    shape, dtype, key = leaf_spec(leaf)
    pieces = []
    for table, group, path in sources:
        row = table["leaves"].get(where, {})
        array = read_storable(group, str(row.get("name")), dtype, path)
        here = (
            row.get("shape") if row.get("rows") is None else [len(row["rows"]), *row["shape"][1:]]
        )
        if array.dtype != dtype or list(array.shape) != here:
            raise damaged_error(
                path, f"{where} is {array.dtype}{list(array.shape)}, not as its table says"
            )
        if not shape_fits(row["shape"], shape, elastic):
            raise damaged_error(path, f"{where} has shape {row['shape']}, expected {list(shape)}")
        if checksum(array, where) != row.get("crc32"):
            raise damaged_error(
                path, f"{where}: its checksum is wrong", "use the checkpoint before it"
            )
        pieces.append((row.get("rows"), array))
    whole = assemble_rows(pieces, sources[0][0]["leaves"][where]["shape"], where, sources[0][2])
    if key:
        return jax.random.wrap_key_data(jnp.asarray(whole), impl=jax.random.key_impl(leaf))
    return jnp.asarray(whole) if isinstance(leaf, jax.Array) else whole


def read_number(row: object, leaf: Number, where: str, path: Path) -> Number:
    """The stored Python number for the place of `leaf`.

    **Errors:** `DamagedFileError`.
    """
    try:
        kind, text = row
        value = {"True": True, "False": False}[text] if kind == "bool" else type(leaf)(text)
        if kind != type(leaf).__name__:
            raise ValueError(kind)
    except (TypeError, ValueError, KeyError) as error:
        raise damaged_error(
            path, f"{where} reads {row!r}, expected a {type(leaf).__name__}"
        ) from error
    return value
