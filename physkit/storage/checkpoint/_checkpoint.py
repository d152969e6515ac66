"""Checkpoints: a tree of arrays, exactly, and read back into a tree of the running program's making."""

import contextlib
import dataclasses
import secrets
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from physkit.core import DamagedFileError, FileError, MismatchError, replace_fields
from physkit.parallel import ProcessGroup, addressable_rows, single_process

from .._atomic import TEMPORARY_PREFIX, make_folder, write_atomically
from .._provenance import collect_provenance, provenance_changes
from .._untrusted_hdf5 import damaged_error, get_member
from ._checkpoint_bytes import open_checkpoint, pack_checkpoint
from ._checkpoint_leaf import describe_leaf, leaf_spec, read_array, read_number, shape_fits
from ._checkpoint_shards import open_parts, part_name, read_devices, remove_orphaned_parts
from ._tree_description import (
    NUMBER_TYPES,
    checksum,
    describe_tree,
    fingerprint,
    growables_by_path,
    is_array,
    is_key,
    leaves_by_path,
    list_differences,
)

_MOST_CAPACITY = 2**31


@dataclasses.dataclass(frozen=True)
class RestoredCheckpoint:
    """What a checkpoint holds, and what is not as it was when it was written.

    `tree` is the tree; `begin` and `step` are where its run began and how far it was; `outputs` says
    how long its files were; `changes` and `surroundings` tell what differs of the simulation and of
    versions and devices.
    """

    path: Path
    tree: Any
    step: int
    begin: int
    outputs: dict[str, Any]
    simulation_changes: tuple[str, ...]
    environment_changes: tuple[str, ...]
    devices: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """A folder of checkpoints, and how often `run` writes one.

    **Arguments:**

    - `folder`: where they are; made if it is not there.
    - `seconds`: wall-clock time between two of them.
    - `blocks`: so many of the longest observer interval between two of them; overrides `seconds`.
    - `keep`: how many of the last ones are kept.
    """

    folder: str | Path
    seconds: float = 300.0
    blocks: int | None = None
    keep: int = 3

    def __post_init__(self):
        object.__setattr__(self, "folder", Path(self.folder))
        if self.keep < 1 or self.seconds < 0 or (self.blocks is not None and self.blocks < 1):
            raise FileError(f"checkpoints need keep, blocks ≥ 1 and seconds ≥ 0; got {self}")

    def paths(self) -> list[Path]:
        """Those that there are, newest first."""
        return sorted(Path(self.folder).glob("checkpoint-*.h5"), reverse=True)

    def save(
        self,
        tree: Any,
        step: int,
        *,
        sim: Any = None,
        begin: int = 0,
        outputs: Any = None,
        devices: tuple[int, ...] = (),
        us: ProcessGroup | None = None,
    ) -> Path:
        """Write one more, then remove the oldest beyond `keep`.

        In a job of several processes each writes the rows that it holds, and the first one the file
        that names them all, once they are there.
        """
        folder, us = Path(self.folder), single_process() if us is None else us
        make_folder(folder)
        path = folder / f"checkpoint-{step:015d}.h5"
        said = {"step": step, "sim": sim, "begin": begin, "outputs": outputs, "devices": devices}
        if us.process_count > 1:
            one = us.all_gather_object(secrets.token_hex(8), "a set of checkpoint files")[0]
            names = [part_name(step, k, us.process_count) for k in range(1, us.process_count)]
            if not us.is_first:
                save_checkpoint(folder / names[us.process_index - 1], tree, **said, set_id=one)
            us.all_gather_object(None, "checkpoint files written")
            said |= {"together": one, "parts": names}
        if us.is_first:
            save_checkpoint(path, tree, **said)
            for old in self.paths()[self.keep :]:
                old.unlink(missing_ok=True)
            remove_orphaned_parts(folder)
        us.all_gather_object(None, "checkpoint written")
        return path

    def restore(
        self,
        template: Any,
        *,
        sim: Any = None,
        like: Callable[..., Any] | None = None,
        us: ProcessGroup | None = None,
    ) -> RestoredCheckpoint | None:
        """The newest sound one read into `template`; None where there is none at all.

        A damaged one is set aside with a warning, and the one before it is read. For the devices that
        it was written over, and the shapes that it holds by path, `like(devices, shapes)` makes the
        template to take instead.

        **Errors:** `DamagedFileError` when all are damaged, `MismatchError` for another structure.
        """
        us = single_process() if us is None else us
        if us.process_count > 1 and not us.is_first:
            newest = us.all_gather_object(None, "the newest sound checkpoint")[0]
            if newest is None:
                return None
            path = Path(self.folder) / Path(newest).name
            return load_checkpoint(path, template, sim=sim, make_template=like)
        found = self._newest_sound(template, sim, like)
        us.all_gather_object(
            None if found is None else found.path.name, "the newest sound checkpoint"
        )
        return found

    def _newest_sound(self, template: Any, sim: Any, like: Any) -> RestoredCheckpoint | None:
        faults = []
        for path in self.paths():
            try:
                return load_checkpoint(path, template, sim=sim, make_template=like)
            except DamagedFileError as error:
                faults.append(str(error))
                aside = path.with_suffix(".damaged")
                path.replace(aside)
                warnings.warn(
                    f"{error}. It was set aside as {aside.name}; going back to the one before",
                    stacklevel=2,
                )
        if faults:
            raise DamagedFileError("no checkpoint is sound:\n  " + "\n  ".join(faults))
        return None

    def remove_leftovers(self) -> None:
        """Remove what a killed run left half written. Only for who holds the folder's lock."""
        for old in Path(self.folder).glob(f"{TEMPORARY_PREFIX}*"):
            old.unlink(missing_ok=True)
        remove_orphaned_parts(Path(self.folder))


