"""Checkpoints: a tree of arrays, exactly, and read back into a tree of the running program's making."""

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import DamagedFileError, FileError, MismatchError, replaced

from ._durable import TEMPORARY, make_folder, write_whole
from ._image import pack, stored, unpacked
from ._provenance import changed, provenance
from ._safety import damaged, member
from ._structure import (
    NUMBERS,
    caches,
    checksum,
    describe,
    differences,
    fingerprint,
    is_array,
    is_key,
    leaves,
)

_MOST_CAPACITY = 2**31


@dataclasses.dataclass(frozen=True)
class Restored:
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
    changes: tuple[str, ...]
    surroundings: tuple[str, ...]


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
        self, tree: Any, step: int, *, sim: Any = None, begin: int = 0, outputs: Any = None
    ) -> Path:
        """Write one more, then remove the oldest beyond `keep`."""
        folder = Path(self.folder)
        make_folder(folder)
        path = folder / f"checkpoint-{step:015d}.h5"
        save_checkpoint(path, tree, step=step, sim=sim, begin=begin, outputs=outputs)
        for old in self.paths()[self.keep :]:
            old.unlink(missing_ok=True)
        return path

    def restore(self, template: Any, *, sim: Any = None) -> Restored | None:
        """The newest sound one read into `template`; None where there is none at all.

        A damaged one is set aside with a warning, and the one before it is read.

        **Errors:** `DamagedFileError` when all are damaged, `MismatchError` for another structure.
        """
        faults = []
        for path in self.paths():
            try:
                return load_checkpoint(path, template, sim=sim)
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

    def tidy(self) -> None:
        """Remove what a killed run left half written. Only for who holds the folder's lock."""
        for old in Path(self.folder).glob(f"{TEMPORARY}*"):
            old.unlink(missing_ok=True)


def save_checkpoint(
    path: str | Path,
    tree: Any,
    *,
    step: int = 0,
    sim: Any = None,
    begin: int = 0,
    outputs: dict[str, Any] | None = None,
) -> None:
    """Write a tree of arrays, keys and numbers to `path`: as a whole, or not at all.

    Leaves are stored under their path in the tree, in their own precision, each with a checksum;
    the static fields of the tree, versions and a fingerprint of `sim` are written beside them.

    **Arguments:**

    - `tree`: any pytree; what is neither array nor number (functions, names) is noted, not stored.
    - `step`, `begin`: how far a run is, and where it began.
    - `sim`: the simulation that the tree belongs to.
    - `outputs`: how long the files are that go with it.

    **Errors:** `DiskFullError`, `FileError`.
    """
    arrays: dict[str, np.ndarray] = {}
    rows: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    for where, leaf in leaves(tree).items():
        if is_array(leaf):
            key = str(jax.random.key_impl(leaf)) if is_key(leaf) else None
            array = np.asarray(jax.random.key_data(leaf) if key else leaf)
            name = f"{len(arrays):06d}"
            arrays[name] = array
            rows[where] = {
                "name": name,
                "shape": list(array.shape),
                "dtype": str(array.dtype),
                "crc32": checksum(array, where),
                "key": key,
            }
        elif isinstance(leaf, NUMBERS):
            numbers[where] = [type(leaf).__name__, repr(leaf)]
    table = {
        "leaves": rows,
        "numbers": numbers,
        "caches": {where: _choices(node) for where, node in caches(tree).items()},
        "structure": describe(tree),
        "simulation": {} if sim is None else fingerprint(sim),
        "outputs": outputs or {},
        "provenance": provenance(),
        "step": step,
        "begin": begin,
    }
    write_whole(Path(path), *pack(arrays, table))


def load_checkpoint(path: str | Path, template: Any, *, sim: Any = None) -> Restored:
    """The tree in the file `path`, which must be made like `template`.

    Nothing is executed or unpickled: structure and functions are those of `template`, the file only
    gives numbers. Growable caches take the capacity that they have in the file.

    **Errors:** `DamagedFileError` for a file that is not as it was written; `MismatchError` for one of
    another structure, naming the first leaves or fields that differ.
    """
    with unpacked(Path(path)) as (table, file, path):
        template = _with_capacities(template, table["caches"], path)
        elastic = _elastic(template)
        here = describe(template)
        found = leaves(template)
        wanted = {where: leaf for where, leaf in found.items() if is_array(leaf)}
        _need_same_structure(path, here, wanted, table, elastic)
        group = member(file, "leaves", path) if wanted else file
        values = []
        for where, leaf in found.items():
            if where in wanted:
                row = table["leaves"][where]
                values.append(_array(group, where, leaf, row, path, elastic.get(where, ())))
            elif isinstance(leaf, NUMBERS):
                values.append(_number(table["numbers"].get(where), leaf, where, path))
            else:
                values.append(leaf)
        tree = jax.tree.unflatten(jax.tree.structure(template), values)
        changes = differences(fingerprint(sim), table["simulation"]) if sim is not None else []
        return Restored(
            path=path,
            tree=tree,
            step=table["step"],
            begin=table["begin"],
            outputs=table["outputs"],
            changes=tuple(changes),
            surroundings=tuple(changed(table["provenance"])),
        )


