"""Case files: `def case(…): return simulation, state`, whose arguments `--set` gives.

Imports stand inside functions: `physkit --help` should not wait for what only some verbs need.
"""

import argparse
import ast
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import physkit

from ._types import Simulation, State, Sweep

# What a setting is, by the type of its default.
_KINDS = {bool: "true or false", int: "a whole number", list: "a list", tuple: "a list"}


def add_case_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which case, with which settings and random key."""
    add_settings(parser, "dt=0.002")
    parser.add_argument("--seed", type=int, default=0, help="of the random key (default 0)")


def add_settings(parser: argparse.ArgumentParser, example: str) -> None:
    """Add the arguments that say which case, with which settings."""
    parser.add_argument("case", help="the file that defines case()")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="values",
        help=f"an argument of case(), e.g. --set {example}; may be repeated",
    )
    parser.add_argument("--double", action="store_true", help="calculate in float64")


def choose_precision(double: bool) -> None:
    """Ask for float64. JAX reads this when it is imported, which is still to come."""
    if double:
        os.environ["JAX_ENABLE_X64"] = "1"


def case_digest(case: Path) -> str:
    """A hash of the text of a case, which tells whether it has changed."""
    import hashlib

    return hashlib.sha256(case.read_bytes()).hexdigest()


def load_case(case: Path, values: Sequence[str]) -> tuple[Simulation, State]:
    """The simulation and state that a case file returns.

    **Errors:** `ValueError`, in one line, for a file without a case, one that fails, or values that it
    does not take.
    """
    returned = _call_case(case, values)

    from physkit.simulate import Simulation as SimulationClass

    is_pair = isinstance(returned, tuple) and len(returned) == 2
    if not is_pair or not isinstance(returned[0], SimulationClass):
        hint = " (`physkit sweep run` runs sweeps)" if _is_sweep(returned) else ""
        raise ValueError(
            f"{case}: case() must return (simulation, state){hint}; it returned {returned!r:.80}"
        )
    return returned


def load_sweep(case: Path, values: Sequence[str]) -> Sweep:
    """The sweep that a case file returns.

    **Errors:** `ValueError`, as of `load_case`.
    """
    returned = _call_case(case, values)
    if not _is_sweep(returned):
        raise ValueError(f"{case}: case() must return a pk.Sweep(…); it returned {returned!r:.80}")
    return returned


def _is_sweep(returned: Any) -> bool:
    from physkit.ensemble import Sweep as SweepClass

    return isinstance(returned, SweepClass)


def _call_case(case: Path, values: Sequence[str]) -> Any:
    import runpy

    if not case.is_file():
        raise ValueError(f"{case} is not there" if not case.exists() else f"{case} is not a file")
    physkit.use_compilation_cache()
    # Not `import`: the file may lie anywhere, under any name, and must not shadow a module.
    make = _call_with_line_of_error(case, lambda: runpy.run_path(str(case)).get("case"))
    if not callable(make):
        raise ValueError(f"{case} defines no function case()")
    settings = _settings(make, values)
    return _call_with_line_of_error(case, lambda: make(**settings))


def _call_with_line_of_error(case: Path, action: Callable[[], Any]) -> Any:
    """The result of `action`.

    **Errors:** `ValueError` with the line of the case file where it went wrong.
    """
    import traceback

    try:
        return action()
    except Exception as error:
        # The innermost frame in the case file: deeper ones are of physkit, and none of the user's lines.
        lines = [
            f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(case)
        ]
        # A syntax error of the case has no such frame, as nothing has run: it carries its line itself. One of a
        # file that the case imports has.
        is_own = isinstance(error, SyntaxError) and error.filename == str(case)
        line = error.lineno if is_own else (lines or [None])[-1]
        at = f", line {line}" if line else ""
        raise ValueError(f"{case}{at}: {type(error).__name__}: {error}") from error


def _settings(make: Callable[..., Any], values: Sequence[str]) -> dict[str, Any]:
    import inspect

    parameters = inspect.signature(make).parameters
    settings = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or name not in parameters:
            raise ValueError(f"--set {value}: case() takes NAME=VALUE for {sorted(parameters)}")
        settings[name] = _parse(text, parameters[name], value)
    # *args and **kwargs need no value.
    missing = [
        name
        for name, p in parameters.items()
        if p.default is p.empty
        and name not in settings
        and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if missing:
        raise ValueError(f"case() needs {missing}: give --set {missing[0]}=…")
    return settings


def _parse(text: str, parameter: Any, setting: str) -> Any:
    """`text` in the type of the default; without one, true or false, or a number, if it reads as one.

    Lists and tuples as Python writes them, `(64, 32)` or `64,32`.
    """
    default = None if parameter.default is parameter.empty else parameter.default
    try:
        # bool first, which Python counts among the integers.
        if isinstance(default, bool) or (default is None and text.lower() in ("true", "false")):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(default, int | float):
            number = float(text)
            return int(text) if isinstance(default, int) else number
        if isinstance(default, list | tuple):
            return type(default)(ast.literal_eval(text))
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        kind = _KINDS.get(type(default), "a number")
        raise ValueError(f"--set {setting}: case() takes {kind}, like {default}") from error
    if default is None:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
    return text
