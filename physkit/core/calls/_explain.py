"""Why a call cannot be: an argument that is unknown, missing, or of another kind than is needed."""

import contextlib
import dataclasses
import difflib
import functools
import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np

from .._errors import DeclarationError, ParameterError, PhyskitError, ShapeError
from ._argument_names import ADVICE_FOR, ATTRIBUTES, SYNONYMS
from ._hints import (
    advice_for_value,
    allows,
    alternatives,
    article,
    describe_hint,
    is_array_type,
    is_real,
)
from .outside._code import is_users_frame

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_MAX_LENGTH = 60  # characters of a value in a message


def describe(value: Any) -> str:
    """What `value` is, in a few words, for a message."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, eqx.Module):
        return f"{article(type(value).__name__)} {type(value).__name__}"
    if isinstance(value, jax.Array | np.ndarray) and value.ndim:
        return f"an array {value.dtype}{list(value.shape)}"
    if inspect.isroutine(value):
        return "a function"
    if isinstance(value, dataclasses.Field):
        return (
            "param(…), data(…) or static(…), which declares a field in a class (x: Array = param(1.0)): give "
            "the value itself"
        )
    if isinstance(value, list | tuple | dict) and any(map(_is_module, _entries(value))):
        return f"a {type(value).__name__} of {', '.join(describe(x) for x in _entries(value))}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


def _entries(value: list | tuple | dict) -> list:
    return list(value.values() if isinstance(value, dict) else value)[:4]


def _is_module(value: Any) -> bool:
    return isinstance(value, eqx.Module)


def show_numbers(values: Any) -> str:
    """Numbers as one types them: 0.1 of single precision is 0.1, not 0.10000000149."""
    array = np.asarray(values)
    return np.array2string(array, separator=", ", threshold=10)


def find_name(name: str, available: Iterable[str]) -> str | None:
    """The one of `available` that `name` means: by a synonym, another case or spelling; None for none."""
    names = [n for n in available if not n.startswith("_")]
    for synonym in SYNONYMS.get(name, ()):
        if synonym in names:
            return synonym
    by_case = {n.lower(): n for n in names}
    if name.lower() in by_case:
        return by_case[name.lower()]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    return close[0] if close else None


def explain_call(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, whose errors name an argument that is unknown, missing or of another kind.

    Nothing is done before a call fails.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with explain_failure(function, function.__name__, args, kwargs):
            return function(*args, **kwargs)

    return call


def explain_class(cls: C) -> C:
    """A class (no Module: these explain themselves), whose construction explains wrong arguments."""
    build = cls.__init__

    @functools.wraps(build)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        with explain_failure(cls, cls.__name__, args, kwargs):
            build(self, *args, **kwargs)

    cls.__init__ = init
    return cls


@contextlib.contextmanager
def explain_failure(
    call: Callable,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    kinds: tuple[type[Exception], ...] = (Exception,),
) -> Iterator[None]:
    """Explain what the body raises, of these `kinds`, by the arguments of `call`; physkit's own errors pass."""
    try:
        yield
    except PhyskitError:
        raise  # says by itself what is wrong
    except kinds as error:
        explain_arguments(call, name, args, kwargs, error)
        raise


def explain_arguments(
    call: Callable,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception,
) -> None:
    """Raise what is wrong with the arguments of `call`, if that is why it raised `error`.

    **Errors:** `DeclarationError` for an argument that is unknown, missing or of another kind, `ShapeError` for
    one of another rank, `ParameterError` for a complex number instead of a real one.
    """
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        raise DeclarationError(_explain_signature(name, signature, args, kwargs)) from None
    hints = _type_hints(call)
    for argument, value in bound.arguments.items():
        kind, hint = signature.parameters[argument].kind, hints.get(argument)
        if hint is None or kind is inspect.Parameter.VAR_KEYWORD:
            continue
        for one in value if kind is inspect.Parameter.VAR_POSITIONAL else (value,):
            complaint = why_unsuitable(name, argument, one, hint)
            if complaint is not None:
                raise complaint from (None if isinstance(error, PhyskitError) else error)


def why_unsuitable(owner: str, name: str, value: Any, hint: Any) -> PhyskitError | None:
    """The error for a `value` that the annotation `hint` does not allow; None if it is fine or nobody knows.

    Only Modules, strings, functions, and ranks of arrays are checked: what else there is, is converted.
    """
    parts = alternatives(hint)
    verdicts = [allows(part, value) for part in parts]
    if not verdicts or any(verdict is not False for verdict in verdicts):
        return None
    wanted = " or ".join(
        dict.fromkeys(describe_hint(part) for part in parts if part is not type(None))
    )
    advice = advice_for_value(name, value, parts)
    text = f"{owner}: {name} must be {wanted}; got {describe(value)}{advice}"
    arrays = [part for part in parts if is_array_type(part)]
    if arrays and np.iscomplexobj(value) and all(is_real(part) for part in arrays):
        return ParameterError(text)
    return ShapeError(text) if arrays and hasattr(value, "shape") else DeclarationError(text)