def checkpoint_table(path: str | Path) -> dict[str, Any]:
    """What a checkpoint says of itself, its bytes having been found as they were written.

    **Errors:** `DamagedFileError`, `MismatchError` for a later format, `FileError`.
    """
    with unpacked(Path(path)) as (table, _, _):
        return table


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
    nodes = caches(template)
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
            raise damaged(path, f"the capacity of {where} reads {given}, like {own} expected")
        made[where] = replaced(node, given) if given else node
    parts = iter(made.values())
    is_node = lambda x: any(x is node for node in nodes.values())
    return jax.tree.map(lambda x: next(parts) if is_node(x) else x, template, is_leaf=is_node)


_RERUN = (
    "it belongs to another simulation or state. Continue with the script that wrote it, or start "
    "anew in another folder"
)


def _need_same_structure(path, here, wanted, table, elastic) -> None:
    faults = differences(here, table["structure"])
    rows = table["leaves"]
    for where in sorted(wanted.keys() - rows.keys()):
        faults.append(f"{where}: not in the file, {_kind(wanted[where])} here")
    for where in sorted(rows.keys() - wanted.keys()):
        faults.append(f"{where}: in the file, nothing here")
    for where in sorted(wanted.keys() & rows.keys(), key=lambda p: (not p.startswith(".state"), p)):
        row, leaf = rows[where], wanted[where]
        if not isinstance(row, dict) or not isinstance(row.get("shape"), list):
            raise damaged(path, f"its table is wrong for {where}")
        shape, dtype, key = _form(leaf)
        if (
            not _fits(row["shape"], shape, elastic.get(where, ()))
            or row.get("dtype") != str(dtype)
            or row.get("key") != key
        ):
            there = f"{row.get('dtype')}{row['shape']}" + (
                f" {row['key']}" if row.get("key") else ""
            )
            hint = ""
            if {row.get("dtype"), str(dtype)} == {"float32", "float64"}:
                hint = " (JAX_ENABLE_X64 decides)"
            faults.append(f"{where}: {there} in the file, {_kind(leaf)} here{hint}")
    if faults:
        more = [f"… and {len(faults) - 5} more"] if len(faults) > 5 else []
        raise MismatchError("\n  ".join([f"{path}: {_RERUN}. What differs:", *faults[:5], *more]))


def _form(leaf: Any) -> tuple[tuple[int, ...], np.dtype, str | None]:
    """Shape and dtype as stored, and the kind of random key."""
    if is_key(leaf):
        data = jax.eval_shape(jax.random.key_data, leaf)
        return data.shape, np.dtype(data.dtype), str(jax.random.key_impl(leaf))
    return tuple(leaf.shape), np.dtype(leaf.dtype), None


def _kind(leaf: Any) -> str:
    shape, dtype, key = _form(leaf)
    return f"{dtype}{list(shape)}" + (f" {key}" if key else "")


def _elastic(template: Any) -> dict[str, tuple[int, ...]]:
    """The axes along which leaves of growable caches may be longer or shorter in a file."""
    found = {}
    for where, node in caches(template).items():
        more = leaves(node.grown(2 * node.capacity + 8))
        for inner, leaf in leaves(node).items():
            pairs = enumerate(zip(leaf.shape, more[inner].shape, strict=True))
            found[where + inner] = tuple(k for k, (a, b) in pairs if a != b)
    return found


def _fits(given: Any, shape: tuple[int, ...], elastic: tuple[int, ...]) -> bool:
    return len(given) == len(shape) and all(
        k in elastic or a == b for k, (a, b) in enumerate(zip(given, shape, strict=True))
    )


def _array(group, where: str, leaf: Any, row: dict[str, Any], path: Path, elastic) -> Any:
    shape, dtype, key = _form(leaf)
    array = stored(group, str(row.get("name")), dtype, path)
    if array.dtype != dtype or list(array.shape) != row["shape"]:
        raise damaged(path, f"{where} is {array.dtype}{list(array.shape)}, not as its table says")
    if not _fits(array.shape, shape, elastic):
        raise damaged(path, f"{where} has shape {list(array.shape)}, expected {list(shape)}")
    if checksum(array, where) != row.get("crc32"):
        raise damaged(path, f"{where}: its checksum is wrong", "use the checkpoint before it")
    if key:
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    return jnp.asarray(array) if isinstance(leaf, jax.Array) else array


def _number(row: Any, leaf: Any, where: str, path: Path) -> Any:
    try:
        kind, said = row
        value = {"True": True, "False": False}[said] if kind == "bool" else type(leaf)(said)
        if kind != type(leaf).__name__:
            raise ValueError(kind)
    except (TypeError, ValueError, KeyError) as error:
        raise damaged(path, f"{where} reads {row!r}, expected a {type(leaf).__name__}") from error
    return value
