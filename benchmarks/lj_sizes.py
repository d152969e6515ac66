"""`python -m benchmarks.lj_sizes [--plot FILE]`: the Lennard-Jones melt from 256 to 256 000 atoms.

One core and two, beside LAMMPS (float64) and OpenMM (float32). All codes of a size are kept running
beside one another and asked for a stretch of steps in turns; of each the fastest stretch counts. So
whatever else the machine does slows all of them, and the ratios hold. Rebuilds of lists are included:
each stretch has several. On a machine that is never quiet `--busy` counts CPU seconds instead of those of the
clock, on one core.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.lj_melt import CUTOFF, DENSITY, DT, SKIN, TEMPERATURE, cells

SIZES = (256, 864, 4000, 32000, 256000)
CODES = ("physkit float32", "physkit float64", "LAMMPS float64", "OpenMM float32")
MARKS = dict(zip(CODES, ("o-", "s-", "D--", "^:"), strict=True))
WARM = 200
BUSY = "PHYSKIT_BENCHMARK_BUSY"  # in the environment of workers that count CPU seconds


def steps_of(size: int) -> int:
    """Steps of one stretch."""
    return min(4000, max(40, 1_600_000 // size))


def physkit(size: int, cores: int) -> Callable[[int], float]:
    """Advances by so many steps and returns microseconds a step."""
    import jax

    import physkit as pk

    del cores
    pk.use_compilation_cache()
    position, box = pk.lattice.face_centered_cubic((cells(size),) * 3, density=DENSITY)
    atoms = pk.maxwell_boltzmann(jax.random.key(0), pk.Particles(position, space=box), TEMPERATURE)
    force = pk.Pairwise(pk.LennardJones(), cutoff=CUTOFF, skin=SKIN, truncation="plain")
    sim = pk.Simulation(pk.VelocityVerlet(force), dt=DT)
    carry = atoms

    def advance(steps: int) -> None:
        nonlocal carry
        carry = pk.run(sim, carry, steps, progress=False).carry

    return timed(advance)


def lammps(size: int, cores: int) -> Callable[[int], float]:
    """The same with LAMMPS."""
    from benchmarks.lj_melt import lammps_melt

    code = lammps_melt(size, cores)
    return timed(lambda steps: code.command(f"run {steps}"))


def openmm(size: int, cores: int) -> Callable[[int], float]:
    """The same with OpenMM's CPU platform."""
    from benchmarks.lj_melt import openmm_melt

    context, integrator = openmm_melt(size, "CPU", {"Threads": str(cores)})

    def advance(steps: int) -> None:
        integrator.step(steps)
        context.getState(getEnergy=True)

    return timed(advance)


def timed(advance: Callable[[int], object]) -> Callable[[int], float]:
    clock = time.process_time if BUSY in os.environ else time.perf_counter

    def microseconds(steps: int) -> float:
        began = clock()
        advance(steps)
        return (clock() - began) / steps * 1e6

    return microseconds


