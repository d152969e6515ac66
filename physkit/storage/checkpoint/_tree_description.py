"""Describe a tree as text by path, so that two programs can compare theirs: types, static fields, checksums.

A checkpoint stores the description of the tree it holds; a sweep stores the digest of its own. Two runs of
one program must give the same text, so nothing here may depend on addresses, hashes or import order.
"""

import dataclasses
import hashlib
import re
import types
import zlib
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np

from physkit.core import AbstractGrowable, PyTree, closure_values, is_random_key, printable

from ._version_vocabulary import TODAY, Vocabulary

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in the default `repr`
_MAX_TEXT = 200  # characters; of longer descriptions a digest stands for the rest
NUMBER_TYPES = (bool, int, float, complex)


def is_array(x: object) -> bool:
    """Whether `x` is an array, on a device or the host."""
    return isinstance(x, jax.Array | np.ndarray | np.generic)


def is_growable(x: object) -> bool:
    """Whether `x` is a cache whose capacity may differ."""
    return isinstance(x, AbstractGrowable)


def leaves_by_path(tree: PyTree, vocabulary: Vocabulary = TODAY) -> dict[str, PyTree]:
    """The leaves of a tree by path, as `.state.position`."""
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {vocabulary.path(tree, keys): leaf for keys, leaf in flat}


def growables_by_path(tree: PyTree, vocabulary: Vocabulary = TODAY) -> dict[str, AbstractGrowable]:
    """The growable nodes of a tree by path."""
    flat, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_growable)
    return {vocabulary.path(tree, keys): node for keys, node in flat if is_growable(node)}


def describe_tree(
    tree: PyTree,
    path: str = "",
    *,
    code: bool = False,
    vocabulary: Vocabulary = TODAY,
    describe: Callable[[object], str | None] = lambda value: None,
) -> dict[str, str]:
    """Everything of a tree but its numbers, by path: types, keys and static fields.

    **Arguments:**

    - `path`: of the tree itself.
    - `code`: whether functions are described by their bytecode, too, not only by name.
    - `vocabulary`: the names to use.
    - `describe`: the text of a static value, instead of that of `describe_static`; None for the latter.
    """

    def describe_child(value: PyTree, path: str) -> dict[str, str]:
        return describe_tree(value, path, code=code, vocabulary=vocabulary, describe=describe)

    def describe_value(value: object) -> str:
        text = describe(value)
        return vocabulary.text(describe_static(value, code)) if text is None else text

    if isinstance(tree, eqx.Module) and dataclasses.is_dataclass(tree):
        out = {path: vocabulary.class_name(type(tree))}
        for field in dataclasses.fields(tree):
            if field.metadata.get("label", False):
                continue  # a name by which users find a part changes nothing that is computed
            name = vocabulary.field_name(type(tree), field.name)
            if name is None:  # the file's version had no such field
                continue
            value = getattr(tree, field.name, None)
            if field.metadata.get("static", False):
                out[f"{path}.{name}"] = describe_value(value)
            else:
                out |= describe_child(value, f"{path}.{name}")
        return out
    if isinstance(tree, dict):
        # JAX sorts the keys of dicts, so that their order means nothing.
        out = {path: f"{type(tree).__name__} of {sorted(map(repr, tree))}"}
        for name, value in tree.items():
            out |= describe_child(value, f"{path}[{name!r}]")
        return out
    if isinstance(tree, tuple | list):
        names = getattr(tree, "_fields", None)
        name = type(tree).__name__
        out = {path: f"{vocabulary.classes.get(name, name)} of {len(tree)}"}
        for k, value in enumerate(tree):
            part = f".{vocabulary.field_name(type(tree), names[k])}" if names else f"[{k}]"
            out |= describe_child(value, path + part)
        return out
    if is_array(tree):  # shapes and dtypes are compared leaf by leaf: those of caches may differ
        return {}
    if isinstance(tree, NUMBER_TYPES):
        return {path: type(tree).__name__}
    return {path: describe_value(tree)}


