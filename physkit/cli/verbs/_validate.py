"""Recompute published numbers.

One line a number, computed beside published. Files of reference data are looked for in the folder that
PHYSKIT_REFERENCE_DATA names; cases that need them are skipped without it.
"""

import argparse
import sys

from ..common._report import Report, RowFormat, Stopwatch

NEEDS_DOUBLE = True
EXAMPLES = """\
  physkit validate --list
  physkit validate --quick
  physkit validate verlet-order --json
"""

_HEADER = ("", "case", "computed", "published", "tolerance", "seconds", "source")
_ROW = RowFormat((7, 42, 16, 16, 9, 7, 0), frozenset({2, 3, 4, 5}))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Words and options behind `physkit validate`."""
    parser.add_argument("names", nargs="*", metavar="name", help="cases; all if none")
    parser.add_argument("--quick", action="store_true", help="leave out the slow cases")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--json", action="store_true", help="the table as JSON")


def run(given: argparse.Namespace, report: Report) -> int:
    """Run cases and print their table line by line; 1 if a number is off."""
    from physkit.testing.validation import cases

    known = {case.name: case for case in cases()}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        report.problem(f"no case {unknown}; available: {list(known)}")
        return 2
    if given.list:
        rows = [(c.name, "slow" if c.slow else "", c.source) for c in known.values()]
        report.table(("case", "", "source"), rows)
        keys = ("case", "speed", "source")
        report.answer([dict(zip(keys, row, strict=True)) for row in rows])
        return 0
    chosen = [
        case
        for name, case in known.items()
        if (not given.names or name in given.names) and not (given.quick and case.slow)
    ]
    return _run(chosen, report)


def _run(chosen, report: Report) -> int:
    from physkit.simulate import Progress
    from physkit.testing.validation import evaluate, missing_data

    watch, off, skipped = Stopwatch(), 0, 0
    numbers = []
    bar = Progress(len(chosen), unit="cases", enabled=report.shows_progress and sys.stderr.isatty())
    report.result(_ROW.line(_HEADER))
    for done, case in enumerate(chosen):
        bar.update(done, case.name)
        reason = missing_data(case)
        if reason:
            skipped += 1
            report.result(_ROW.line(("skipped", case.name, None, None, None, None, reason)))
            continue
        for found in evaluate(case):
            off += not found.passed
            bar.clear()
            numbers.append(
                {
                    "case": case.name,
                    "number": found.label,
                    "ok": found.passed,
                    "computed": float(found.computed),
                    "published": float(found.published.value),
                    "tolerance": str(found.published.allowed),
                    "seconds": found.seconds,
                    "source": case.source,
                }
            )
            report.result(
                _ROW.line(
                    (
                        "ok" if found.passed else "OFF",
                        found.label,
                        f"{found.computed:.12g}",
                        f"{found.published.value:.12g}",
                        found.published.allowed,
                        round(found.seconds, 1),
                        case.source if found.passed else f"{case.source} {found.note}".strip(),
                    )
                )
            )
    bar.clear()
    word = "all within tolerance" if not off else f"{off} OFF"
    report.result(
        f"\ncases: {len(chosen) - skipped} run, {skipped} skipped, {watch.seconds:.0f} s: {word}"
    )
    report.answer({"ok": not off, "skipped": skipped, "seconds": watch.seconds, "numbers": numbers})
    return 1 if off else 0
