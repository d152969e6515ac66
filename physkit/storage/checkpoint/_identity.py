"""What a computation is: its start, key, numbers and code as text, to be compared with those of a file."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from physkit.core import PyTree, is_random_key
from physkit.parallel import versions

from ._tree_description import (
    NUMBER_TYPES,
    checksum,
    describe_tree,
    digest,
    is_array,
    leaves_by_path,
)

# Of these the traced program may differ where the code does not.
_CODE_VERSIONS = ("physkit", "jax", "equinox", "platform")
_SKETCH = re.compile(r" ~(\S+),(\S+)$")
_SAME_BITS, _SAME_TO_ROUNDING, _OTHER = 0, 1, 2
_MAX_LINES = 5


@dataclasses.dataclass(frozen=True)
class Identity:
    """What a computation is, as text that is the same in every process that computes the same.

    - `sections`: by title ("the state", "the key", …), text by path.
    - `code`: digests of traced programs, by name. Functions are nowhere else: what they compute is there.
    - `versions`: those on which the digests of programs depend.
    """

    sections: Mapping[str, Mapping[str, str]]
    code: Mapping[str, str]
    versions: Mapping[str, str] = dataclasses.field(default_factory=lambda: code_versions())

    def as_table(self) -> dict[str, Any]:
        """Of types that JSON knows, for `from_table`."""
        return {
            "sections": {title: dict(lines) for title, lines in self.sections.items()},
            "code": dict(self.code),
            "versions": dict(self.versions),
        }

    @classmethod
    def from_table(cls, table: object) -> "Identity | None":
        """The identity in a file; None where there is none, as in files of version 0.2, or no sound one."""
        if not isinstance(table, dict):
            return None
        sections, code, found = (table.get(name) for name in ("sections", "code", "versions"))
        if (
            not isinstance(sections, dict)
            or not isinstance(code, dict)
            or not isinstance(found, dict)
        ):
            return None
        is_sound = all(map(_is_text, (code, found, *sections.values())))
        return cls(sections, code, found) if is_sound else None

    @property
    def digests(self) -> dict[str, str]:
        """A digest of each section and program: short, to be compared between processes."""
        sections = {title: digest(dict(lines)) for title, lines in self.sections.items()}
        return sections | {f"the code ({name})": text for name, text in self.code.items()}


@dataclasses.dataclass(frozen=True)
class IdentityChanges:
    """How two computations differ.

    - `sections`: by title, a line for each entry that differs by more than rounding.
    - `code`: names of the programs that differ.
    - `rounded`: entries that differ by no more than rounding does.
    - `unchecked`: what could not be compared, and why.
    """

    sections: Mapping[str, list[str]]
    code: tuple[str, ...]
    rounded: tuple[str, ...]
    unchecked: tuple[str, ...]

    def describe(self) -> list[str]:
        """What differs, in lines: numbers before code, which they may have changed."""
        lines = []
        for title, found in self.sections.items():
            lines += [f"{title}: {line}" for line in found[:_MAX_LINES]]
            if len(found) > _MAX_LINES:
                lines.append(f"{title}: and {len(found) - _MAX_LINES} more")
        return lines + [
            f"the code: the program traced from {name} is another (a function or method that it calls "
            "computes something else)"
            for name in self.code
        ]


def compare_identities(here: Identity, there: Identity, where: str = "file") -> IdentityChanges:
    """How the computation `here` differs from the one in a file (or `where` it is)."""
    sections: dict[str, list[str]] = {}
    rounded: list[str] = []
    unchecked: list[str] = []
    for title in dict.fromkeys([*here.sections, *there.sections]):
        a, b = here.sections.get(title), there.sections.get(title)
        if a is None or b is None:
            unchecked.append(f"{title} (not noted on both sides)")
            continue
        for path in sorted(a.keys() | b.keys()):
            one, other = a.get(path, "nothing"), b.get(path, "nothing")
            nearness = _compare(one, other)
            if nearness == _SAME_TO_ROUNDING:
                rounded.append(f"{title}{path}")
            elif nearness == _OTHER:
                line = f"{_without_sketch(other)} in the {where}, {_without_sketch(one)} here"
                sections.setdefault(title, []).append(f"{path} {line}".strip())
    versions = [
        f"{name} {there.versions.get(name)} → {here.versions.get(name)}"
        for name in _CODE_VERSIONS
        if there.versions.get(name) != here.versions.get(name)
    ]
    code: list[str] = []
    if versions:
        unchecked.append(f"the code ({', '.join(versions)}: programs of these cannot be compared)")
    else:
        common = [name for name in here.code if name in there.code]
        code = [name for name in common if here.code[name] != there.code[name]]
        if not common:
            unchecked.append("the code (it was traced for other devices)")
    return IdentityChanges(sections, tuple(code), tuple(rounded), tuple(unchecked))


def describe_numbers(
    tree: PyTree, path: str = "", *, ignore: tuple[str, ...] = ()
) -> dict[str, str]:
    """Structure, static fields and numbers of a tree, by path; functions are only said to be there.

    - `path`: of the tree itself. `ignore`: beginnings of paths that are left out.
    """
    out = describe_tree(tree, path, describe=_describe_value)
    for leaf_path, leaf in leaves_by_path(tree).items():
        if is_array(leaf):
            out[path + leaf_path] = describe_array(leaf)
        elif isinstance(leaf, NUMBER_TYPES):
            out[path + leaf_path] = repr(leaf)
    return {where: text for where, text in out.items() if not where.startswith(ignore)}


def describe_array(leaf: Any) -> str:
    """An array as text: few numbers in full, many by checksum, and a sketch that rounding hardly changes."""
    if is_random_key(leaf):
        words = np.asarray(jax.random.key_data(leaf))
        return f"{jax.random.key_impl(leaf)}{list(leaf.shape)} {_content(words)}"
    array = np.asarray(leaf)
    text = f"{array.dtype}{list(array.shape)} {_content(array)}"
    if not jax.numpy.issubdtype(array.dtype, np.inexact) or not array.size:
        return text
    flat = array.reshape(-1).astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    # Sum and projection in double precision: two numbers that two different arrays hardly share.
    weights = np.cos(0.7 * np.arange(flat.size) + 0.3)
    # Huge numbers may overflow: their sketch is infinite, their content is compared by itself.
    with np.errstate(over="ignore", invalid="ignore"):
        scale, projection = np.sqrt(np.sum(np.abs(flat) ** 2)), np.sum(flat * weights).real
    return f"{text} ~{scale:.12e},{projection:.12e}"


def code_versions() -> dict[str, str]:
    """The versions on which the text of a traced program depends."""
    found = versions() | {"equinox": eqx.__version__, "platform": jax.default_backend()}
    return {name: found[name] for name in _CODE_VERSIONS}


def _describe_value(value: object) -> str | None:
    """A static value where `describe_static` would name a function; None for all others."""
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    # What it computes is in the traced program, and what it is called changes nothing.
    return "a function" if callable(value) and not isinstance(value, type) else None


def _content(array: np.ndarray) -> str:
    if array.size == 1:
        return str(array.reshape(-1)[0])
    return str(array.reshape(-1).tolist()) if array.size <= 4 else f"{checksum(array, ''):08x}"


def _compare(one: str, other: str) -> int:
    """Whether two texts are of the same numbers."""
    if one == other:
        return _SAME_BITS
    a, b = _SKETCH.search(one), _SKETCH.search(other)
    kind = one.partition(" ")[0]
    if not a or not b or kind != other.partition(" ")[0]:
        return _OTHER
    # A few units in the last place; of double precision a sketch has fewer digits.
    tolerance = 2e-12 if kind.startswith(("float64", "complex128")) else 32 * 2.0**-23
    scale = max(float(a[1]), float(b[1]))
    distance = max(abs(float(x) - float(y)) for x, y in zip(a.groups(), b.groups(), strict=True))
    return _SAME_TO_ROUNDING if distance <= tolerance * scale else _OTHER


def _without_sketch(text: str) -> str:
    return _SKETCH.sub("", text)


def _is_text(table: object) -> bool:
    return isinstance(table, dict) and all(isinstance(x, str) for x in table.values())
