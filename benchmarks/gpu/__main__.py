"""`python -m benchmarks.gpu [system …]`: launches a step of every system, compiled for an H100, as a table."""

import argparse
import fcntl
import json
import os
import sys
from pathlib import Path

import jax

from ._measure import KINDS, measure
from ._systems import SYSTEMS
from ._target import MISSING, has_compiler

BUDGETS = Path(__file__).parent / "budgets.json"
COLUMNS = ("launches", "most", "syncs", "scatters", "dots")


def table(found: dict[str, dict]) -> str:
    """A row for each system; of gradients how many times the launches of the forward step."""
    lines = [
        "| system | launches | most | syncs | scatters | low-precision dots "
        "| gradient | times | its syncs | its scatters |",
        "|---" * 10 + "|",
    ]
    for name, kinds in found.items():
        forward, gradient = kinds.get("forward", {}), kinds.get("gradient", {})
        cells = [name, *(_show(forward.get(column)) for column in COLUMNS)]
        both = "launches" in forward and "launches" in gradient
        times = gradient["launches"] / max(forward["launches"], 1) if both else None
        cells += [_show(gradient.get("launches")), _show(times)]
        cells += [_show(gradient.get(column)) for column in ("syncs", "scatters")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _show(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def keep(name: str, kinds: dict[str, dict]) -> None:
    """Write the counts of a system into the table, beside what other processes have written meanwhile."""
    with BUDGETS.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        known = json.loads(text) if text else {}
        known["jax"] = jax.__version__
        counts = {k: {column: row[column] for column in COLUMNS} for k, row in kinds.items()}
        systems = known.get("systems", {})
        systems[name] = systems.get(name, {}) | counts
        known["systems"] = dict(sorted(systems.items()))
        file.truncate(0)
        file.write(json.dumps(known, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.gpu")
    parser.add_argument("systems", nargs="*", help="all if left out")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--keep", action="store_true", help=f"write the counts to {BUDGETS.name}")
    args = parser.parse_args()
    if not has_compiler():
        print(MISSING)
        return 1
    # Kernels as on a machine with a GPU. C code is for CPUs, on one of which these programs are traced.
    os.environ["PHYSKIT_NATIVE"] = "cuda"
    found: dict[str, dict] = {}
    for name in args.systems or SYSTEMS:
        found[name] = {}
        for kind in args.kinds:
            try:
                row = measure(name, kind)
            except Exception as error:  # a system that cannot be compiled is a row of the table
                print(f"{name}, {kind}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            print(name, kind, row, file=sys.stderr, flush=True)
            found[name][kind] = row
        if args.keep:
            keep(name, found[name])
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
