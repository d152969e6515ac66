"""Kill workers of a sweep at random moments, and continue the sweep.

`python -m tests.ensemble.kill_campaign [KILLS]` prints the table of docs/cluster.md.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parent.parent.parent
CHUNKS = 12
CASE = '''
import jax
import physkit as pk


def case(steps=120000):
    """Brownian particles in double wells: each with its own noise, at eight temperatures."""
    simulation, state = pk.systems.double_well()
    record = [*simulation.observers, pk.Every(6000, x=pk.Positions())]
    simulation = pk.Simulation(simulation.integrator, dt=simulation.dt, observers=record)
    diffusion = [0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.11, 0.12]
    over = pk.SweepAxis(lambda model: model[0].integrator.temperature, diffusion)
    return pk.Sweep((simulation, state), steps, over=over, replicas=6, key=jax.random.key(7))
'''


class Kill(NamedTuple):
    """What one kill did.

    - `awaited`, `after`: the kill came so many seconds after so many chunks were finished.
    - `finished`: chunks finished then; `held_claim`: whether the victim was computing another.
    - `by_the_other`, `in_the_end`: chunks finished when the others had ended, and after a second start.
    """

    victim: str
    awaited: int
    after: float
    finished: int
    held_claim: bool
    by_the_other: int
    in_the_end: int
    equal: bool


def environment(cache: Path) -> dict[str, str]:
    """The environment of workers: this physkit, and a compilation cache that they share."""
    variables = {
        "PYTHONPATH": str(ROOT),
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    return {**os.environ, **variables}


def sweep_command(case: Path, to: Path, workers: int) -> list[str]:
    """The command that computes a sweep."""
    command = [sys.executable, "-m", "physkit", "sweep", "run", str(case), "--to", str(to)]
    return [*command, "--chunk-size", "4", "--double", "--quiet", "--workers", str(workers)]


def read_results(to: Path) -> dict[str, np.ndarray]:
    """All arrays of the ensemble in a folder."""
    from physkit.ensemble import collect

    ensemble = collect(to)
    arrays = {name: np.asarray(ensemble[name]) for name in ensemble}
    return arrays | {"ok": ensemble.ok, "member": ensemble.members} | ensemble.coordinates


def equal_bits(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Whether two sets of arrays are equal bit by bit."""
    return set(a) == set(b) and all(
        x.dtype == b[n].dtype and x.tobytes() == b[n].tobytes() for n, x in a.items()
    )


def children(parent: int) -> list[int]:
    """Child processes of a process."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(number) for number in listed.split()]


def kill_one(
    folder: Path, case: Path, uninterrupted: dict, moment: tuple[int, float], both: bool, env: dict
) -> Kill:
    """Start two workers and kill one of them; or both, and the process that started them."""
    to = folder / "out"
    awaited, after = moment
    parent = subprocess.Popen(sweep_command(case, to, 2), env=env, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while len(list((to / "chunks").glob("[0-9]*.h5"))) < awaited and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(after)
    finished = list((to / "chunks").glob("[0-9]*.h5"))
    holders = {}
    for claim in (to / "chunks").glob("[0-9]*.claim"):
        try:
            holders[json.loads(claim.read_text())["process"]] = claim.name
        except (OSError, ValueError):
            continue
    workers = children(parent.pid) if parent.poll() is None else []
    chosen = [w for w in workers if w in holders] or workers
    victims = [*workers, parent.pid] if both else chosen[:1]
    if both:
        os.kill(parent.pid, signal.SIGSTOP)  # or it would start new ones
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    parent.wait(300)
    finished_by_others = len(list((to / "chunks").glob("[0-9]*.h5")))
    restarted = subprocess.run(
        sweep_command(case, to, 2), env=env, stderr=subprocess.PIPE, timeout=300
    )
    assert restarted.returncode == 0, restarted.stderr
    return Kill(
        victim="both and their parent" if both else "one of two" if victims else "too late",
        awaited=awaited,
        after=after,
        finished=len(finished),
        held_claim=any(victim in holders for victim in victims),
        by_the_other=finished_by_others,
        in_the_end=len(list((to / "chunks").glob("[0-9]*.h5"))),
        equal=equal_bits(read_results(to), uninterrupted),
    )


def campaign(folder: Path, kills: int, seed: int = 0) -> list[Kill]:
    """Run so many sweeps with one kill in each; every fourth kills both workers."""
    case = folder / "case.py"
    case.write_text(CASE)
    env = environment(folder / "programs")
    subprocess.run(
        sweep_command(case, folder / "uninterrupted", 1), env=env, check=True, timeout=300
    )
    uninterrupted = read_results(folder / "uninterrupted")
    subprocess.run(sweep_command(case, folder / "two", 2), env=env, check=True, timeout=300)
    assert equal_bits(read_results(folder / "two"), uninterrupted)
    generator, outcomes = random.Random(seed), []
    for k in range(kills):
        directory = folder / f"kill-{k}"
        directory.mkdir()
        # 0: anywhere in the seconds before the first chunk, too.
        awaited = generator.randrange(CHUNKS - 1)
        moment = awaited, generator.uniform(0, 1 if awaited else 8)
        outcomes.append(kill_one(directory, case, uninterrupted, moment, k % 4 == 3, env))
        print(outcomes[-1], flush=True)
    return outcomes


if __name__ == "__main__":
    os.environ["JAX_ENABLE_X64"] = "1"
    with tempfile.TemporaryDirectory() as name:
        outcomes = campaign(Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    print("\n| # | killed | chunks finished | was computing one | then | resumed | same bits |")
    print("|---|---|---|---|---|---|---|")
    for k, kill in enumerate(outcomes):
        held, bits = ("yes" if x else "no" for x in (kill.held_claim, kill.equal))
        print(
            f"| {k + 1} | {kill.victim} | {kill.finished} | {held} | "
            f"{kill.by_the_other} | {kill.in_the_end} | {bits} |"
        )
