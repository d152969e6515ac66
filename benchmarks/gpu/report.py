"""`make gpu`: what this machine's GPU computes, and how fast, as a page in `benchmarks/results/`.

Benchmarks beside codes that have GPU versions, tests whose results a GPU could change, published numbers, and
the launches of every system. Whatever fails is said on the page, and the rest still runs. Each part is written
as soon as it is there, and the next call does what is left, so that a few minutes at a time are enough:

    python -m benchmarks.gpu.report --minutes 9

needs no installation where JAX, Equinox and the other packages are there already.
"""

import argparse
import datetime
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.__main__ import CASES, machine, measure, table

ROOT = Path(__file__).parents[2]
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
)
# Bits that must not change between runs, batches and restarts; sums in any order; every system's program.
TESTS = (
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
KINDS = ("benchmarks", "tests", "numbers", "launches")
NEEDED = (
    "equinox",
    "diffrax",
    "optimistix",
    "lineax",
    "optax",
    "h5py",
    "jaxtyping",
    "filelock",
    "matplotlib",
)
NEEDED += ("pytest", "hypothesis")
MOST = 10  # minutes that one part may take


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

    def of(self, kind: str) -> dict[str, dict]:
        return {name.split(" ", 1)[1]: x for name, x in self.found.items() if name.startswith(kind)}

    def text(self) -> str:
        lines = [f"# {self.device}, {datetime.date.today()}", "", f"`make gpu`. {machine()}", ""]
        lines += ["## Benchmarks", "", table(list(self.of("benchmarks").values())), ""]
        lines += ["## Tests", "", "| what | result |", "|---|---|"]
        lines += [f"| `{name}` | {x['said']} |" for name, x in self.of("tests").items()]
        lines += ["", "## Published numbers", ""]
        lines += [f"```\n{x['said']}\n```" for x in self.of("numbers").values()]
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
    # In a process of its own: this one would hold the GPU's memory while the others measure.
    asked = "import jax; d = jax.devices()[0]; print(d.platform, d.device_kind)"
    code, said = run([sys.executable, "-c", asked], 3)
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
    parts = {
        name: do
        for kind in args.only
        for name, do in PARTS[kind](args.try_on_cpu).items()
        if args.again or name not in report.found
    }
    began, done = time.monotonic(), 0
    print(f"{device}: {len(parts)} parts, {len(report.found)} there already", flush=True)
    for name, do in parts.items():
        spent = (time.monotonic() - began) / 60
        left = args.minutes - spent if args.minutes else MOST
        if left < 0.25:
            break
        print(f"[{done + 1}/{len(parts)}, {spent:.1f} min] {name} …", flush=True)
        result = do(min(MOST, left))
        # Out of time because it came last: it has its chance in the next call.
        if result.get("gave_up") and left < MOST and done:
            break
        report.add(name, result)
        done += 1
        print(f"    {json.dumps(result)[:300]}", flush=True)
    print(f"written: {report.page}; {len(parts) - done} parts are left for the next call")
    failed = [
        name for name, x in report.found.items() if x.get("code") and name.startswith("tests")
    ]
    return 1 if failed else 0


def benchmarks(quick: bool) -> dict:
    """Parts: a code at a size in a precision."""

    def part(row: dict, minutes: float) -> dict:
        return row | measure(**row, seconds=60 * minutes)

    rows = [
        {"case": case, "size": size, "code": code, "precision": precision}
        for case, sizes, small, codes in BENCHMARKS
        for size in ((small,) if quick else sizes)
        for code in codes
        for precision in CASES[case][1].get(code, ["float32"])[: 1 if quick else None]
    ]
    name = "benchmarks {case} {size} {code} {precision}"
    return {name.format(**row): lambda minutes, row=row: part(row, minutes) for row in rows}


def tests(quick: bool) -> dict:
    """Parts: a file of tests; slow cases are part of it unless `quick`."""

    def part(file: str, minutes: float) -> dict:
        # Warnings of drivers and plugins are no failures here.
        command = [sys.executable, "-m", "pytest", "-W", "default", file]
        command += ["-n", "0"] if importlib.util.find_spec("xdist") else []
        code, output = run(command + ([] if quick else ["-m", ""]), minutes)
        failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        said = "; ".join([last_line(output).strip("= "), *(f"`{name}`" for name in failures[:20])])
        return {"code": code, "said": said, "gave_up": code == GAVE_UP, "end": output[-3000:]}

    files = ("tests/coupling/test_integer_sums.py",) if quick else TESTS
    return {f"tests {file}": lambda minutes, f=file: part(f, minutes) for file in files}


def numbers(quick: bool) -> dict:
    """One part: what the package computes of published numbers."""

    def part(minutes: float) -> dict:
        code, output = run([sys.executable, "-m", "physkit", "validate", "--quick"], minutes)
        return {"code": code, "said": output.strip()[-6000:], "gave_up": code == GAVE_UP}

    del quick
    return {"numbers validate": part}


def launches(quick: bool) -> dict:
    """Parts: a system, compiled for an H100."""

    def part(system: str, minutes: float) -> dict:
        command = [sys.executable, "-m", "benchmarks.gpu", system, "--kinds", "forward"]
        code, output = run(command, minutes)
        rows = [line for line in output.splitlines() if line.startswith("|")]
        said = "\n".join(rows) if len(rows) == 3 else f"{system}: {last_line(output)}"
        return {"code": code, "said": said, "gave_up": code == GAVE_UP}

    budgets = json.loads((Path(__file__).parent / "budgets.json").read_text())
    systems = ("lorenz",) if quick else tuple(budgets["systems"])
    return {f"launches {s}": lambda minutes, s=s: part(s, minutes) for s in systems}


PARTS = {"benchmarks": benchmarks, "tests": tests, "numbers": numbers, "launches": launches}
GAVE_UP = 124


def run(command: list[str], minutes: float) -> tuple[int, str]:
    """Exit status and output of a command, which is given up after a while."""
    # JAX otherwise takes three quarters of the memory at once, and leaves too little for a second process.
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONPATH": str(ROOT)}
    if importlib.util.find_spec("beartype") is None:
        environment["PHYSKIT_TYPECHECK"] = "0"
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            said = process.communicate(timeout=60 * minutes)[0]
            return process.returncode, said
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)  # with the processes that it started, which hold the GPU
            said = process.communicate()[0]
            return GAVE_UP, f"{said}\ngiven up after {minutes:.1f} minutes"


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]


if __name__ == "__main__":
    sys.exit(main())
