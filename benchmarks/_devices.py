"""One domain on one core, on one device with all cores, and sharded over two devices with a core each.

Emulated CPU devices share the cores of the machine, so that two devices can at best be twice as fast as
one *core*. Processes, compiled once, time chunks of two lengths in turn; the time of a step is the
difference, the rest is what a chunk costs. A round waits until the machine has little else to do, and the
shortest of all rounds counts. CPU seconds, which other processes lengthen less, are given beside.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

LAYOUTS = ("one-core", "one-device", "two-devices")
Make = Callable[[int, int], tuple[Any, Any]]  # (size, parts of it) → simulation, state


class Pace(NamedTuple):
    """Seconds per step, by the wall clock and of CPU, and seconds per chunk; the shortest of all rounds."""

    wall: float
    cpu: float
    chunk: float


def serve(make: Make, layout: str, size: int, part: int) -> None:
    """A process that has the simulation of `size / part` ready and times chunks on demand."""
    if layout == "one-core":
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    if layout == "two-devices":
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=2"
    import physkit as pk

    sim, state = make(size, part)
    # A run grows its caches; what is timed is the program that `run` calls for its chunks.
    devices = (2,) if layout == "two-devices" else None
    done = pk.run(sim, state, 20 * sim.observation_period, devices=devices, progress=False)
    program, carry = _program(sim, done.carry, devices)
    program(carry, 1)
    print("ready", flush=True)
    for line in sys.stdin:
        start, used = time.perf_counter(), time.process_time()
        program(carry, int(line))
        print(time.perf_counter() - start, time.process_time() - used, flush=True)


def _program(sim: Any, carry: Any, devices: Any) -> tuple[Any, Any]:
    from physkit.core import cast_floats, float_dtype
    from physkit.simulate.distributed._domain import DistributedDomain
    from physkit.simulate.driver._single_device import SingleDevice

    sim = cast_floats(sim, float_dtype(carry.state))
    host = SingleDevice(sim) if devices is None else DistributedDomain(sim, devices)
    return host.program(carry), carry


class Server:
    """A process with one layout of one case, and the pipes to it."""

    def __init__(self, case: str, layout: str, size: int, part: int):
        arguments = ["--serve", layout, "--size", str(size), "--part", str(part)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{case}", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait(self) -> None:
        """Until it has compiled."""
        if self._read() != "ready":
            raise RuntimeError("a layout failed: see above")

    def time_chunk(self, steps: int) -> tuple[float, float]:
        """Wall-clock and CPU seconds of a chunk."""
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        wall, cpu = map(float, self._read().split())
        return wall, cpu

    def close(self) -> None:
        """The process ends."""
        self._process.stdin.close()
        self._process.wait(60)

    def _read(self) -> str:
        return self._process.stdout.readline().strip()


def measure_paces(case: str, runs: dict, short: int, long: int, limit: float) -> dict[str, Pace]:
    """Every run (layout, size, part) timed in turn for `limit` seconds, twice at shortest."""
    servers = {name: Server(case, *what) for name, what in runs.items()}
    timings: dict[str, list] = {name: [] for name in runs}
    for server in servers.values():
        server.wait()
    until = time.monotonic() + limit
    while time.monotonic() < until or min(map(len, timings.values())) < 2:
        for name, server in servers.items():
            _wait_for_idle_machine()
            timings[name].append((server.time_chunk(short), server.time_chunk(long)))
    for server in servers.values():
        server.close()
    return {name: _pace(both, short, long) for name, both in timings.items()}


def _wait_for_idle_machine(patience: float = 1.0) -> None:
    """Wait until other processes leave the machine alone, or until patience is over."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        idle, whole = _ticks()
        time.sleep(0.08)
        later, total = _ticks()
        if later - idle > 0.8 * (total - whole):
            return


def _ticks() -> tuple[int, int]:
    """Clock ticks of all cores that were idle, and all, since the machine started."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = list(map(int, file.readline().split()[1:]))
    return ticks[3], sum(ticks[:8])


def _pace(both: list, short: int, long: int) -> Pace:
    shortest = lambda which, clock: min(pair[which][clock] for pair in both)
    wall = (shortest(1, 0) - shortest(0, 0)) / (long - short)
    cpu = (shortest(1, 1) - shortest(0, 1)) / (long - short)
    return Pace(wall, cpu, max(0.0, shortest(0, 0) - short * wall))


def run_case(make: Make, case: str, size: int, short: int, long: int) -> None:
    """Print strong and weak scaling of a case as one line of JSON; or serve as one of its processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=size)
    parser.add_argument("--seconds", type=float, default=120.0, help="of timing, after compiling")
    parser.add_argument("--serve", choices=LAYOUTS)
    parser.add_argument("--part", type=int, default=1)
    args = parser.parse_args()
    if args.serve:
        serve(make, args.serve, args.size, args.part)
        return
    runs = {layout: (layout, args.size, 1) for layout in LAYOUTS}
    runs["half, one core"] = ("one-core", args.size, 2)
    found = measure_paces(case, runs, short, long, args.seconds)
    one, all_cores, two, half = found.values()
    table = {
        "case": case,
        "size": args.size,
        "load": os.getloadavg()[0],
        "ms a step": {name: 1e3 * p.wall for name, p in found.items()},
        "ms of CPU a step": {name: 1e3 * p.cpu for name, p in found.items()},
        "ms a chunk": {name: 1e3 * p.chunk for name, p in found.items()},
        "strong, over one core": one.wall / two.wall,
        "strong, over one device with all cores": all_cores.wall / two.wall,
        "weak": half.wall / two.wall,
        "strong by CPU seconds": 2 * one.cpu / two.cpu,
    }
    print(json.dumps({k: _short(v) for k, v in table.items()}), flush=True)


def _short(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _short(v) for k, v in x.items()}
    return float(f"{x:.4g}") if isinstance(x, float) else x
