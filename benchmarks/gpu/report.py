"""`make gpu`: what this machine's GPU computes, and how fast, as a page in `benchmarks/results/`.

Tests whose results a GPU could change, published numbers, benchmarks beside codes that have GPU versions, and
the launches of every system. Whatever fails is said on the page, and the rest still runs.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jax

from benchmarks.__main__ import CASES, machine, measure, table

ROOT = Path(__file__).parents[2]
# Bits that must not change between runs, batches and restarts; sums in any order; every system's program.
TESTS = {
    "restarts, to the same bits": ["tests/simulate/test_restart_matrix.py", "tests/simulate/test_resume.py"],
    "pair forces and lists": ["tests/particles/test_pair_sum.py", "tests/particles/test_neighbors.py"],
    "deposits and meshes": ["tests/coupling/test_transfer.py", "tests/coupling/test_particle_mesh.py"],
    "flows": ["tests/fields/test_finite_volume.py", "tests/fields/test_elliptic.py"],
    "sub-steps and derivatives": ["tests/integrators/test_cfl_substeps.py", "tests/simulate/test_adjoints.py"],
    "members of an ensemble": ["tests/ensemble/test_sweep.py"],
    "lowering and launches": ["tests/gpu"],
}  # fmt: skip
# (case, sizes, codes that run on GPUs)
BENCHMARKS = (
    ("lj_melt", (32_000, 256_000), ("physkit", "jax-md", "openmm-cuda")),
    ("gravity", (4096, 65_536), ("physkit",)),
    ("navier_stokes", (256, 1024), ("physkit", "exponax", "jax-cfd")),
    ("shallow_water", (1000, 4000), ("physkit", "jnp.roll")),
    ("lorenz", (10_000, 1_000_000), ("physkit", "diffrax")),
    ("pic", (1_000_000, 10_000_000), ("physkit", "at-add")),
    ("gradient_flow", (500,), ("direct", "nested", "exponax")),
    ("ensemble_lorenz", (10_000, 1_000_000), ("physkit", "vmap", "diffrax")),
)
MINUTES = 20  # that one part may take


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.gpu.report")
    parser.add_argument("--try-on-cpu", action="store_true", help="small and without a GPU")
    args = parser.parse_args()
    device = jax.devices()[0]
    if device.platform != "gpu" and not args.try_on_cpu:
        print(
            f"JAX finds no GPU here, only {device.device_kind}: `nvidia-smi` shows whether there is a driver, "
            "and `make gpu GPU=cuda13` takes CUDA 13. To see what would run: "
            "python -m benchmarks.gpu.report --try-on-cpu"
        )
        return 1
    target = ROOT / "benchmarks" / "results" / f"{file_name(device)}.md"
    if args.try_on_cpu:
        target = ROOT / "physkit-demo" / "gpu-report.md"
        target.parent.mkdir(exist_ok=True)
    page = [f"# {device.device_kind}, {datetime.date.today()}", "", f"`make gpu`. {machine()}", ""]
    failed = 0

    def write(*lines: str) -> None:
        # At once: a part that takes the machine down with it leaves the others.
        page.extend([*lines, ""])
        target.write_text("\n".join(page))
        print(*lines, sep="\n", flush=True)

    write("## Tests", "", "| what | result |", "|---|---|")
    page.pop()  # rows follow
    for what, files in TESTS.items():
        code, said = run_tests(files, quick=args.try_on_cpu)
        failed += code != 0
        write(f"| {what} | {said} |")
        page.pop()
    page.append("")
    code, output = run([sys.executable, "-m", "physkit", "validate", "--quick"])
    failed += code != 0
    write("## Published numbers", "", "```", output.strip()[-4000:], "```")
    rows = []
    for case, sizes, codes in BENCHMARKS:
        for row in cases(case, sizes[:1] if args.try_on_cpu else sizes, codes, args.try_on_cpu):
            rows.append(row)
            print(json.dumps(row), flush=True)
    write("## Benchmarks", "", table(rows))
    code, output = run([sys.executable, "-m", "benchmarks.gpu"])
    write(
        "## Launches a step",
        "",
        output.strip() if code == 0 else f"not counted: {last_line(output)}",
    )
    print(f"written: {target}")
    return 1 if failed else 0


def cases(case: str, sizes: tuple, codes: tuple, quick: bool) -> list[dict]:
    """Measurements of one benchmark, in each precision that its codes have."""
    known = CASES[case][1]
    rows = []
    for size in sizes:
        for code in codes:
            for precision in known.get(code, ["float32"])[: 1 if quick else None]:
                row = {"case": case, "size": size, "code": code, "precision": precision}
                rows.append(row | measure(case, code, size, precision))
    return rows


def run_tests(files: list[str], *, quick: bool) -> tuple[int, str]:
    """pytest's exit status and its last line; slow cases are part of it unless `quick`."""
    command = [sys.executable, "-m", "pytest", "-n", "0", *files]
    code, output = run(command + ([] if quick else ["-m", ""]))
    failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return code, "; ".join(
        [last_line(output).strip("= "), *(f"`{name}`" for name in failures[:20])]
    )


def run(command: list[str]) -> tuple[int, str]:
    """Exit status and output of a command, which is given up after a while."""
    began = time.monotonic()
    # JAX otherwise takes three quarters of the memory at once, and leaves too little for a second process.
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=60 * MINUTES, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        said = error.output.decode() if isinstance(error.output, bytes) else error.output or ""
        return 1, f"{said}\ngiven up after {(time.monotonic() - began) / 60:.0f} minutes"
    return done.returncode, done.stdout


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]


def file_name(device: jax.Device) -> str:
    """The name of a kind of device as a file's."""
    return re.sub(r"[^a-z0-9]+", "-", device.device_kind.lower()).strip("-")


if __name__ == "__main__":
    sys.exit(main())
