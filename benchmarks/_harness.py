"""One measurement per process, printed as a line of JSON; `__main__` makes the table of them."""

import argparse
import functools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

# JAX 0.12 takes large loops for small ones on CPUs and runs them on one core; without this pass on all.
ALL_CORES = {"xla_disable_hlo_passes": "small-while-loop-hoisting"}
TURN = "PHYSKIT_BENCHMARK_LOCK"  # the file to be locked before anything is timed


@functools.cache
def wait_for_turn() -> int | None:
    """Return once this process may time; at once where measurements come one after the other anyway.

    To be called when all is compiled and has run once: where several processes get ready together, none is
    timed before the last is ready. The turn lasts to the end of the process, whatever ends it, because the
    file that is returned stays locked.
    """
    path = os.environ.get(TURN)
    if path is None:
        return None
    import fcntl  # not everywhere

    file = os.open(path, os.O_RDWR)
    Path(f"{path}.ready").touch()
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of several runs, which begin when it is this process's turn."""
    wait_for_turn()
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - began)
    return best


def least_seconds(function: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    """The shortest of several runs: by the clock, and of the processor."""
    wait_for_turn()
    best, used = float("inf"), float("inf")
    for _ in range(repeats):
        began = time.process_time()
        best = min(best, seconds(function, 1))
        used = min(used, time.process_time() - began)
    return best, used


def has_gpu() -> bool:
    """Whether JAX computes on a GPU."""
    import jax

    return jax.default_backend() != "cpu"


def enough(steps: int) -> int:
    """So many steps, or ten times as many on a GPU: the start of a run shall not count."""
    return 10 * steps if has_gpu() else steps


def rate_of_cells(cells: float, best: float, used: float) -> dict:
    """`cells` million cells and steps, by CPU second; on a GPU, which no CPU second counts, by the clock."""
    if has_gpu():
        return {"rate": cells / best, "unit": "M cells/s"}
    note = f"{cells / best:.3g} M cells/s, {used / best:.1f} cores busy"
    return {"rate": cells / used, "unit": "M cells/CPU s", "note": note}


def describe_traffic(cells: float, bytes_of_cell: int) -> str:
    """What memory carries at least, by million cells a second and the bytes that a step of one must move."""
    return f"{cells * 1e6 * bytes_of_cell / 1e9:.3g} GB/s at the least traffic"


def print_measurement(codes: dict[str, Callable[[int, str], dict]]) -> None:
    """Run the one measurement that the command line names and print it as a line of JSON.

    A measurement takes (size, precision) and returns `rate`, its `unit`, and what else is known:
    `compile` and `first` call in seconds, a `note`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--code", choices=sorted(codes), required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--precision", choices=["float32", "float64"], required=True)
    args = parser.parse_args()
    print(json.dumps(codes[args.code](args.size, args.precision)))
