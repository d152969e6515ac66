"""`make gpu`: what this machine's GPU computes, and how fast, as a page in `benchmarks/results/`.

Benchmarks beside codes that have GPU versions, tests whose results a GPU could change, published numbers, and
the launches of every system. Processes start and compile side by side, and are timed alone. Whatever fails is
said on the page, and the rest still runs. Each part is written as soon as it is there, and the next call does
what is left, so that a few minutes at a time are enough:

    python -m benchmarks.gpu.report --minutes 9

needs no installation where JAX, Equinox and the other packages are there already.
"""

import argparse
import datetime
import importlib.util
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.__main__ import CASES, machine, table
from physkit.testing.validation import cases as validation_cases

from ._processes import GAVE_UP, ROOT, last_line, run, run_at_once, seconds_left
from ._suite import FILES, QUICK_FILES, run_tests
from ._turns import measure_in_turn

# (case, sizes, a size to try it out, codes that run on GPUs)
BENCHMARKS = (
    ("lj_melt", (32_000, 256_000), 500, ("physkit", "jax-md", "openmm-cuda")),
    ("navier_stokes", (256, 1024), 32, ("physkit", "exponax", "jax-cfd")),
    ("pic", (1_000_000, 10_000_000), 1000, ("physkit", "at-add")),
    ("shallow_water", (1000, 4000), 50, ("physkit", "jnp.roll")),
    ("gravity", (4096, 65_536), 64, ("physkit",)),
    ("ensemble_lorenz", (10_000, 1_000_000), 10, ("physkit", "vmap", "diffrax")),
    ("gradient_flow", (500,), 10, ("direct", "nested", "exponax")),
    ("lorenz", (10_000, 1_000_000), 10, ("physkit", "diffrax")),
    ("light", (128, 256), 16, ("physkit",)),
    ("lattice_boltzmann", (4096, 192), 16, ("physkit", "xlb")),  # of the plane, and of space
    ("gas", (1024,), 32, ("physkit",)),
    ("ensemble_argon", (1000,), 10, ("physkit",)),
)
NEEDED = (
    "equinox", "diffrax", "optimistix", "lineax", "optax", "h5py", "jaxtyping", "filelock", "matplotlib",
    "pytest", "hypothesis",
)  # fmt: skip
LEAST = 15.0  # seconds that are worth starting something


class Report:
    """Results by the name of their part, in a file beside the page."""

    def __init__(self, folder: Path, device: str):
        self.device = device
        self.page = folder / f"{re.sub(r'[^a-z0-9]+', '-', device.lower()).strip('-')}.md"
        self.file = self.page.with_suffix(".json")
        self.found: dict[str, dict] = (
            json.loads(self.file.read_text()) if self.file.exists() else {}
        )

    def add(self, name: str, result: dict) -> None:
        """Written at once: a part that takes the machine down with it leaves the others."""
        self.found[name] = result
        self.file.write_text(json.dumps(self.found, indent=1))
        self.page.write_text(self.text())

    def lacks(self, name: str) -> bool:
        return name not in self.found or self.found[name].get("unfinished", False)

    def of(self, kind: str) -> dict[str, dict]:
        return {name.split(" ", 1)[1]: x for name, x in self.found.items() if name.startswith(kind)}

    def text(self) -> str:
        lines = [f"# {self.device}, {datetime.date.today()}", "", f"`make gpu`. {machine()}", ""]
        lines += [
            "## Benchmarks",
            "",
            "Timed alone; compiled, and called first, beside others.",
            "",
        ]
        lines += [table(list(self.of("benchmarks").values())), ""]
        lines += ["## Tests", "", "| what | result |", "|---|---|"]
        lines += [f"| `{name}` | {x['said']} |" for name, x in self.of("tests").items()]
        lines += ["", "## Published numbers", ""]
        lines += ["| | number | computed | published | tolerance | seconds |", "|---" * 6 + "|"]
        lines += [row for x in self.of("numbers").values() for row in x["rows"]]
        lines += ["", "## Launches a step", ""]
        counts = [x["said"] for x in self.of("launches").values()]
        rows = [said.splitlines() for said in counts if said.startswith("| system")]
        lines += rows[0][:2] if rows else []
        lines += [row[2] for row in rows] + [s for s in counts if not s.startswith("| system")]
        return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.gpu.report")
    parser.add_argument("--try-on-cpu", action="store_true", help="small and without a GPU")
    parser.add_argument("--minutes", type=float, help="stop after these; the next call goes on")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="these parts")
    parser.add_argument(
        "--out", type=Path, help="folder of the page, benchmarks/results if left out"
    )
    parser.add_argument("--again", action="store_true", help="also what the page has already")
    args = parser.parse_args()
    # A limit from outside ends the processes that were started here, too, as an interrupt does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    deadline = began + 60 * args.minutes if args.minutes else float("inf")
    # In a process of its own: this one would hold the GPU's memory while the others measure.
    asked = "import jax; d = jax.devices()[0]; print(d.platform, d.device_kind)"
    code, said = run([sys.executable, "-c", asked], 180)
    # Drivers and plugins may say things, too.
    answers = [line for line in said.splitlines() if re.match(r"(gpu|cpu|tpu) ", line)]
    platform, _, device = last_line("\n".join(answers)).partition(" ")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"not installed here, and needed by what follows: {', '.join(missing)}", flush=True)
    if code or (platform != "gpu" and not args.try_on_cpu):
        print(
            f"JAX finds no GPU here ({last_line(said)}): `nvidia-smi` shows whether there is a driver, "
            "and `make gpu GPU=cuda13` takes CUDA 13. To see what would run: "
            "python -m benchmarks.gpu.report --try-on-cpu"
        )
        return 1
    folder = args.out or ROOT / ("physkit-demo" if args.try_on_cpu else "benchmarks/results")
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(folder, device)
    todo = {kind: list_parts(kind, args.try_on_cpu) for kind in KINDS if kind in args.only}
    if not args.again:
        todo = {kind: [x for x in parts if report.lacks(x)] for kind, parts in todo.items()}
    left = sum(len(parts) for parts in todo.values())
    print(f"{device}: {left} parts, {len(report.found)} there already", flush=True)
    before = {} if args.again else dict(report.found)
    for name, result in work(todo, before, args.try_on_cpu, deadline):
        report.add(name, result)
        left -= not result.get("unfinished", False)
        minutes = (time.monotonic() - began) / 60
        print(f"[{minutes:.1f} min] {name}\n    {json.dumps(result)[:300]}", flush=True)
    print(f"written: {report.page}; {left} parts are left for the next call")
    failed = [
        name for name, x in report.found.items() if x.get("code") and name.startswith("tests")
    ]
    return 1 if failed else 0