def work(code: str, size: int, cores: int) -> None:
    """A process that times a stretch for every line that it reads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-cores:])
    name = code.split()[0].lower()
    advance = {"physkit": physkit, "lammps": lammps, "openmm": openmm}[name](size, cores)
    steps = steps_of(size)
    advance(WARM)
    advance(steps)  # compiles, where the number of steps is part of the program
    print("ready", flush=True)
    for _ in sys.stdin:
        print(advance(steps), flush=True)


class Worker:
    """One code at one size, in a process of its own."""

    def __init__(self, code: str, size: int, cores: int):
        command = [
            sys.executable,
            "-m",
            "benchmarks.lj_sizes",
            "--work",
            code,
            str(size),
            str(cores),
        ]
        environment = os.environ | {"JAX_ENABLE_X64": "1" if "64" in code else "0"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        self.best = float("inf")

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def measure(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.best = min(self.best, float(self.line()))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(size: int, cores: int, codes: tuple[str, ...], rounds: int) -> dict[str, float]:
    """Microseconds a step by code; codes that are not installed are left out."""
    workers = {}
    for code in codes:
        worker = Worker(code, size, cores)
        if worker.line() == "ready":
            workers[code] = worker
        else:
            worker.close()
    for _ in range(rounds):
        for worker in workers.values():
            worker.measure()
    for worker in workers.values():
        worker.close()
    return {code: worker.best for code, worker in workers.items()}


def table(rows: list[dict]) -> str:
    """µs a step, and how many times as fast as LAMMPS."""
    codes = [c for c in CODES if any(c in row for row in rows)]
    lines = ["| atoms | cores | " + " | ".join(codes) + " |", "|---" * (2 + len(codes)) + "|"]
    for row in rows:
        peer = row.get("LAMMPS float64")
        shown = []
        for code in codes:
            if code not in row:
                shown.append("–")
                continue
            ratio = (
                "" if peer is None or code.startswith("LAMMPS") else f" ({peer / row[code]:.2f}×)"
            )
            shown.append(f"{row[code]:.0f}{ratio}")
        lines.append(f"| {row['atoms']} | {row['cores']} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def draw(rows: list[dict], path: Path, machine: str) -> None:
    """Million particle-steps a second over the number of atoms, one core and two."""
    from matplotlib.figure import Figure

    from physkit import plot

    counts = sorted({row["cores"] for row in rows})
    with plot.style():
        figure = Figure(figsize=(4.8 * len(counts), 4.0), layout="constrained")
        axes = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    for ax, cores in zip(axes, counts, strict=True):
        for color, code in zip(plot.PALETTE, CODES, strict=False):
            points = [
                (r["atoms"], r["atoms"] / r[code])
                for r in rows
                if r["cores"] == cores and code in r
            ]
            if points:
                ax.plot(*zip(*points, strict=True), MARKS[code], ms=5, color=color, label=code)
        plot.apply_style(ax)
        ax.set(xscale="log", xlabel="atoms", title="one core" if cores == 1 else "two cores")
    axes[0].set(ylabel="million particle-steps a second", ylim=(0, None))
    axes[0].legend(frameon=False)
    figure.suptitle(f"Lennard-Jones melt\n{machine}", fontsize="medium")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--cores", type=int, nargs="*", default=(1, 2))
    parser.add_argument("--codes", nargs="*", default=CODES, choices=CODES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--rows", type=Path, help="append measurements to this file, and use those in it"
    )
    parser.add_argument("--plot", type=Path, help="draw them")
    parser.add_argument("--machine", default="this machine", help="its name, for the plot")
    parser.add_argument("--busy", action="store_true", help="count CPU seconds, on one core")
    args = parser.parse_args()
    if args.work:
        code, size, cores = args.work
        work(code, int(size), int(cores))
        return
    if args.busy:
        args.cores, os.environ[BUSY] = (1,), "1"
    rows = []
    if args.rows and args.rows.exists():
        rows = [json.loads(line) for line in args.rows.read_text().splitlines()]
    for cores in args.cores:
        for size in args.sizes:
            row = {"atoms": size, "cores": cores, **measure(size, cores, args.codes, args.rounds)}
            print(json.dumps(row), file=sys.stderr, flush=True)
            if args.rows:
                with args.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            rows.append(row)
    # Measured more than once: the best of each code.
    best: dict[tuple[int, int], dict] = {}
    for row in rows:
        kept = best.setdefault((row["cores"], row["atoms"]), row)
        best[row["cores"], row["atoms"]] = row | {
            k: min(v, row.get(k, v)) for k, v in kept.items() if k not in ("atoms", "cores")
        }
    rows = [best[key] for key in sorted(best)]
    print(table(rows))
    if args.plot:
        draw(rows, args.plot, args.machine)


if __name__ == "__main__":
    main()
