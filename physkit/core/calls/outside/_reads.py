"""What functions read, and the functions that they call."""

import functools
import types
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import equinox as eqx

from ._code import (
    AttributeUse,
    attribute_use,
    default_values,
    generators_outside,
    is_generator,
    is_users_class,
    stored_attributes,
    users_functions,
    values_outside,
)
from ._digests import MAX_DEPTH, MAX_ENTRIES, digest_of_function, digest_of_numbers

# Methods that run before any program does.
_MAKERS = (
    "__init__",
    "__init_subclass__",
    "__new__",
    "__post_init__",
    "__setattr__",
    "__setstate__",
)


class _Value(NamedTuple):
    """What is read from outside.

    - `attributes`: of objects, by which it is reached: it counts if they are read, and not set.
    """

    name: str
    value: Any
    attributes: tuple[str, ...]


class Reads:
    """What functions read, and the functions that they call."""

    def __init__(self) -> None:
        self._values: list[_Value] = []
        self._called: list[types.FunctionType] = []
        # Methods of objects, by name: called where code asks for that name.
        self._methods: dict[str, list[types.FunctionType]] = {}
        self._seen: set[Any] = set()  # functions, and addresses of objects

    def digests(self) -> dict[str, Hashable]:
        """Digests of all that is read, by name."""
        use, found = _attribute_use(self._all_called()), {}
        for name, value, attributes in self._values:
            if any(x not in use.reads or x in use.sets for x in attributes):
                continue
            if isinstance(value, types.FunctionType):
                digest = digest_of_function(value)
            else:
                digest = digest_of_numbers(value, with_lists=not use.changes_lists)
            if digest is not None:
                # Two modules, or two functions that one function made, may use one name.
                number, unique = 2, name
                while unique in found:
                    unique, number = f"{name} ({number})", number + 1
                found[unique] = digest
        return found

    def generators(self) -> list[str]:
        """Names of NumPy's and Python's generators of random numbers that called functions draw from."""
        called = self._all_called()
        if any(_calls_back(function) for function in called):
            return []  # there they draw anew each time
        found = [name for function in called for name in generators_outside(function)]
        use = _attribute_use(called)
        found += [
            name
            for name, value, attributes in self._values
            if attributes and is_generator(value) and use.reads.issuperset(attributes)
        ]
        return found

    def add_function(self, function: types.FunctionType) -> None:
        """Add what a function reads that is called."""
        self._called.append(function)
        self._add_reads_of(function)

    def add_partial(self, function: functools.partial) -> None:
        """Add what a function of users reads, and the arguments that it is given beforehand."""
        for inner in users_functions(function.func):
            self.add_function(inner)
        given = dict(enumerate(function.args)) | function.keywords
        for name, value in given.items():
            self.add(f"argument {name} of partial", value)

    def add_class(self, cls: type) -> None:
        """Add what the methods of a class read, and attributes of the class itself."""
        for function in functions_of_class(cls):
            if function.__name__ in _MAKERS:
                self._add_reads_of(function)
            else:
                self.add_function(function)
        self._add_attributes("self", cls, MAX_DEPTH, ())

    def add(
        self, name: str, value: Any, depth: int = MAX_DEPTH, attributes: tuple[str, ...] = ()
    ) -> None:
        """Add a value that is read."""
        if depth == 0:
            return
        # Of an object those of its class.
        cls = value if isinstance(value, type) else type(value)
        functions = users_functions(value)
        self._called += functions
        if not functions:
            functions = [*functions_of_class(cls)]
            for function in functions:
                self._methods.setdefault(function.__name__, []).append(function)
        for function in functions:
            self._values.append(_Value(name, function, attributes))
            self._add_reads_of(function)
        if isinstance(value, types.FunctionType):
            return
        if isinstance(value, types.MethodType):
            self.add(name, value.__func__, depth - 1, attributes)
            self.add(f"{name}.__self__", value.__self__, depth - 1, attributes)
        elif isinstance(value, functools.partial):
            self.add(name, value.func, depth - 1, attributes)
            self.add(f"{name} with", (value.args, value.keywords), depth - 1, attributes)
        elif isinstance(value, dict | list | tuple) and len(value) <= MAX_ENTRIES:
            entries = value.values() if isinstance(value, dict) else value
            for entry in entries:
                if callable(entry):
                    self.add(name, entry, depth - 1, attributes)
        elif is_users_class(cls) and not isinstance(value, eqx.Module):
            self._add_attributes(name, value, depth, attributes)
            return
        self._values.append(_Value(name, value, attributes))

    def _add_attributes(
        self, name: str, owner: Any, depth: int, attributes: tuple[str, ...]
    ) -> None:
        """Add the attributes of an object or class."""
        if id(owner) in self._seen:
            return
        self._seen.add(id(owner))
        for attribute, value in stored_attributes(owner).items():
            if not hasattr(type(value), "__get__") and not attribute.startswith("__"):
                self.add(f"{name}.{attribute}", value, depth - 1, (*attributes, attribute))

    def _add_reads_of(self, function: types.FunctionType) -> None:
        if function in self._seen:
            return
        self._seen.add(function)
        for name, value in (values_outside(function) | default_values(function)).items():
            self.add(name, value)

    def _all_called(self) -> list[types.FunctionType]:
        """All functions that are called, methods of objects, too."""
        waiting = [*self._called]
        for name, functions in self._methods.items():
            # Python itself calls them: __call__, __getitem__, operators.
            if name.startswith("__") and name not in _MAKERS:
                waiting += functions
        found: dict[types.FunctionType, None] = {}
        while waiting:
            function = waiting.pop()
            if function not in found:
                found[function] = None
                reads = attribute_use(function.__code__).reads
                waiting += [x for name in reads for x in self._methods.get(name, ())]
        return list(found)


def _attribute_use(functions: list[types.FunctionType]) -> AttributeUse:
    uses = [attribute_use(function.__code__) for function in functions]
    return AttributeUse(
        frozenset().union(*(use.reads for use in uses)),
        frozenset().union(*(use.sets for use in uses)),
        any(use.changes_lists for use in uses),
    )


def _calls_back(function: types.FunctionType) -> bool:
    names = attribute_use(function.__code__).reads.union(function.__code__.co_names)
    return not names.isdisjoint({"pure_callback", "io_callback"})


def functions_of_class(cls: type) -> Iterator[types.FunctionType]:
    """The functions of users behind methods and properties of a class and of those that it inherits from."""
    for base in cls.__mro__:
        if not is_users_class(base):
            continue
        for member in vars(base).values():
            if isinstance(member, property):
                member = member.fget
            elif isinstance(member, functools.cached_property):
                member = member.func
            elif isinstance(member, classmethod | staticmethod):
                member = member.__func__
            yield from users_functions(member)