KINDS = ("benchmarks", "tests", "numbers", "launches")


def list_parts(kind: str, quick: bool) -> list[str]:
    """Names: of a code at a size in a precision, a file of tests, a published number, a system."""
    if kind == "benchmarks":
        return list(list_benchmarks(quick))
    if kind == "tests":
        return [f"tests {file}" for file in (QUICK_FILES if quick else FILES)]
    if kind == "numbers":
        return [f"numbers {case.name}" for case in validation_cases() if not case.slow]
    budgets = json.loads((Path(__file__).parent / "budgets.json").read_text())
    return [f"launches {s}" for s in (("lorenz",) if quick else budgets["systems"])]


def list_benchmarks(quick: bool) -> dict[str, dict]:
    """Rows by the name of their part."""
    rows = [
        {"case": case, "size": size, "code": code, "precision": precision}
        for case, sizes, small, codes in BENCHMARKS
        for size in ((small,) if quick else sizes)
        for code in codes
        for precision in CASES[case][1].get(code, ["float32"])[: 1 if quick else None]
    ]
    return {"benchmarks {case} {size} {code} {precision}".format(**row): row for row in rows}


def work(
    todo: dict[str, list[str]], before: dict[str, dict], quick: bool, deadline: float
) -> Iterator[tuple[str, dict]]:
    """Results of the named parts; none of those that no time is left for."""
    yield from measure_benchmarks(todo.get("benchmarks", []), quick, deadline)
    files = {x.removeprefix("tests "): before.get(x, {}) for x in todo.get("tests", [])}
    for file, result in run_tests(files, quick, deadline):
        yield f"tests {file}", result
    yield from compute_numbers(todo.get("numbers", []), deadline)
    yield from count_launches(todo.get("launches", []), deadline)


def measure_benchmarks(
    names: list[str], quick: bool, deadline: float
) -> Iterator[tuple[str, dict]]:
    """As many at a time as there are cores to compile on."""
    rows = list_benchmarks(quick)
    at_once = os.cpu_count() or 1
    for first in range(0, len(names), at_once):
        if seconds_left(deadline) < LEAST:
            return
        batch = {name: rows[name] for name in names[first : first + at_once]}
        print(f"{len(batch)} benchmarks get ready: {', '.join(batch)}", flush=True)
        for name, found in measure_in_turn(batch, deadline):
            yield name, rows[name] | found


def compute_numbers(names: list[str], deadline: float) -> Iterator[tuple[str, dict]]:
    """What the package computes of published numbers: long loops of tiny kernels, many of them at once."""
    cases = {name: name.removeprefix("numbers ") for name in names}
    commands = {
        name: [sys.executable, "-m", "physkit", "validate", "--json", "--quiet", case]
        for name, case in cases.items()
    }
    for name, code, output in run_at_once(commands, deadline):
        if code == GAVE_UP and not seconds_left(deadline):
            continue
        found = [line for line in output.splitlines() if line.startswith('{"ok"')]
        numbers = json.loads(found[0])["numbers"] if found else []
        rows = [_row_of_number(x) for x in numbers]
        yield name, {"code": code, "rows": rows or [_row_of_failure(cases[name], output)]}


def _row_of_number(number: dict) -> str:
    numbers = [f"{number[key]:.8g}" for key in ("computed", "published")]
    cells = ["ok" if number["ok"] else "off", number["number"], *numbers, number["tolerance"]]
    return f"| {' | '.join(cells)} | {number['seconds']:.1f} |"


def _row_of_failure(case: str, output: str) -> str:
    return f"| – | {case}: {last_line(output)[:100]} | – | – | – | – |"


def count_launches(names: list[str], deadline: float) -> Iterator[tuple[str, dict]]:
    """Of each system's step, compiled for an H100."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--kinds", "forward", "--"]
    systems = {name: name.removeprefix("launches ") for name in names}
    commands = {name: [*command, system] for name, system in systems.items()}
    for name, code, output in run_at_once(commands, deadline):
        if code == GAVE_UP and not seconds_left(deadline):
            continue
        rows = [line for line in output.splitlines() if line.startswith("|")]
        whole = "\n".join(rows) if len(rows) == 3 else f"{systems[name]}: {last_line(output)}"
        yield name, {"code": code, "said": whole}


if __name__ == "__main__":
    sys.exit(main())
