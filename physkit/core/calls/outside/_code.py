"""Finds what functions read from outside themselves: closures, globals, and attributes of these by name."""

import dis
import functools
import inspect
import linecache
import os
import random
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_PACKAGE = str(Path(__file__).parents[3]) + os.sep
_INSTALLED = ("site-packages", "dist-packages", sysconfig.get_paths()["stdlib"])
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_CHANGES_OF_LISTS = frozenset(
    ("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort")
)
_CHANGES_OF_ENTRIES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_WITH_GENERATORS = ("numpy", "numpy.random", "random")
_MAX_WRAPPERS, _MAX_CODES = 10, 10_000
_NOTHING = object()


@functools.cache
def is_users_file(file: str) -> bool:
    """Whether code in that file is a user's: neither physkit's nor an installed package's."""
    return not file.startswith(_PACKAGE) and not any(part in file for part in _INSTALLED)


def is_users_frame(frame: types.FrameType) -> bool:
    """Whether a frame is of a user's code, a cell's or one that Python has read from its input among it."""
    code = frame.f_code
    return is_users_file(code.co_filename) and not _is_generated(code)


def _is_generated(code: types.CodeType) -> bool:
    """Whether a library has made the code, which has no file then."""
    file = code.co_filename
    # What Python reads from its input or after -c; functions that libraries make, as of dataclasses, are of
    # "<string>", too.
    is_typed = file.startswith("<stdin>") or (file == "<string>" and code.co_name == "<module>")
    if not file.startswith("<") or is_typed:
        return False
    # The linecache knows cells and sessions of IPython, and the code that beartype makes.
    return file.startswith("<@") or not linecache.getline(file, 1)


def is_users_class(value: Any) -> bool:
    """Whether it is a class of a user."""
    if not isinstance(value, type) or value.__module__ == "builtins":
        return False
    module = inspect.getmodule(value)
    return module is None or _is_users_module(module, without_file=value.__module__ == "__main__")


def users_functions(value: Any) -> list[types.FunctionType]:
    """The plain functions of users that a callable is made of: one more for each decorator."""
    found: list[types.FunctionType] = []
    for _ in range(_MAX_WRAPPERS):
        if isinstance(value, types.FunctionType) and is_users_file(value.__code__.co_filename):
            found.append(value)
        try:
            value = value.__wrapped__
        except Exception:
            break
    return found


def closure_values(function: types.FunctionType) -> dict[str, Any]:
    """Names and values of a function's closure, but for names that are not assigned yet."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def default_values(function: types.FunctionType) -> dict[str, Any]:
    """Names and values of the arguments that have defaults: lists among them may be filled with others."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    return dict(zip(names, defaults, strict=True)) | (function.__kwdefaults__ or {})


def values_outside(function: types.FunctionType) -> dict[str, Any]:
    """What a function's code looks up in its closure and among globals, by the names in the code.

    Of `params.g` the attribute, where `params` is an object, a class or a user's module that stores it; where
    it is computed, the object.
    """
    closure, found = closure_values(function), {}
    for is_in_closure, (name, *attributes) in _paths(function.__code__):
        value = (closure if is_in_closure else function.__globals__).get(name, _NOTHING)
        for attribute in attributes:
            part = _stored_attribute(value, attribute)
            if part is _NOTHING:
                break
            name, value = f"{name}.{attribute}", part
        if value is not _NOTHING:
            found[name] = value
    return found


def _stored_attribute(value: Any, name: str) -> Any:
    """An attribute that is stored as it is, so that to read it runs no code."""
    if isinstance(value, types.ModuleType) and not _is_users_module(value, without_file=False):
        return _NOTHING
    owners = value.__mro__ if isinstance(value, type) else (value, *type(value).__mro__)
    for owner in owners:
        stored = getattr(owner, "__dict__", None)
        if isinstance(stored, dict | types.MappingProxyType) and name in stored:
            # A method, or a property, of an object is computed from the whole of it.
            is_computed = hasattr(type(stored[name]), "__get__") and not isinstance(value, type)
            return _NOTHING if owner is not value and is_computed else stored[name]
    return _NOTHING