def fingerprint(tree: PyTree, vocabulary: Vocabulary = TODAY) -> dict[str, str]:
    """`describe_tree` with the numbers: scalars as they are, arrays by checksum, functions by bytecode."""
    out = describe_tree(tree, code=True, vocabulary=vocabulary)
    for path, leaf in leaves_by_path(tree, vocabulary).items():
        if is_array(leaf):
            array = _host_array(leaf)
            # Scalars as they are, so that a difference shows both numbers and not two checksums.
            if array.size == 1:
                out[path] = f"{array.dtype}{list(array.shape)} {array.reshape(-1)[0]!s}"
            else:
                out[path] = f"{array.dtype}{list(array.shape)} {checksum(array, path):08x}"
        elif isinstance(leaf, NUMBER_TYPES):
            out[path] = repr(leaf)
    return out


def digest(description: dict[str, str]) -> str:
    """A description as 16 hexadecimal digits of its SHA-256."""
    lines = "\n".join(f"{k}\t{v}" for k, v in sorted(description.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def list_differences(here: dict[str, str], there: dict[str, str]) -> list[str]:
    """A line for each path where two descriptions differ; `there` is that of the file."""
    out = []
    for path in sorted(here.keys() | there.keys()):
        a, b = there.get(path, "nothing"), here.get(path, "nothing")
        if a != b:
            out.append(printable(f"{path or 'the whole'}: {a} in the file, {b} here"))
    return out


def checksum(array: np.ndarray, path: str) -> int:
    """CRC32 of an array's bytes that begins with its path, so that exchanged leaves are found."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return zlib.crc32(memoryview(flat) if flat.size else b"", zlib.crc32(path.encode()))


def describe_static(value: object, code: bool = False, depth: int = 8) -> str:
    """A static value as text that does not change from run to run.

    With `code`, a function is described by its bytecode and by the values of its closure, which may be
    functions again, or collections of them as in optax, to a depth of `depth`.
    """
    if code and isinstance(value, tuple | list | dict) and _holds_functions(value):
        parts = value.items() if isinstance(value, dict) else value
        return f"({', '.join(describe_static(part, True, depth) for part in parts)})"
    if isinstance(value, types.FunctionType | types.MethodType):
        function = getattr(value, "__func__", value)
        name = function.__qualname__
        if not code:
            return name
        values = _describe_values(function, depth - 1) if depth > 0 else ""
        return f"{name} {_hash_code(function.__code__)}{values}"
    if isinstance(value, type | types.BuiltinFunctionType):
        return value.__qualname__
    if isinstance(value, types.ModuleType):
        return value.__name__
    if is_array(value):
        array = _host_array(value)
        return f"{array.dtype}{list(array.shape)} {checksum(array, ''):08x}"
    if isinstance(value, set | frozenset):  # whose order differs from process to process
        value = sorted(map(repr, value))
    text = _ADDRESS.sub("", repr(value))
    if len(text) > _MAX_TEXT:
        text = f"{text[:_MAX_TEXT]}… {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return text


def _holds_functions(value: object) -> bool:
    """Whether a collection, or one within it, holds a function."""
    if isinstance(value, tuple | list | dict):
        parts = value.values() if isinstance(value, dict) else value
        return any(map(_holds_functions, parts))
    return isinstance(value, types.FunctionType | types.MethodType)


def _host_array(x: PyTree) -> np.ndarray:
    """An array, or the words of a random key, on the host."""
    return np.asarray(jax.random.key_data(x) if is_random_key(x) else x)


def _describe_values(function: types.FunctionType, depth: int) -> str:
    """Hash of a function's defaults and of the values of its closure; "" where there are none."""
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    values += closure_values(function).values()
    text = " ".join(describe_static(v, True, depth) for v in values)
    return f" {hashlib.sha256(text.encode()).hexdigest()[:8]}" if values else ""


def _hash_code(code: types.CodeType) -> str:
    """Hash of bytecode, names and constants, without line numbers and file names."""
    # The bytecode refers to names and constants by index only.
    parts = [code.co_code.hex(), repr(code.co_names)]
    parts += [
        _hash_code(c) if isinstance(c, types.CodeType) else describe_static(c)
        for c in code.co_consts
    ]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:8]
