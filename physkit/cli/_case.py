"""Run a case: a file with `def case(…): return simulation, state`, whose arguments `--set` gives.

Frames and checkpoints go to the folder `--to`. Exit status 0: all steps are done; 75: stopped early by
SIGTERM, SIGUSR1 or the wall time, resume; 130: Ctrl-C.
"""

import argparse
import hashlib
import inspect
import json
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._report import Report

NEEDS_DOUBLE = False
RECORD = "case.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Words and options behind `physkit run`."""
    parser.add_argument("case", help="the file that defines case()")
    parser.add_argument(
        "--steps", type=int, required=True, help="a multiple of the longest interval"
    )
    parser.add_argument("--to", required=True, metavar="FOLDER", help="where frames are written")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="values")
    parser.add_argument("--seed", type=int, default=0, help="of the random key")
    parser.add_argument("--resume", action="store_true", help="go on, if there is a checkpoint")
    parser.add_argument("--double", action="store_true", help="calculate in float64")
    parser.add_argument("--wall-time", type=float, metavar="SECONDS")


def run(given: argparse.Namespace, report: Report) -> int:
    """Run a case file; its exit status tells a scheduler whether to try again."""
    if given.double:
        os.environ["JAX_ENABLE_X64"] = "1"
    case = Path(given.case).resolve()
    asked = {
        "case": str(case),
        "digest": digest(case) if case.is_file() else "",
        "steps": given.steps,
        "values": given.values,
        "seed": given.seed,
        "double": given.double,
    }
    return drive(asked, Path(given.to), given.resume, given.wall_time, report)


def drive(
    asked: dict[str, Any], to: Path, resume: bool, wall_time: float | None, report: Report
) -> int:
    """Run what was asked for; 1 and a message for what goes wrong on the way."""
    import jax

    import physkit

    try:
        simulation, state = _built(Path(asked["case"]), asked["values"])
    except (ValueError, OSError, SyntaxError) as error:
        report.problem(str(error))
        return 2
    try:
        # Written before the run takes the folder: it must be there if the run is killed.
        if not resume and (to / RECORD).exists():
            raise physkit.FileError(f"{to} holds a run: --resume goes on with it")
        to.mkdir(parents=True, exist_ok=True)
        (to / RECORD).write_text(json.dumps(asked, indent=1))
        done = physkit.run(
            simulation,
            state,
            asked["steps"],
            key=jax.random.key(asked["seed"]),
            to=to,
            resume=resume,
            wall_time=wall_time,
            progress=not report.quiet,
        )
    except (physkit.PhyskitError, OSError) as error:
        report.problem(str(error))
        return 1
    report.result(repr(done))
    return done.exit_status


def digest(case: Path) -> str:
    """What tells one text of a case from another."""
    return hashlib.sha256(case.read_bytes()).hexdigest()


def _built(case: Path, values: list[str]) -> tuple[Any, Any]:
    """The simulation and state that a case file makes.

    **Errors:** `ValueError` for a file without a case, or for values that it does not take.
    """
    if not case.is_file():
        raise ValueError(f"{case} is not there")
    make = runpy.run_path(str(case)).get("case")
    if not callable(make):
        raise ValueError(f"{case} defines no function case()")
    return make(**_settings(make, values))


def _settings(make: Callable[..., Any], values: list[str]) -> dict[str, Any]:
    known = inspect.signature(make).parameters
    found = {}
    for value in values:
        name, equals, said = value.partition("=")
        if not equals or name not in known:
            raise ValueError(f"--set {value}: case() takes NAME=VALUE for {sorted(known)}")
        found[name] = _read(said, known[name].default, value)
    return found


def _read(said: str, default: Any, value: str) -> Any:
    """`said` as what the default is."""
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[said.lower()]
        if isinstance(default, int | float):
            number = float(said)
            return int(said) if isinstance(default, int) else number
    except (ValueError, KeyError) as error:
        raise ValueError(f"--set {value}: a {type(default).__name__} like {default}") from error
    return said
