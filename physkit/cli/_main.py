"""`physkit VERB …`: the words of the command line, and who answers to them."""

import argparse
import os
from collections.abc import Sequence

import physkit

from . import _case, _demo, _info, _resume, _validate
from ._report import Report

_VERBS = {"demo": _demo, "validate": _validate, "info": _info, "run": _case, "resume": _resume}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; 0 if all went well, 1 if a check failed, 2 for wrong words, 130 for Ctrl-C."""
    given = _parser().parse_args(arguments)
    report = Report(quiet=given.quiet)
    verb = _VERBS[given.verb]
    if verb.NEEDS_DOUBLE:
        _ask_for_double_precision()
    try:
        return verb.run(given, report)
    except KeyboardInterrupt:
        report.problem("stopped")
        return 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="physkit", description="Simulations on differentiable arrays."
    )
    parser.add_argument("--version", action="version", version=f"physkit {physkit.__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, verb in _VERBS.items():
        line = verb.__doc__.split("\n")[0]
        own = verbs.add_parser(name, help=line, description=verb.__doc__)
        own.add_argument("--quiet", action="store_true", help="results only, no progress")
        verb.add_arguments(own)
    return parser


def _ask_for_double_precision() -> None:
    """Published digits need float64. JAX reads this when it is imported, which is still to come."""
    os.environ["JAX_ENABLE_X64"] = "1"
