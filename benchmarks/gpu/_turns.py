"""Measurements that get ready together, and are then timed one by one.

Nearly all of a measurement's time is starting Python, compiling and a first call, which many processes do side
by side. Timings would be wrong that way: nothing is timed before the last is ready, and then one at a time, in
order. Each process waits at a lock of its own (`benchmarks._harness.wait_for_turn`) that is held here until its
turn. One that dies or takes too long is passed over.
"""

import contextlib
import fcntl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.__main__ import command_of, read_measurement, settings_of
from benchmarks._harness import TURN

from ._processes import ROOT, make_environment, seconds_left, stop

READY, TIMED = 240.0, 120.0  # seconds that a process may take until it is ready, and to be timed
LOOK = 0.02  # seconds between two looks at whether processes are ready


class Waiting:
    """A process that waits to be timed, its output in files."""

    def __init__(self, command: list[str], lock: Path, **environment: str):
        self._ready = Path(f"{lock}.ready")
        self._output, self._errors = lock.with_suffix(".out"), lock.with_suffix(".err")
        self._lock = lock.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        environment = make_environment(**environment, **{TURN: str(lock)})
        with self._output.open("w") as output, self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
            )  # fmt: skip

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def is_ready(self) -> bool:
        return self._ready.exists()

    def give_turn(self) -> None:
        self._lock.close()

    def stop(self) -> None:
        """Whether it has had its turn or not."""
        stop(self._process)
        self._process.wait()
        self._lock.close()

    def read(self) -> dict:
        output, errors = (x.read_text(errors="replace") for x in (self._output, self._errors))
        return read_measurement(self._process.returncode, output, errors)


def measure_in_turn(rows: dict[str, dict], deadline: float) -> Iterator[tuple[str, dict]]:
    """The measurement of each row (case, code, size, precision); none where no time was left for it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        batch = {}
        for n, (name, row) in enumerate(rows.items()):
            more = settings_of(row["precision"])
            batch[name] = Waiting(command_of(**row), Path(folder) / str(n), **more)
            stack.callback(batch[name].stop)
        yield from give_turns(batch, deadline)


def give_turns(batch: dict[str, Waiting], deadline: float) -> Iterator[tuple[str, dict]]:
    """Wait until all are ready, then let each be timed alone."""
    limit = seconds_left(deadline, READY)
    wait_until(lambda: all(x.is_ready() or x.has_ended() for x in batch.values()), limit)
    late = [name for name, x in batch.items() if not (x.is_ready() or x.has_ended())]
    for name in late:
        batch[name].stop()  # before anything is timed
    for name, waiting in batch.items():
        if name in late:
            found = {"failed": f"not ready after {limit:.0f} s"}
        else:
            limit_of_turn = seconds_left(deadline, TIMED)
            waiting.give_turn()
            wait_until(waiting.has_ended, limit_of_turn)
            in_time = waiting.has_ended()
            waiting.stop()
            found = waiting.read() if in_time else {"failed": f"not timed in {limit_of_turn:.0f} s"}
        # What fails because time is up has its chance in the next call.
        if "failed" not in found or seconds_left(deadline):
            yield name, found


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(LOOK)