@contextlib.contextmanager
def explain_traced_values(what: str = "a function") -> Iterator[None]:
    """Explain what JAX raises where Python needs the number of a traced value.

    **Errors:** `DeclarationError` that names the line of the user's code.
    """
    try:
        yield
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise DeclarationError(
            f"{what} is compiled, so that its values are not known while Python runs{_users_line(error)}: use "
            "jnp.sin for np.sin or math.sin, jnp.where(condition, a, b) for if, arrays for float(…) and int(…)"
        ) from error


def _users_line(error: BaseException) -> str:
    """Where in the code that is neither physkit's nor a library's an error comes from."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        path = frame.f_code.co_filename
        line = linecache.getline(path, number, frame.f_globals).strip()
        if line and is_users_frame(frame):
            return f" (line {number} of {path}: {line})"
    return ""


def explain_attribute(owner: Any, name: str) -> str:
    """Why `owner` has no attribute `name`, and which one was meant."""
    kind = type(owner).__name__
    text = f"{kind} has no {name!r}"
    advice = ATTRIBUTES.get(kind, {}).get(name)
    if advice is not None:
        return f"{text}: {advice}"
    available = sorted({n for n in dir(type(owner)) if not n.startswith("_")} | _fields(owner))
    state = getattr(owner, "state", None) if "state" in available else None
    # What is asked of a result or a snapshot is often meant of its state.
    for word in (name, *SYNONYMS.get(name, ())):
        if state is not None and hasattr(state, word):
            return f"{text}: it is .state.{word}"
    meant = find_name(name, available)
    if meant is not None:
        return f"{text}; did you mean {meant!r}?"
    advice = ATTRIBUTES["*"].get(name)
    return f"{text}: {advice}" if advice is not None else f"{text}; available: {available}"


def _explain_signature(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str:
    parameters = {k: p for k, p in signature.parameters.items() if k != "self"}
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [k for k, p in parameters.items() if p.kind not in variable]
    form = f"{name}({', '.join(_show_parameter(p) for p in parameters.values())})"
    unknown = [k for k in kwargs if k not in named]
    if unknown and not any(p.kind is variable[1] for p in parameters.values()):
        word = unknown[0]
        meant = find_name(word, [k for k in named if k not in kwargs])
        if meant is not None:
            return (
                f"{name} has no argument {word!r}; did you mean {meant}=…? It is called as {form}"
            )
        advice = ADVICE_FOR.get(word)
        hint = f": {advice}" if advice else ""
        return f"{name} has no argument {word!r}{hint}. It is called as {form}"
    positional = [k for k in named if parameters[k].kind is not inspect.Parameter.KEYWORD_ONLY]
    takes_any = any(p.kind is variable[0] for p in parameters.values())
    if len(args) > len(positional) and not takes_any:
        extra = ", ".join(describe(x) for x in args[len(positional) :])
        by_name = [k for k in named if k not in positional]
        hint = f"; {', '.join(by_name[:3])}, … are given by name" if by_name else ""
        summable = [isinstance(x, eqx.Module) and hasattr(x, "__add__") for x in args]
        if "force" in positional and sum(summable) > 1:
            hint = "; forces are summed: a + b"
        return (
            f"{name} takes {len(positional)} arguments by position, got {len(args)}: nothing is called for "
            f"{extra}{hint}. It is called as {form}"
        )
    twice = [k for k in positional[: len(args)] if k in kwargs]
    if twice:
        return f"{name} got {twice[0]!r} twice, by position and by name. It is called as {form}"
    given = {*positional[: len(args)], *kwargs}
    missing = [
        k for k in named if k not in given and parameters[k].default is inspect.Parameter.empty
    ]
    return f"{name} needs {' and '.join(missing)}. It is called as {form}"


def _show_parameter(p: inspect.Parameter) -> str:
    if p.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"*{p.name}"
    if p.kind is inspect.Parameter.VAR_KEYWORD:
        return "name=…"
    if p.default is inspect.Parameter.empty:
        return p.name if p.kind is not inspect.Parameter.KEYWORD_ONLY else f"{p.name}=…"
    simple = p.default is None or isinstance(p.default, bool | int | float | str)
    return f"{p.name}={p.default!r}" if simple else f"{p.name}=…"


def _type_hints(call: Callable) -> dict[str, Any]:
    # As they stand: physkit has no string annotations, and those of others are left alone.
    function = call.__init__ if isinstance(call, type) else call
    return dict(getattr(function, "__annotations__", {}))


def _fields(owner: Any) -> set[str]:
    fields = getattr(type(owner), "__dataclass_fields__", {})
    return {name for name in fields if not name.startswith("_")}


def explain_missing_name(module: str) -> Callable[[str], Any]:
    """A `__getattr__` for a module whose names users type: its error says which name was meant."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        inside = vars(sys.modules[module]).items()
        own = [n for n, x in inside if str(getattr(x, "__module__", "")).startswith(module)]
        here = [n for n in own if not n.startswith("_")]
        meant = find_name(name, here)
        hint = f"; did you mean {meant!r}?" if meant else f"; available: {sorted(here)}"
        raise AttributeError(f"{module} has no {name!r}{hint}")

    return get
