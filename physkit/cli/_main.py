"""`physkit VERB …`: parse the command line, run the verb, turn errors into exit statuses."""

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import physkit

from .common._report import Report, message_lines
from .demo import _demo
from .new import _new
from .sweep import _sweep
from .verbs import (
    _animate,
    _check,
    _diagnose,
    _doctor,
    _export,
    _info,
    _plot,
    _resume,
    _run,
    _validate,
    _write_report,
)

# Each verb is a module with a docstring (its help), NEEDS_DOUBLE, EXAMPLES, add_arguments and run. None of
# them imports JAX at its top: `--help` and mistyped arguments should answer at once.
_VERBS: dict[str, Any] = {
    "demo": _demo,
    "new": _new,
    "check": _check,
    "run": _run,
    "resume": _resume,
    "sweep": _sweep,
    "info": _info,
    "plot": _plot,
    "animate": _animate,
    "report": _write_report,
    "export": _export,
    "diagnose": _diagnose,
    "validate": _validate,
    "doctor": _doctor,
}

_ABOUT = """\
Simulations on differentiable arrays.

A case file defines `def case(): return simulation, state`. Then:

  physkit new oscillator                      a small project to begin with
  physkit check case.py                       how much memory and time it will take
  physkit run case.py --steps 10000 --to out  run it; frames and checkpoints go to out/
  physkit resume out                          go on after a kill, to the same bits
  physkit info out                            what is there, and is it sound?
  physkit plot out                            a picture of everything recorded
  physkit report out                          all of it in one HTML file
"""
_EXIT_INTERRUPTED = 130  # core.EXIT_INTERRUPTED, without waiting for JAX
_EXIT_STATUSES = """\
exit status: 0 all is well · 1 something went wrong, or is not as it should be · 2 wrong arguments or
files · 75 stopped early by a signal or the wall time: resume · 130 Ctrl-C

`physkit VERB --help` shows examples. Documentation: docs/command-line.md
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; its exit status (see `physkit --help`)."""
    parser = _make_parser()
    # Before parsing, which would refuse a line that is still being typed.
    _offer_completion(parser)
    args = parser.parse_args(arguments)
    report = Report(quiet=args.quiet, json=getattr(args, "json", False))
    verb = _VERBS[args.verb]
    # Before the verb runs: it imports JAX, which reads the environment then.
    if verb.NEEDS_DOUBLE:
        _ask_for_double_precision()
    try:
        with _short_warnings():
            return verb.run(args, report)
    except KeyboardInterrupt:
        report.error("interrupted")
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe. At exit Python flushes standard output once more,
        # which would raise again: send that to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        # Those of the system, and physkit's own about files, which are OSErrors, too.
        report.error(str(error))
        return _exit_status_of(error)
    except ValueError as error:
        if not _is_physkit_error(error):
            raise
        # A value that physkit refuses is a wrong argument.
        report.error(str(error))
        return 2
    except Exception as error:
        if not _is_physkit_error(error):
            # A defect of this package, or of the case: its traceback is needed.
            raise
        report.error(str(error))
        return 1


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Show warnings of physkit as its errors are shown, with the line of the case where there is one."""
    before = warnings.formatwarning
    # In an interactive session the first argument is empty.
    commands = (sys.argv[0] or "-", os.path.dirname(physkit.__file__) + os.sep)

    def format_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        if not category.__module__.startswith("physkit."):
            return before(message, category, filename, lineno, line)
        place = "" if filename.startswith(commands) else f" (line {lineno} of {filename})"
        return f"physkit: warning: {message_lines(f'{message}{place}')}\n"

    warnings.formatwarning = format_warning
    try:
        yield
    finally:
        warnings.formatwarning = before


def _is_physkit_error(error: Exception) -> bool:
    # physkit.core imports JAX: only once something has gone wrong.
    from physkit.core import PhyskitError

    return isinstance(error, PhyskitError)


def _exit_status_of(error: OSError) -> int:
    """2 for files that are not what was meant, 1 for what went wrong with the right ones."""
    from physkit.core import DiskFullError, FileInUseError

    return 1 if isinstance(error, DiskFullError | FileInUseError) else 2


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="physkit",
        description=_ABOUT,
        epilog=_EXIT_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"physkit {physkit.__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    for name, verb in _VERBS.items():
        summary = verb.__doc__.split("\n")[0]
        verb_parser = verbs.add_parser(
            name,
            help=summary,
            description=verb.__doc__,
            epilog=f"examples:\n{verb.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_arguments(verb_parser)
        verb_parser.add_argument("--quiet", action="store_true", help="results only, no progress")
    return parser


def _offer_completion(parser: argparse.ArgumentParser) -> None:
    """Answer the shell that completes a word, where argcomplete is installed."""
    # The shell sets this variable, calls the program and reads words; argcomplete then exits.
    if "_ARGCOMPLETE" not in os.environ:
        return
    try:
        import argcomplete  # pyright: ignore[reportMissingImports]
    except ImportError:
        sys.exit(1)  # the shell completes nothing
    argcomplete.autocomplete(parser)


def _ask_for_double_precision() -> None:
    """Published digits need float64. JAX reads this when it is imported, which is still to come."""
    os.environ["JAX_ENABLE_X64"] = "1"