def save_checkpoint(
    path: str | Path,
    tree: Any,
    *,
    step: int = 0,
    sim: Any = None,
    begin: int = 0,
    outputs: dict[str, Any] | None = None,
    devices: tuple[int, ...] = (),
    set_id: str | None = None,
    parts: Sequence[str] = (),
) -> None:
    """Write a tree of arrays, keys and numbers to `path`: as a whole, or not at all.

    Leaves are stored under their path in the tree, in their own precision, each with a checksum;
    the static fields of the tree, versions and a fingerprint of `sim` are written beside them.

    **Arguments:**

    - `tree`: any pytree; what is neither array nor number (functions, names) is noted, not stored.
    - `step`, `begin`: how far a run is, and where it began.
    - `sim`: the simulation that the tree belongs to.
    - `outputs`: how long the files are that go with it.
    - `devices`: the grid of devices that the tree is cut over, if it is: then every array has a
      leading axis over them, of which this process writes its own rows.
    - `together`, `parts`: what the files of one checkpoint have in common, and the other processes'.

    **Errors:** `DiskFullError`, `FileError`.
    """
    arrays: dict[str, np.ndarray] = {}
    rows: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    for where, leaf in leaves_by_path(tree).items():
        if is_array(leaf):
            key = str(jax.random.key_impl(leaf)) if is_key(leaf) else None
            whole = jax.random.key_data(leaf) if key else leaf
            own, array = (None, np.asarray(whole)) if set_id is None else addressable_rows(whole)
            name = f"{len(arrays):06d}"
            arrays[name] = array
            rows[where] = {
                "name": name,
                "shape": list(whole.shape),
                "dtype": str(array.dtype),
                "crc32": checksum(array, where),
                "key": key,
                "rows": own,
            }
        elif isinstance(leaf, NUMBER_TYPES):
            numbers[where] = [type(leaf).__name__, repr(leaf)]
    table = {
        "leaves": rows,
        "numbers": numbers,
        "caches": {where: _choices(node) for where, node in growables_by_path(tree).items()},
        "structure": describe_tree(tree),
        "simulation": {} if sim is None else fingerprint(sim),
        "outputs": outputs or {},
        "provenance": collect_provenance(),
        "step": step,
        "begin": begin,
        "devices": list(devices),
        "together": set_id,
        "parts": list(parts),
    }
    write_atomically(Path(path), *pack_checkpoint(arrays, table))


def load_checkpoint(
    path: str | Path,
    template: Any,
    *,
    sim: Any = None,
    make_template: Callable[..., Any] | None = None,
) -> RestoredCheckpoint:
    """The tree in the file `path`, which must be made like `template`.

    Nothing is executed or unpickled: structure and functions are those of `template`, the file only
    gives numbers. Growable caches take the capacity that they have in the file. `like(devices, shapes)`
    is asked for the template for the devices that the file is of, and the shapes in it by path.

    **Errors:** `DamagedFileError` for a file that is not as it was written; `MismatchError` for one of
    another structure, naming the first leaves or fields that differ.
    """
    with contextlib.ExitStack() as open_files:
        table, file, path = open_files.enter_context(open_checkpoint(Path(path)))
        devices = read_devices(table, path)
        if make_template is not None:
            template = make_template(devices, _shapes(table))
        template = _with_capacities(template, table["caches"], path)
        elastic = _elastic(template)
        here = describe_tree(template)
        found = leaves_by_path(template)
        wanted = {where: leaf for where, leaf in found.items() if is_array(leaf)}
        _need_same_structure(path, here, wanted, table, elastic)
        group = get_member(file, "leaves", path) if wanted else file
        sources = [(table, group, path), *open_parts(table, path, open_files)]
        values = []
        for where, leaf in found.items():
            if where in wanted:
                values.append(read_array(sources, where, leaf, elastic.get(where, ())))
            elif isinstance(leaf, NUMBER_TYPES):
                values.append(read_number(table["numbers"].get(where), leaf, where, path))
            else:
                values.append(leaf)
        tree = jax.tree.unflatten(jax.tree.structure(template), values)
        changes = list_differences(fingerprint(sim), table["simulation"]) if sim is not None else []
        return RestoredCheckpoint(
            path=path,
            tree=tree,
            step=table["step"],
            begin=table["begin"],
            outputs=table["outputs"],
            simulation_changes=tuple(changes),
            environment_changes=tuple(provenance_changes(table["provenance"])),
            devices=devices,
        )


