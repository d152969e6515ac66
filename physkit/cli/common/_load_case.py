"""Case files: `def case(…): return simulation, state`, whose arguments `--set` gives.

What only some verbs need is imported when they do: `physkit --help` should not wait.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def add_case_arguments(parser: argparse.ArgumentParser) -> None:
    """The words that say which case, with which settings and noise."""
    add_settings(parser, "dt=0.002")
    parser.add_argument("--seed", type=int, default=0, help="of the random key (default 0)")


def add_settings(parser: argparse.ArgumentParser, example: str) -> None:
    """The words that say which case, with which settings."""
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
    """What tells one text of a case from another."""
    import hashlib

    return hashlib.sha256(case.read_bytes()).hexdigest()


def load_case(case: Path, values: Sequence[str]) -> tuple[Any, Any]:
    """The simulation and state that a case file makes.

    **Errors:** `ValueError`, in one line, for a file without a case, one that fails, or values that it
    does not take.
    """
    made = _made(case, values)

    from physkit.simulate import Simulation

    if not isinstance(made, tuple) or len(made) != 2 or not isinstance(made[0], Simulation):
        hint = " (`physkit sweep run` carries out sweeps)" if _is_sweep(made) else ""
        raise ValueError(
            f"{case}: case() must return (simulation, state){hint}; it returned {made!r:.80}"
        )
    return made


def load_sweep(case: Path, values: Sequence[str]) -> Any:
    """The sweep that a case file makes.

    **Errors:** `ValueError`, as of `built`.
    """
    made = _made(case, values)
    if not _is_sweep(made):
        raise ValueError(f"{case}: case() must return a pk.Sweep(…); it returned {made!r:.80}")
    return made


def _is_sweep(made: Any) -> bool:
    from physkit.ensemble import Sweep

    return isinstance(made, Sweep)


def _made(case: Path, values: Sequence[str]) -> Any:
    import runpy

    if not case.is_file():
        raise ValueError(f"{case} is not there" if not case.exists() else f"{case} is not a file")
    make = _blamed(case, lambda: runpy.run_path(str(case)).get("case"))
    if not callable(make):
        raise ValueError(f"{case} defines no function case()")
    settings = _settings(make, values)
    return _blamed(case, lambda: make(**settings))


def _blamed(case: Path, work: Callable[[], Any]) -> Any:
    """`work` done; what goes wrong in it is said with its place in the case file."""
    import traceback

    try:
        return work()
    except Exception as error:
        lines = [
            f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(case)
        ]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
        at = f", line {line}" if line else ""
        raise ValueError(f"{case}{at}: {type(error).__name__}: {error}") from error


def _settings(make: Callable[..., Any], values: Sequence[str]) -> dict[str, Any]:
    import inspect

    known = inspect.signature(make).parameters
    found = {}
    for value in values:
        name, equals, said = value.partition("=")
        if not equals or name not in known:
            raise ValueError(f"--set {value}: case() takes NAME=VALUE for {sorted(known)}")
        found[name] = _read(said, known[name], value)
    missing = [
        name
        for name, p in known.items()
        if p.default is p.empty
        and name not in found
        and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if missing:
        raise ValueError(f"case() needs {missing}: give --set {missing[0]}=…")
    return found


def _read(said: str, parameter: Any, value: str) -> Any:
    """`said` as what the default is; as a number where there is none and it is one."""
    default = None if parameter.default is parameter.empty else parameter.default
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[said.lower()]
        if isinstance(default, int | float):
            number = float(said)
            return int(said) if isinstance(default, int) else number
    except (ValueError, KeyError) as error:
        kind = {bool: "true or false", int: "a whole number"}.get(type(default), "a number")
        raise ValueError(f"--set {value}: case() takes {kind}, like {default}") from error
    if default is None:
        for kind in (int, float):
            try:
                return kind(said)
            except ValueError:
                pass
    return said
