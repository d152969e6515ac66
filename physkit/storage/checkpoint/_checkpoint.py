"""Save a tree of arrays, bit by bit, as one checkpoint, and load it into a template of the running program.

The file gives numbers only. Structure, functions and static fields come from the template, after its
description is found to be the same as the file's: nothing is unpickled or executed.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np

from physkit.core import MismatchError, PyTree, explain_call, is_random_key
from physkit.parallel import addressable_rows

from .._atomic import to_path, write_atomically
from .._provenance import collect_provenance, provenance_changes
from .._untrusted_hdf5 import damaged_error, get_member
from ._cache_capacities import elastic_axes, is_count, set_capacities, static_capacities
from ._checkpoint_bytes import open_checkpoint, pack_checkpoint
from ._checkpoint_leaf import describe_leaf, leaf_spec, read_array, read_number, shape_fits
from ._checkpoint_shards import open_parts, read_devices
from ._identity import Identity
from ._tree_description import (
    NUMBER_TYPES,
    checksum,
    describe_tree,
    fingerprint,
    is_array,
    leaves_by_path,
    list_differences,
)
from ._version_vocabulary import NEW_FIELD, TODAY, Vocabulary, vocabulary_of

# From the devices that a file was written over, and the shapes of its leaves by path, to the template.
MakeTemplate: TypeAlias = Callable[[tuple[int, ...], dict[str, tuple[int, ...]]], PyTree]

_MAX_DIFFERENCES = 5  # listed in an error
_REMEDY = (
    "it belongs to another simulation or state. Continue with the script that wrote it, or start "
    "anew in another folder"
)


@dataclasses.dataclass(frozen=True)
class RestoredCheckpoint:
    """The contents of a checkpoint, and what has changed since it was written.

    - `tree`: what was saved, in the structure of the template.
    - `begin`, `step`: the first step of its run, and the step at which it was written.
    - `outputs`: the lengths of the run's files at that step.
    - `simulation_changes`: the parameters and functions of the simulation that differ now.
    - `environment_changes`: the versions, devices and precision that differ now.
    - `devices`: the grid of devices over which it was written; () for one.
    - `identity`: what the run was; None in files of version 0.2 and before. `version`: of physkit that
      wrote it.
    """

    path: Path
    tree: PyTree
    step: int
    begin: int
    outputs: dict[str, Any]
    simulation_changes: tuple[str, ...]
    environment_changes: tuple[str, ...]
    devices: tuple[int, ...] = ()
    identity: Identity | None = None
    version: str = ""


@explain_call
def save_checkpoint(
    path: str | Path,
    tree: PyTree,
    *,
    step: int = 0,
    sim: PyTree = None,
    begin: int = 0,
    outputs: dict[str, Any] | None = None,
    devices: tuple[int, ...] = (),
    set_id: str | None = None,
    parts: Sequence[str] = (),
    identity: Identity | None = None,
) -> None:
    """Write a tree of arrays, random keys and numbers to `path`, atomically.

    Leaves are stored under their path in the tree, in their own precision, each with a checksum;
    the static fields of the tree, versions and a fingerprint of `sim` are written with them.

    **Arguments:**

    - `tree`: any pytree; what is neither array nor number (functions, names) is described, not stored.
    - `step`, `begin`: the step of the run, and its first one.
    - `sim`: the simulation that the tree belongs to.
    - `outputs`: the lengths of the run's files at this step.
    - `devices`: the grid of devices that the tree is sharded over, if it is: then every array has a
      leading axis over them, of which this process writes its own rows.
    - `set_id`: where several processes write one checkpoint, a random id that all of its files have.
    - `parts`: names of the other processes' files, in the first process's file.
    - `identity`: what the run is, for `load_checkpoint` to give back.

    **Errors:** `DiskFullError`, `FileError`.
    """
    arrays: dict[str, np.ndarray] = {}
    rows: dict[str, Any] = {}
    numbers: dict[str, list[str]] = {}
    for leaf_path, leaf in leaves_by_path(tree).items():
        if is_array(leaf):
            # A random key is stored as its words, and the name of its generator beside them.
            key = str(jax.random.key_impl(leaf)) if is_random_key(leaf) else None
            data = jax.random.key_data(leaf) if key else leaf
            row_indices, array = (
                (None, np.asarray(data)) if set_id is None else addressable_rows(data)
            )
            name = f"{len(arrays):06d}"  # a path may hold "/", which HDF5 gives a meaning
            arrays[name] = array
            rows[leaf_path] = {
                "name": name,
                "shape": list(data.shape),
                "dtype": str(array.dtype),
                "crc32": checksum(array, leaf_path),
                "key": key,
                "rows": row_indices,
            }
        elif isinstance(leaf, NUMBER_TYPES):
            # As text: `repr` keeps every bit of a float, and JSON has no complex numbers.
            numbers[leaf_path] = [type(leaf).__name__, repr(leaf)]
    # These keys stand in files on disk: they stay as they are.
    table = {
        "leaves": rows,
        "numbers": numbers,
        "caches": static_capacities(tree),
        "structure": describe_tree(tree),
        "simulation": {} if sim is None else fingerprint(sim),
        "outputs": outputs or {},
        "provenance": collect_provenance(),
        "step": step,
        "begin": begin,
        "devices": list(devices),
        "together": set_id,
        "parts": list(parts),
        "identity": None if identity is None else identity.as_table(),
    }
    write_atomically(to_path(path), *pack_checkpoint(arrays, table))


@explain_call
def load_checkpoint(
    path: str | Path,
    template: PyTree,
    *,
    sim: PyTree = None,
    make_template: MakeTemplate | None = None,
) -> RestoredCheckpoint:
    """Load the tree in the file `path`, which must have the structure of `template`.

    Nothing is executed or unpickled: structure and functions are those of `template`, the file only
    gives numbers. Growable caches take the capacity that they have in the file. Files of earlier versions
    are compared in the names that those versions had.

    **Arguments:**

    - `template`: a tree of the same structure; its numbers do not matter.
    - `sim`: the simulation, to find out what of it has changed.
    - `make_template`: makes the template instead, from the devices that the file was written over and the
      shapes of its leaves by path.

    **Errors:** `DamagedFileError` for a file that is not as it was written; `MismatchError` for one of
    another structure, which lists the first leaves or fields that differ.
    """
    with contextlib.ExitStack() as open_files:
        table, file, path = open_files.enter_context(open_checkpoint(to_path(path)))
        vocabulary = vocabulary_of(table["provenance"])
        devices = read_devices(table, path)
        max_size = _size_of_files(table, path)
        if math.prod(devices) > max_size:
            raise damaged_error(path, f"it claims {devices} devices in {max_size} bytes")
        if make_template is not None:
            template = make_template(devices, _leaf_shapes(table, max_size, path, vocabulary))
        # Capacities first: they are static fields, which the comparison below wants to be equal.
        template = set_capacities(template, table["caches"], path, vocabulary, _REMEDY)
        elastic = elastic_axes(template, vocabulary)
        leaves = leaves_by_path(template, vocabulary)
        arrays = {
            leaf_path: leaf
            for leaf_path, leaf in leaves.items()
            if is_array(leaf) and not leaf_path.endswith(NEW_FIELD)
        }
        structure = describe_tree(template, vocabulary=vocabulary)
        _require_same_structure(path, structure, arrays, table, elastic)
        group = get_member(file, "leaves", path) if arrays else file
        sources = [(table, group, path), *open_parts(table, path, open_files)]
        values = []
        for leaf_path, leaf in leaves.items():
            if leaf_path in arrays:
                values.append(read_array(sources, leaf_path, leaf, elastic.get(leaf_path, ())))
            elif isinstance(leaf, NUMBER_TYPES):
                values.append(read_number(table["numbers"].get(leaf_path), leaf, leaf_path, path))
            else:
                # A function or a name, which the comparison found equal; or new since the file's version.
                values.append(leaf)
        changes = []
        if sim is not None:
            changes = list_differences(fingerprint(sim, vocabulary), table["simulation"])
        return RestoredCheckpoint(
            path=path,
            tree=jax.tree.unflatten(jax.tree.structure(template), values),
            step=table["step"],
            begin=table["begin"],
            outputs=table["outputs"],
            simulation_changes=tuple(changes),
            environment_changes=tuple(provenance_changes(table["provenance"])),
            devices=devices,
            identity=Identity.from_table(table.get("identity")),
            version=str(table["provenance"].get("physkit", "")),
        )


def read_checkpoint_table(path: str | Path) -> dict[str, Any]:
    """The table of a checkpoint: everything but its arrays. All bytes of the file are checked.

    **Errors:** `DamagedFileError`, `MismatchError` for a later format, `FileError`.
    """
    with open_checkpoint(to_path(path)) as (table, _, _):
        return table


def _size_of_files(table: dict[str, Any], path: Path) -> int:
    """Bytes of a checkpoint, the files of other processes included: no array of it has more."""
    names = table.get("parts") or []
    parts = [path.parent / name for name in names if isinstance(name, str) and "/" not in name]
    return sum(part.stat().st_size for part in [path, *parts] if part.is_file())


def _leaf_shapes(
    table: dict[str, Any], max_size: int, path: Path, vocabulary: Vocabulary = TODAY
) -> dict[str, tuple[int, ...]]:
    """Shapes of the leaves in a file by path, but those of a wrong form, which `load_checkpoint` reports.

    **Errors:** `DamagedFileError` for one of more numbers than the files have bytes.
    """
    shapes = {}
    for leaf_path, row in table["leaves"].items():
        shape = row.get("shape") if isinstance(row, dict) else None
        if isinstance(shape, list) and is_count(tuple(shape)):
            if math.prod(shape) > max_size:
                raise damaged_error(path, f"{leaf_path} claims {shape} in {max_size} bytes")
            shapes[vocabulary.state_path_today(leaf_path)] = tuple(shape)
    return shapes


def _require_same_structure(
    path: Path,
    structure: dict[str, str],
    arrays: dict[str, PyTree],
    table: dict[str, Any],
    elastic: dict[str, tuple[int, ...]],
) -> None:
    """Compare the structure, shapes and dtypes of file and template.

    **Errors:** `MismatchError` lists the differences; `DamagedFileError` for a table of another form.
    """
    faults = list_differences(structure, table["structure"])
    rows = table["leaves"]
    for leaf_path in sorted(arrays.keys() - rows.keys()):
        faults.append(f"{leaf_path}: not in the file, {describe_leaf(arrays[leaf_path])} here")
    for leaf_path in sorted(rows.keys() - arrays.keys()):
        faults.append(f"{leaf_path}: in the file, nothing here")
    # The state comes first: what differs there explains what differs in caches.
    for leaf_path in sorted(
        arrays.keys() & rows.keys(), key=lambda p: (not p.startswith(".state"), p)
    ):
        row, leaf = rows[leaf_path], arrays[leaf_path]
        if not isinstance(row, dict) or not isinstance(row.get("shape"), list):
            raise damaged_error(path, f"its table is wrong for {leaf_path}")
        shape, dtype, key = leaf_spec(leaf)
        fits = shape_fits(row["shape"], shape, elastic.get(leaf_path, ()))
        if fits and row.get("dtype") == str(dtype) and row.get("key") == key:
            continue
        there = f"{row.get('dtype')}{row['shape']}" + (f" {row['key']}" if row.get("key") else "")
        precisions = {row.get("dtype"), str(dtype)} == {"float32", "float64"}
        hint = " (JAX_ENABLE_X64 decides)" if precisions else ""
        faults.append(f"{leaf_path}: {there} in the file, {describe_leaf(leaf)} here{hint}")
    if faults:
        rest = len(faults) - _MAX_DIFFERENCES
        more = [f"… and {rest} more"] if rest > 0 else []
        first = faults[:_MAX_DIFFERENCES]
        raise MismatchError("\n  ".join([f"{path}: {_REMEDY}. What differs:", *first, *more]))
