"""The C files of this folder, with generated code in the place of their `$words`."""

import functools
import math
from collections.abc import Sequence
from importlib import resources
from string import Template

from jaxtyping import Array

from ._formulas import c_type


def c_source(file: str, code: dict[str, str | int]) -> str:
    """A file behind the headers that all need; `code` by word."""
    return _read("functions.h") + _read("threads.h") + Template(_read(file)).substitute(code)


def c_lines(statements: list[str], depth: int) -> str:
    """Statements, one a line, indented `depth` times."""
    return "\n".join(2 * depth * " " + s for s in statements)


def c_constants(constants: Sequence[Array], places: str, first: int = 0) -> list[str]:
    """The declarations of `k0`, `k1` …, which `Translation` names: of one member of a batch.

    - `places`: the C array with their addresses, from entry `first` on.
    """
    lines = []
    for k, array in enumerate(constants):
        size, kind = math.prod(array.shape), c_type(array.dtype)
        pointer = f"(const {kind} *){places}[{first + k}] + member * {size}"
        lines.append(
            f"const {kind} k{k} = *({pointer});"
            if size == 1
            else f"const {kind} *restrict k{k} = {pointer};"
        )
    return lines


@functools.cache
def _read(file: str) -> str:
    return resources.files(__package__).joinpath(file).read_text()