def read_checkpoint_table(path: str | Path) -> dict[str, Any]:
    """What a checkpoint says of itself, its bytes having been found as they were written.

    **Errors:** `DamagedFileError`, `MismatchError` for a later format, `FileError`.
    """
    with open_checkpoint(Path(path)) as (table, _, _):
        return table


def _shapes(table: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of the leaves in a file by path; what is no shape is left to who reads the leaf."""
    shapes = {w: row.get("shape") for w, row in table["leaves"].items() if isinstance(row, dict)}
    return {
        w: tuple(s) for w, s in shapes.items() if isinstance(s, list) and all(map(_is_count, s))
    }


def _choices(node: Any) -> dict[str, Any]:
    """The static numbers of a growable node: part of its capacity."""
    return {
        field.name: getattr(node, field.name)
        for field in dataclasses.fields(node)
        if field.metadata.get("static", False) and _is_count(getattr(node, field.name))
    }


def _is_count(value: Any) -> bool:
    whole = lambda x: type(x) is int and 0 <= x < _MOST_CAPACITY
    return whole(value) or (isinstance(value, tuple) and all(map(whole, value)))


def _with_capacities(template: Any, choices: dict[str, Any], path: Path) -> Any:
    """`template` with its growable nodes' static numbers from the file."""
    nodes = growables_by_path(template)
    if set(nodes) != set(choices):
        missing = sorted(set(nodes) ^ set(choices))
        raise MismatchError(f"{path}: the growable caches differ: {missing}; {_RERUN}")
    made = {}
    for where, node in nodes.items():
        own, given = _choices(node), choices[where]
        given = given if isinstance(given, dict) else {}
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
        same = set(given) == set(own) and all(
            _is_count(v) and type(v) is type(own[k]) and np.size(v) == np.size(own[k])
            for k, v in given.items()
        )
        if not same:
            raise damaged_error(path, f"the capacity of {where} reads {given}, like {own} expected")
        made[where] = replace_fields(node, given) if given else node
    parts = iter(made.values())
    is_node = lambda x: any(x is node for node in nodes.values())
    return jax.tree.map(lambda x: next(parts) if is_node(x) else x, template, is_leaf=is_node)


_RERUN = (
    "it belongs to another simulation or state. Continue with the script that wrote it, or start "
    "anew in another folder"
)


def _need_same_structure(path, here, wanted, table, elastic) -> None:
    faults = list_differences(here, table["structure"])
    rows = table["leaves"]
    for where in sorted(wanted.keys() - rows.keys()):
        faults.append(f"{where}: not in the file, {describe_leaf(wanted[where])} here")
    for where in sorted(rows.keys() - wanted.keys()):
        faults.append(f"{where}: in the file, nothing here")
    for where in sorted(wanted.keys() & rows.keys(), key=lambda p: (not p.startswith(".state"), p)):
        row, leaf = rows[where], wanted[where]
        if not isinstance(row, dict) or not isinstance(row.get("shape"), list):
            raise damaged_error(path, f"its table is wrong for {where}")
        shape, dtype, key = leaf_spec(leaf)
        if (
            not shape_fits(row["shape"], shape, elastic.get(where, ()))
            or row.get("dtype") != str(dtype)
            or row.get("key") != key
        ):
            there = f"{row.get('dtype')}{row['shape']}" + (
                f" {row['key']}" if row.get("key") else ""
            )
            hint = ""
            if {row.get("dtype"), str(dtype)} == {"float32", "float64"}:
                hint = " (JAX_ENABLE_X64 decides)"
            faults.append(f"{where}: {there} in the file, {describe_leaf(leaf)} here{hint}")
    if faults:
        more = [f"… and {len(faults) - 5} more"] if len(faults) > 5 else []
        raise MismatchError("\n  ".join([f"{path}: {_RERUN}. What differs:", *faults[:5], *more]))


def _elastic(template: Any) -> dict[str, tuple[int, ...]]:
    """The axes along which leaves of growable caches may be longer or shorter in a file."""
    found = {}
    for where, node in growables_by_path(template).items():
        more = leaves_by_path(node.grow_to(2 * node.capacity + 8))
        for inner, leaf in leaves_by_path(node).items():
            pairs = enumerate(zip(leaf.shape, more[inner].shape, strict=True))
            found[where + inner] = tuple(k for k, (a, b) in pairs if a != b)
    return found
