"""One measurement per process, printed as a line of JSON; `__main__` makes the table of them."""

import argparse
import json
import time
from collections.abc import Callable

# JAX 0.12 takes large loops for small ones on CPUs and runs them on one core; without this pass on all.
ALL_CORES = {"xla_disable_hlo_passes": "small-while-loop-hoisting"}


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of several runs."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - began)
    return best


def least_seconds(function: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    """The shortest of several runs: by the clock, and of the processor."""
    best, used = float("inf"), float("inf")
    for _ in range(repeats):
        began = time.process_time()
        best = min(best, seconds(function, 1))
        used = min(used, time.process_time() - began)
    return best, used


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
