"""Packages whose names are imported on first use, so that scripts wait for nothing that they do not use."""

import ast
import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

from ._explain import find_name


def import_on_use(
    package: str,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package that imports its names `if TYPE_CHECKING`.

    What type checkers and readers see there is the one list of names: it is read here, and a name is imported
    from its file when it is first asked for. **Errors:** `AttributeError` that says which name was meant.
    """
    home = {}
    for block in ast.parse(pkgutil.get_data(package, "__init__.py") or b"").body:
        if isinstance(block, ast.If):
            for line in block.body:
                if isinstance(line, ast.ImportFrom):
                    home |= {alias.asname: (line.module, alias.name) for alias in line.names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(_explain_missing(package, name, list(home)))
        module, there = home[name]
        if module is None:  # a file of the package: `from . import _lattices as lattice`
            value = importlib.import_module(f"{package}.{there}")
        else:
            value = getattr(importlib.import_module(f"{package}.{module}"), there)
        setattr(sys.modules[package], name, value)  # the next access does not come here
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *home}), list(home)


def _explain_missing(package: str, name: str, names: list[str]) -> str:
    text = f"{package} has no {name!r}"
    if name.startswith("__"):  # `copy`, `inspect` and others probe for these
        return text
    meant = find_name(name, names)
    return f"{text}; did you mean {meant!r}?" if meant else f"{text}; available: {sorted(names)}"