def _is_users_module(module: types.ModuleType, without_file: bool) -> bool:
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return without_file if file is None else is_users_file(file)


@functools.lru_cache(_MAX_CODES)
def _paths(code: types.CodeType) -> tuple[tuple[bool, tuple[str, ...]], ...]:
    """Names that code looks up outside, with the attributes that follow: if in the closure, and the names."""
    return tuple(dict.fromkeys(_iterate_paths(code)))


def _iterate_paths(code: types.CodeType) -> Iterator[tuple[bool, tuple[str, ...]]]:
    path: tuple[str, ...] = ()
    is_in_closure = False
    for instruction in dis.get_instructions(code):
        if path and instruction.opname in _ATTRIBUTES:
            path = (*path, instruction.argval)
            continue
        if path:
            yield is_in_closure, path
        is_in_closure = (
            instruction.opname == "LOAD_DEREF" and instruction.argval in code.co_freevars
        )
        is_read = is_in_closure or instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        path = (instruction.argval,) if is_read else ()
    # Functions within it: their closures hold what this one reads, or variables of its own.
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from _paths(x)


def generators_outside(function: types.FunctionType) -> dict[str, None]:
    """By which names a function's code draws random numbers of NumPy or Python."""
    closure, found = closure_values(function), {}
    for is_in_closure, (name, *attributes) in _paths(function.__code__):
        value = (closure if is_in_closure else function.__globals__).get(name)
        for attribute in attributes:
            if isinstance(value, types.ModuleType) and value.__name__ in _WITH_GENERATORS:
                name, value = f"{name}.{attribute}", getattr(value, attribute, None)
        # Functions of the modules are methods of a generator that is hidden in them.
        is_method = isinstance(value, types.BuiltinMethodType | types.MethodType)
        if is_generator(value.__self__ if is_method else value):
            found[name] = None
    return found


def is_generator(value: Any) -> bool:
    """Whether it draws random numbers, of NumPy or Python."""
    return isinstance(value, np.random.Generator | np.random.RandomState | random.Random)


class AttributeUse(NamedTuple):
    """Attributes that code reads and sets, by name, and whether it may change a list that is not its own."""

    reads: frozenset[str]
    sets: frozenset[str]
    changes_lists: bool


@functools.lru_cache(_MAX_CODES)
def attribute_use(code: types.CodeType) -> AttributeUse:
    """Of a code and of the functions within it."""
    reads, sets, changes_lists = set(), set(), False
    variables = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
    before = None
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        if instruction.opname in _ATTRIBUTES:
            reads.add(name)
            changes_lists |= name in _CHANGES_OF_LISTS and not _reads_one_of(before, variables)
        elif instruction.opname == "STORE_ATTR":
            sets.add(name)
        changes_lists |= instruction.opname in _CHANGES_OF_ENTRIES
        before = instruction
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            inner = attribute_use(x)
            reads, sets = reads | inner.reads, sets | inner.sets
            changes_lists |= inner.changes_lists
    return AttributeUse(frozenset(reads), frozenset(sets), changes_lists)


def _reads_one_of(instruction: dis.Instruction | None, variables: tuple[str, ...]) -> bool:
    """Whether an instruction reads one of a function's own variables."""
    # In newer versions of Python one instruction may store and read: STORE_FAST_LOAD_FAST.
    if instruction is None or "LOAD_FAST" not in instruction.opname:
        return False
    read = instruction.argval
    return (read[-1] if isinstance(read, tuple) else read) in variables


def stored_attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object or class of a user, with those of its classes."""
    classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
    found: dict[str, Any] = {}
    for cls in filter(is_users_class, reversed(classes)):
        found |= vars(cls)
    return found if isinstance(value, type) else found | getattr(value, "__dict__", {})
