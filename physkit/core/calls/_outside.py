"""What functions read from outside themselves: closures, globals, and parts of the modules of users."""

import functools
import sysconfig
import types
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).parents[2])
_INSTALLED = ("site-packages", "dist-packages", sysconfig.get_paths()["stdlib"])


@functools.cache
def is_users_file(file: str) -> bool:
    """Whether code in that file is a user's: neither physkit's nor an installed package's."""
    return not file.startswith(_PACKAGE) and not any(part in file for part in _INSTALLED)


def is_users_function(value: Any) -> bool:
    """Whether it is a plain function of a user."""
    return isinstance(value, types.FunctionType) and is_users_file(value.__code__.co_filename)


def closure_values(function: types.FunctionType) -> dict[str, Any]:
    """Names and values of a function's closure, but for names that are not assigned yet."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def global_values(function: types.FunctionType) -> dict[str, Any]:
    """Names and values that a function's code looks up among globals; of users' modules, the parts it reads."""
    names, found = _names(function.__code__), {}
    for name in names:
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        if not isinstance(value, types.ModuleType):
            found[name] = value
        elif is_users_file(getattr(value, "__file__", None) or _PACKAGE):
            parts = [part for part in names if hasattr(value, part)]
            found |= {f"{name}.{part}": getattr(value, part) for part in parts}
    return found


@functools.cache
def _names(code: types.CodeType) -> tuple[str, ...]:
    """Names that code looks up outside, with those of the functions within it."""
    inner = [_names(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    return tuple(dict.fromkeys((*code.co_names, *(name for names in inner for name in names))))
