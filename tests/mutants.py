"""Does the fast suite notice a fault? One-line faults, seeded one by one into a copy of the package.

    python -m tests.mutants              all of them (`make mutants`)
    python -m tests.mutants 5 10         some: the first number, and the first that is left out

Each fault is a line of the code, what it becomes, and the tests that should fail then. A test that
still passes is listed, and the exit status is 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.seeded_faults import MUTANTS, Mutant

ROOT = Path(__file__).parent.parent
COPIED = ("physkit", "tests", "pyproject.toml")


def is_found(mutant: Mutant) -> bool:
    """Whether the tests fail on a copy of the code with the fault.

    **Errors:** `ValueError` if the line is not there, or more than once.
    """
    with tempfile.TemporaryDirectory() as top:
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(
                    source, Path(top, name), ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(source, top)
        # Programs that the fault leaves as they are need not be compiled again.
        (ROOT / ".cache").mkdir(exist_ok=True)
        Path(top, ".cache").symlink_to(ROOT / ".cache")
        path = Path(top, "physkit", mutant.path)
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            raise ValueError(f"{mutant.path} holds {mutant.old!r} {text.count(mutant.old)} times")
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        tests = [f"tests/{name}" for name in mutant.tests.split()]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", *tests],
            cwd=top,
            env={**os.environ, "PYTHONPATH": top, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
    if done.returncode not in (0, 1):
        raise ValueError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr}")
    return done.returncode == 1


def main(first: int = 0, stop: int = len(MUTANTS)) -> int:
    """Seed some of the faults; the exit status."""
    survivors = 0
    for number in range(first, min(stop, len(MUTANTS))):
        mutant, began = MUTANTS[number], time.monotonic()
        found = is_found(mutant)
        survivors += not found
        verdict = "found" if found else "NOT FOUND"
        print(
            f"{number:2d} {verdict:9s} {time.monotonic() - began:4.0f} s  {mutant.path}: "
            f"{mutant.old}  →  {mutant.new}",
            flush=True,
        )
    print(f"{survivors} not found")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
