"""What a tree is made of, in words that two programs can compare."""

import dataclasses
import hashlib
import re
import types
import zlib
from typing import Any

import equinox as eqx
import jax
import numpy as np

from physkit.core import AbstractGrowable

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MOST_TEXT = 200
NUMBER_TYPES = (bool, int, float, complex)


def is_array(x: Any) -> bool:
    """Whether `x` is an array, on a device or the host."""
    return isinstance(x, jax.Array | np.ndarray | np.generic)


def is_key(x: Any) -> bool:
    """Whether `x` is an array of typed random keys."""
    return isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def is_growable(x: Any) -> bool:
    """Whether `x` is a cache whose capacity may differ."""
    return isinstance(x, AbstractGrowable)


def leaves_by_path(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by path, as `.state.position`."""
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in flat}


def growables_by_path(tree: Any) -> dict[str, AbstractGrowable]:
    """The growable nodes of a tree by path."""
    flat, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_growable)
    return {jax.tree_util.keystr(path): node for path, node in flat if is_growable(node)}


def describe_tree(tree: Any, path: str = "", *, code: bool = False) -> dict[str, str]:
    """Everything of a tree but its numbers, by path: types, keys and static fields.

    With `code`, functions are told apart by what they do, not only by name.
    """
    if isinstance(tree, eqx.Module) and dataclasses.is_dataclass(tree):
        out = {path: type(tree).__qualname__}
        for field in dataclasses.fields(tree):
            if field.metadata.get("label", False):
                continue  # a name by which users find a part changes nothing that is computed
            value, where = getattr(tree, field.name, None), f"{path}.{field.name}"
            if field.metadata.get("static", False):
                out[where] = describe_static(value, code)
            else:
                out |= describe_tree(value, where, code=code)
        return out
    if isinstance(tree, dict):
        out = {path: f"{type(tree).__name__} of {sorted(map(repr, tree))}"}
        for name, value in tree.items():
            out |= describe_tree(value, f"{path}[{name!r}]", code=code)
        return out
    if isinstance(tree, tuple | list):
        names = getattr(tree, "_fields", None)
        out = {path: f"{type(tree).__name__} of {len(tree)}"}
        for k, value in enumerate(tree):
            out |= describe_tree(
                value, f"{path}.{names[k]}" if names else f"{path}[{k}]", code=code
            )
        return out
    if is_array(tree):
        return {}
    if isinstance(tree, NUMBER_TYPES):
        return {path: type(tree).__name__}
    return {path: describe_static(tree, code)}


def fingerprint(tree: Any) -> dict[str, str]:
    """`describe`, and the numbers, too: scalars as they are, arrays by checksum."""
    out = describe_tree(tree, code=True)
    for path, leaf in leaves_by_path(tree).items():
        if is_array(leaf):
            array = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
            if array.size == 1:
                out[path] = f"{array.dtype}{list(array.shape)} {array.reshape(-1)[0]!s}"
            else:
                out[path] = f"{array.dtype}{list(array.shape)} {checksum(array, path):08x}"
        elif isinstance(leaf, NUMBER_TYPES):
            out[path] = repr(leaf)
    return out


def digest(description: dict[str, str]) -> str:
    """One short word for a description."""
    lines = "\n".join(f"{k}\t{v}" for k, v in sorted(description.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def list_differences(here: dict[str, str], there: dict[str, str]) -> list[str]:
    """What differs between two descriptions, `there` being that of the file."""
    out = []
    for path in sorted(here.keys() | there.keys()):
        a, b = there.get(path, "nothing"), here.get(path, "nothing")
        if a != b:
            out.append(f"{path or 'the whole'}: {a} in the file, {b} here")
    return out


def checksum(array: np.ndarray, path: str) -> int:
    """CRC32 of an array's bytes *under its path*: two leaves cannot be exchanged."""
    whole = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return zlib.crc32(memoryview(whole) if whole.size else b"", zlib.crc32(path.encode()))


def describe_static(value: Any, code: bool = False, depth: int = 3) -> str:
    """A static value in words that do not change from run to run.

    With `code`, of functions what they do is told, and what they remember: to a depth of `depth` functions
    in functions.
    """
    if isinstance(value, types.FunctionType | types.MethodType):
        function = getattr(value, "__func__", value)
        name = function.__qualname__
        if not code:
            return name
        held = _held(function, depth - 1) if depth > 0 else ""
        return f"{name} {_code(function.__code__)}{held}"
    if isinstance(value, type | types.BuiltinFunctionType):
        return value.__qualname__
    if isinstance(value, types.ModuleType):
        return value.__name__
    if is_array(value):
        array = np.asarray(jax.random.key_data(value) if is_key(value) else value)
        return f"{array.dtype}{list(array.shape)} {checksum(array, ''):08x}"
    said = _ADDRESS.sub("", repr(value))
    if len(said) > _MOST_TEXT:
        said = f"{said[:_MOST_TEXT]}… {hashlib.sha256(said.encode()).hexdigest()[:16]}"
    return said


def _held(function: types.FunctionType, depth: int) -> str:
    """What a function has closed over, and its defaults; nothing where there is none."""
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not yet there
            continue
    said = " ".join(describe_static(v, True, depth) for v in values)
    return f" {hashlib.sha256(said.encode()).hexdigest()[:8]}" if values else ""


def _code(code: types.CodeType) -> str:
    parts = [code.co_code.hex(), repr(code.co_names)]
    parts += [
        _code(c) if isinstance(c, types.CodeType) else describe_static(c) for c in code.co_consts
    ]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:8]
