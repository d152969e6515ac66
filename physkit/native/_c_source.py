"""The C files of this folder, with generated code in the place of their `$words`."""

import functools
from importlib import resources
from string import Template


def c_source(file: str, code: dict[str, str | int]) -> str:
    """A file behind the headers that all need; `code` by word."""
    return _read("functions.h") + _read("threads.h") + Template(_read(file)).substitute(code)


def c_lines(statements: list[str], depth: int) -> str:
    """Statements, one a line, indented `depth` times."""
    return "\n".join(2 * depth * " " + s for s in statements)


@functools.cache
def _read(file: str) -> str:
    return resources.files(__package__).joinpath(file).read_text()
