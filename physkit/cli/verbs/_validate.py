"""Recompute published numbers.

One line a number, computed beside published. Files of reference data are looked for in the folder that
PHYSKIT_REFERENCE_DATA names; cases that need them are skipped without it.
"""

import argparse
import sys
from collections.abc import Sequence

import physkit

from ..common._report import Report, RowFormat, Stopwatch
from ..common._types import ValidationCase

NEEDS_DOUBLE = True
EXAMPLES = """\
  physkit validate --list
  physkit validate --quick
  physkit validate verlet-order --json
"""

_HEADER = ("", "case", "computed", "published", "tolerance", "seconds", "source")
_ROW = RowFormat((7, 42, 16, 16, 9, 7, 0), frozenset({2, 3, 4, 5}))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit validate`."""
    parser.add_argument("names", nargs="*", metavar="name", help="cases; all if none")
    parser.add_argument("--quick", action="store_true", help="leave out the slow cases")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--json", action="store_true", help="the table as JSON")


def run(args: argparse.Namespace, report: Report) -> int:
    """Run cases and print their table line by line; 1 if a number is off."""
    from physkit.testing.validation import cases

    known = {case.name: case for case in cases()}
    unknown = [name for name in args.names if name not in known]
    if unknown:
        report.error(f"no case {unknown}; available: {list(known)}")
        return 2
    if args.list:
        rows = [(c.name, "slow" if c.slow else "", c.source) for c in known.values()]
        report.table(("case", "", "source"), rows)
        keys = ("case", "speed", "source")
        report.json_result([dict(zip(keys, row, strict=True)) for row in rows])
        return 0
    chosen = [
        case
        for name, case in known.items()
        if (not args.names or name in args.names) and not (args.quick and case.slow)
    ]
    from physkit.simulate import ending_at_once

    # A run would stop after its chunk, and the next case begin.
    with ending_at_once():
        return _run(chosen, report)


def _run(chosen: Sequence[ValidationCase], report: Report) -> int:
    physkit.use_compilation_cache()

    from physkit.simulate import Progress
    from physkit.testing.validation import evaluate, missing_data

    watch, num_off, skipped = Stopwatch(), 0, 0
    numbers = []
    # The table itself is progress: a bar beside it only on a terminal, where it can be erased.
    bar = Progress(len(chosen), unit="cases", enabled=report.shows_progress and sys.stderr.isatty())
    report.result(_ROW.line(_HEADER))
    for done, case in enumerate(chosen):
        bar.update(done, case.name)
        # The reference data of some cases are no part of the package.
        reason = missing_data(case)
        if reason:
            skipped += 1
            report.result(_ROW.line(("skipped", case.name, None, None, None, None, reason)))
            continue
        for outcome in evaluate(case):
            num_off += not outcome.passed
            bar.clear()  # or the row would be written into it
            numbers.append(
                {
                    "case": case.name,
                    "number": outcome.label,
                    "ok": outcome.passed,
                    "computed": float(outcome.computed),
                    "published": float(outcome.published.value),
                    "tolerance": str(outcome.published.allowed),
                    "seconds": outcome.seconds,
                    "source": case.source,
                }
            )
            report.result(
                _ROW.line(
                    (
                        "ok" if outcome.passed else "OFF",
                        outcome.label,
                        f"{outcome.computed:.12g}",
                        f"{outcome.published.value:.12g}",
                        outcome.published.allowed,
                        round(outcome.seconds, 1),
                        case.source if outcome.passed else f"{case.source} {outcome.note}".strip(),
                    )
                )
            )
    bar.clear()
    verdict = "all within tolerance" if not num_off else f"{num_off} OFF"
    report.result(
        f"\ncases: {len(chosen) - skipped} run, {skipped} skipped, {watch.seconds:.0f} s: {verdict}"
    )
    report.json_result(
        {"ok": not num_off, "skipped": skipped, "seconds": watch.seconds, "numbers": numbers}
    )
    return 1 if num_off else 0
