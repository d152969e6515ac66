"""Tests whose results a GPU could change, in one call of pytest, and what has come of each file."""

import importlib.util
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ._outcomes import OUTCOMES
from ._processes import GAVE_UP, last_line, run, seconds_left

# Bits that must not change between runs, batches and restarts; sums in any order; every system's program.
FILES = (
    "tests/coupling/test_integer_sums.py",
    "tests/particles/test_pair_sum.py",
    "tests/simulate/test_resume.py",
    "tests/particles/test_neighbors.py",
    "tests/coupling/test_transfer.py",
    "tests/fields/test_finite_volume.py",
    "tests/integrators/test_cfl_substeps.py",
    "tests/simulate/test_adjoints.py",
    "tests/fields/test_elliptic.py",
    "tests/coupling/test_particle_mesh.py",
    "tests/ensemble/test_sweep.py",
    "tests/simulate/test_restart_matrix.py",
    "tests/gpu/test_lowering.py",
)
QUICK_FILES = ("tests/coupling/test_integer_sums.py",)
WORKERS = 14  # at most: each holds some of the GPU's memory
MOST = 1800.0  # seconds for all of them in one call of pytest
KINDS = ("passed", "failed", "skipped")


def run_tests(files: dict[str, dict], quick: bool, deadline: float) -> Iterator[tuple[str, dict]]:
    """What has come of each file; slow cases are part of it unless `quick`.

    - `files`: with what an earlier call found, which goes on with the tests that it left.
    """
    has_xdist = importlib.util.find_spec("xdist") is not None
    # One process for many files would lose all after the first that takes the process down.
    for group in [list(files)] if has_xdist and files else [[file] for file in files]:
        if not seconds_left(deadline):
            return
        wanted = [test for file in group for test in files[file].get("left") or [file]]
        # Warnings of drivers and plugins are no failures here.
        command = [sys.executable, "-m", "pytest", "-W", "default"]
        command += ["-p", "benchmarks.gpu._outcomes"]
        # A file that cannot be imported must not keep the others from running.
        command += ["--continue-on-collection-errors", *wanted]
        if has_xdist:
            workers = min(WORKERS, os.cpu_count() or 1)
            command += ["-n", str(workers), "--dist", "worksteal"]
        with tempfile.TemporaryDirectory() as folder:
            outcomes = Path(folder) / "outcomes"
            outcomes.touch()
            code, said = run(
                command + ([] if quick else ["-m", ""]), seconds_left(deadline, MOST),
                **{OUTCOMES: str(outcomes)},
            )  # fmt: skip
            found = read_outcomes(outcomes.read_text())
        for file in group:
            yield file, summarize(file, found, files[file], code, said)


def read_outcomes(text: str) -> dict[str, str]:
    """What has come of each test: of KINDS, "left" if it has not ended, or "lost".

    Once a process has lost its CUDA context nothing on the GPU works in it: only the first such failure of a
    process is the test's own, those after it are lost.
    """
    found: dict[str, str] = {}
    broken = set()
    for line in text.splitlines():
        if not line.endswith("}"):
            continue  # written when time was up
        row = json.loads(line)
        for test in row.get("collected", ()):
            found.setdefault(test, "left")
        if "test" not in row:
            continue
        if row["gpu_error"] and row["worker"] in broken:
            found[row["test"]] = "lost"
        elif found.get(row["test"]) not in ("failed", "lost"):
            found[row["test"]] = row["outcome"]
        if row["gpu_error"]:
            broken.add(row["worker"])
    return found


def summarize(file: str, found: dict[str, str], before: dict, code: int, said: str) -> dict:
    """Counts, names of failures and what is left of a file, with what was found `before`."""
    here = {test: x for test, x in found.items() if test.split("::")[0] == file}
    counts = Counter(before.get("counts", {})) + Counter(x for x in here.values() if x in KINDS)
    failures = before.get("failures", []) + [test for test, x in here.items() if x == "failed"]
    left = [test for test, x in here.items() if x in ("left", "lost")]
    left = left if here else before.get("left", [])
    unfinished = bool(left) or (not here and code == GAVE_UP)
    # Pytest itself may have ended early, or found nothing.
    is_broken = not here or code not in (0, 1, GAVE_UP)
    words = [f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]]
    words += [f"{len(left)} left"] if left else []
    lost = sum(x == "lost" for x in here.values())
    words += [f"{lost} of them lost with the CUDA context of a process"] if lost else []
    words += [last_line(said).strip("= ")] if is_broken else []
    said = "; ".join([", ".join(words), *(f"`{name}`" for name in failures[:20])])
    result = {"code": int(bool(failures) or is_broken), "said": said, "counts": dict(counts)}
    return result | {"failures": failures, "left": left, "unfinished": unfinished}
